//! The layout of a ring in this process's memory, for code of another language that pushes and pops
//! without a call.

use crate::memory::place_bytes;
use crate::sync::AtomicU64;

/// The addresses, mask and sizes of a packed ring in this process's memory, with which code of
/// another language pushes or pops. They are valid for as long as the end is attached.
///
/// The message at position `p` is at `places + (p & mask) * place_bytes`. On a CPU whose words
/// begin with their lowest byte, a message of less than a word is there, too.
#[derive(Clone, Copy, Debug)]
pub struct PackedLayout {
    /// Address of the ring's first place (the memory of one message).
    pub places: *const AtomicU64,
    /// Number of places minus one.
    pub mask: u64,
    /// Bytes from one place to the next.
    pub place_bytes: u64,
    /// Maximum number of messages in the ring.
    pub capacity: u64,
    /// Address of the sender's published position.
    pub tail: *const AtomicU64,
    /// Address of the receiver's published position.
    pub head: *const AtomicU64,
}

impl PackedLayout {
    pub(super) fn new(
        [places, tail, head]: [&AtomicU64; 3],
        mask: u64,
        message_bytes: usize,
        capacity: u64,
    ) -> Self {
        let place_bytes = place_bytes(message_bytes) as u64;
        let [places, tail, head] = [places, tail, head].map(core::ptr::from_ref);
        Self { places, mask, place_bytes, capacity, tail, head }
    }
}
