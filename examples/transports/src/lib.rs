//! Other people's transports as techniques: each behind a feature of its name.

#[cfg(feature = "iceoryx2")]
pub mod iceoryx;

use launcher::shm::attached::Attached;
use launcher::shm::memory::RegionError;
use launcher::shm::ring::{Ends, LinkSpec, MESSAGE_WORDS, SegmentPlace, SegmentSpec, spsc};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of a hand-off, in which a transport keeps its files: it goes with the run.
fn folder(spec: &LinkSpec<'_>) -> SegmentSpec {
    SegmentSpec {
        what: spec.name.into(),
        place: SegmentPlace::Folder,
        words: 0,
        kind: spsc::KIND,
        capacity: 0,
        slot_words: MESSAGE_WORDS as u64,
        index: 0,
        ends: Ends::ALL_WRITE,
    }
}

/// What the ends of a hand-off in this process share, made by the first one that asks.
fn shared<T: Send + Sync + 'static>(
    attached: &mut Attached<'_>,
    what: &str,
    make: impl FnOnce() -> Result<T, RegionError>,
) -> Result<Arc<T>, RegionError> {
    let slot = attached.shared(what, Mutex::<Option<Arc<T>>>::default);
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = &*slot {
        return Ok(Arc::clone(made));
    }
    let made = Arc::new(make()?);
    *slot = Some(Arc::clone(&made));
    Ok(made)
}
