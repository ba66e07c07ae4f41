//! Named kernel objects next to the segments in `/dev/shm`: FIFOs and sockets.

pub mod fifo;
pub mod seqpacket;

use shm::memory::RegionError;
use shm::ring::{EndRights, LinkSpec, MESSAGE_WORDS, SegmentPlace, SegmentSpec};
use std::io;

/// Returns a closure that adds a name and an operation to an error of the system.
pub(crate) fn os<E: Into<io::Error>>(name: &str, what: &'static str) -> impl FnOnce(E) -> RegionError {
    move |source| RegionError::Os { name: name.to_owned(), what, source: source.into() }
}

/// Specifies the file of a link whose messages the kernel holds.
pub(crate) fn segments(spec: &LinkSpec, place: SegmentPlace) -> Vec<SegmentSpec> {
    let segment = SegmentSpec::memory(spec.name, shm::ring::spsc::KIND, 0, EndRights::ALL_WRITE);
    vec![SegmentSpec { place, capacity: 0, slot_words: MESSAGE_WORDS as u64, ..segment }]
}
