//! Transports of other projects as techniques: each with a feature of its name.

#[cfg(feature = "aeron")]
pub mod aeron;
#[cfg(feature = "iceoryx2")]
pub mod iceoryx;

#[cfg(any(feature = "aeron", feature = "iceoryx2"))]
use launcher::shm::ring::{
    EndRights, Home, LinkSpec, MESSAGE_WORDS, SegmentPlace, SegmentSpec, Step, TechniqueInfo, spsc,
};

/// The folder of a hand-off, in which a transport keeps its files: it goes with the run.
#[cfg(any(feature = "aeron", feature = "iceoryx2"))]
fn folder(spec: &LinkSpec<'_>) -> SegmentSpec {
    SegmentSpec {
        name: spec.name.into(),
        place: SegmentPlace::Directory,
        words: 0,
        kind: spsc::KIND,
        capacity: 0,
        slot_words: MESSAGE_WORDS as u64,
        index: 0,
        ends: EndRights::ALL_WRITE,
    }
}

/// The steps in which a fault can be due; nothing is shared by two producers.
#[cfg(any(feature = "aeron", feature = "iceoryx2"))]
const fn record(name: &'static str) -> TechniqueInfo {
    TechniqueInfo::new(name, Home::Foreign)
        .steps(&[Step::Entered, Step::HalfWritten, Step::Written, Step::Published])
        .apart()
}
