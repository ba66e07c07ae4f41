//! The broken rings: a ring for each producer and one that all share, each with the defect that the
//! environment names, and one that forgets the dead.

use launcher::Harness;
use launcher::roles::registry::Links;
use launcher::shm::ring::Message;
use launcher::shm::ring::array_queue::ArrayQueue;
use launcher::shm::ring::spsc_mux::SpscMux;
use launcher::techniques::conformance::broken::{Broken, Doubles, Drops, Neglects, Reorders, Spoil, Tears};
use launcher::{Strategies, Venues};
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
        Ok("doubles") => Doubles::spoil,
        Ok("drops") => Drops::spoil,
        Ok("reorders") => Reorders::spoil,
        Ok("tears") => Tears::spoil,
        // A ring of this program without a defect is a good one.
        _ => |message, _| (Some(message), None),
    }
});

struct Apart;
struct Shared;
struct Forgets;

impl Spoil for Apart {
    const NAME: &'static str = "broken-apart";

    fn spoil(message: Popped, before: &Message) -> Spoiled {
        SPOIL(message, before)
    }
}

impl Spoil for Shared {
    const NAME: &'static str = "broken-shared";

    fn spoil(message: Popped, before: &Message) -> Spoiled {
        SPOIL(message, before)
    }
}

impl Spoil for Forgets {
    const NAME: &'static str = "forgets-the-dead";
    const RETIRES: bool = Neglects::RETIRES;

    fn spoil(message: Popped, before: &Message) -> Spoiled {
        Neglects::spoil(message, before)
    }
}

/// The launcher with all of them.
pub fn harness() -> Harness<impl Links, impl Strategies, impl Venues> {
    Harness::new()
        .technique::<Broken<Apart, SpscMux>>()
        .technique::<Broken<Shared, ArrayQueue>>()
        .technique::<Broken<Forgets, ArrayQueue>>()
}
