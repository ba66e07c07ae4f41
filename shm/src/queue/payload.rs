//! The types that can be messages.

use crate::ring::packed;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum size of a queue's message in bytes. A larger type does not compile:
///
/// ```compile_fail
/// let queue = shm::queue::spsc::<[u8; shm::queue::MAX_MESSAGE_BYTES + 1]>("large", 2);
/// ```
pub const MAX_MESSAGE_BYTES: usize = packed::MAX_MESSAGE_BYTES;

/// A type that can be sent through a queue: plain data of at most [`MAX_MESSAGE_BYTES`]. It has no
/// padding, pointers or invalid values. Derive the three traits with `zerocopy`.
pub trait Message: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Message for T {}

/// Returns the size of a message in bytes. A type that is too large does not compile.
pub(super) const fn message_bytes<T>() -> usize {
    const { assert!(size_of::<T>() <= MAX_MESSAGE_BYTES, "a message has at most MAX_MESSAGE_BYTES bytes") };
    size_of::<T>()
}

/// Returns the size of a message as the descriptor has it: 0 there means no typed messages.
pub(super) const fn to_word(message_bytes: usize) -> u64 {
    if message_bytes == 0 { u64::MAX } else { message_bytes as u64 }
}

/// Returns the size of a message that the descriptor's word has; one that no queue has for messages
/// of a technique.
pub(super) fn from_word(word: u64) -> usize {
    match word {
        0 => usize::MAX,
        u64::MAX => 0,
        _ => usize::try_from(word).unwrap_or(usize::MAX),
    }
}
