//! The broken rings, each with the defect that the environment names, and one that forgets the
//! dead.

use crate::dying::{Act, Dying};
use launcher::Harness;
use launcher::Parts;
use launcher::roles::registry::Links;
use launcher::shm::ring::Message;
use launcher::shm::ring::array_queue::ArrayQueue;
use launcher::shm::ring::spsc_mux::SpscMux;
use launcher::techniques::conformance::faulty::{
    DropsMessage, DuplicatesMessage, FaultyRing, ReordersMessages, RingFault, SkipsRetirement, TearsMessage,
};
use std::sync::LazyLock;

/// The environment variable that names the defect. The processes of a run inherit it.
pub const DEFECT: &str = "BROKEN_RING";

/// What it may be.
pub const DEFECTS: [&str; 4] = ["doubles", "drops", "reorders", "tears"];

/// The names of the rings.
pub const RINGS: [&str; 2] = [Apart::NAME, Shared::NAME];

/// The name of the ring that forgets the dead.
pub const FORGETS: &str = Forgets::NAME;

type Popped = (Option<usize>, Message);
type Spoiled = (Option<Popped>, Option<Popped>);

static SPOIL: LazyLock<fn(Popped, &Message) -> Spoiled> = LazyLock::new(|| {
    match std::env::var(DEFECT).as_deref() {
        Ok("doubles") => DuplicatesMessage::corrupt,
        Ok("drops") => DropsMessage::corrupt,
        Ok("reorders") => ReordersMessages::corrupt,
        Ok("tears") => TearsMessage::corrupt,
        // A ring of this program without a defect is a good one.
        _ => |message, _| (Some(message), None),
    }
});

struct Apart;
struct Shared;
struct Forgets;

impl RingFault for Apart {
    const NAME: &'static str = "broken-apart";

    fn corrupt(message: Popped, before: &Message) -> Spoiled {
        SPOIL(message, before)
    }
}

impl RingFault for Shared {
    const NAME: &'static str = "broken-shared";

    fn corrupt(message: Popped, before: &Message) -> Spoiled {
        SPOIL(message, before)
    }
}

impl RingFault for Forgets {
    const NAME: &'static str = "forgets-the-dead";
    const RETIRES: bool = SkipsRetirement::RETIRES;

    fn corrupt(message: Popped, before: &Message) -> Spoiled {
        SkipsRetirement::corrupt(message, before)
    }
}

/// The launcher with all of them.
pub fn harness() -> Harness<impl Links, impl Parts> {
    Harness::new()
        .technique::<FaultyRing<Apart, SpscMux>>()
        .technique::<FaultyRing<Shared, ArrayQueue>>()
        .technique::<FaultyRing<Forgets, ArrayQueue>>()
        .strategy("panics", |context| Dying::new(context, Act::Panic))
        .strategy("panics-twice", |context| Dying::new(context, Act::PanicTwice))
        .strategy("sleeps", |context| Dying::new(context, Act::Sleep))
}
