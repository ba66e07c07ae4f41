//! Messages as words of slots: the first 56 bytes of each. The other bytes of a longer message are
//! in the [`overflow`](super::overflow) of its producer.

use crate::ring::{MESSAGE_WORDS, Message as Slot};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum size of a message in bytes. A larger type does not compile:
///
/// ```compile_fail
/// let queue = shm::queue::spsc::<[u8; shm::queue::MAX_MESSAGE_BYTES + 1]>("large", 2);
/// ```
pub const MAX_MESSAGE_BYTES: usize = 1 << 16;

/// Bytes of a message in its slot.
pub(super) const SLOT_BYTES: usize = MESSAGE_WORDS * 8;

/// A type that can be sent through a queue: plain data of at most [`MAX_MESSAGE_BYTES`]. It has no
/// padding, pointers or invalid values. Derive the three traits with `zerocopy`.
pub trait Message: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Message for T {}

/// Returns the size of a message in bytes. A type that is too large does not compile.
pub(super) const fn message_bytes<T>() -> usize {
    const { assert!(size_of::<T>() <= MAX_MESSAGE_BYTES, "a message has at most MAX_MESSAGE_BYTES bytes") };
    size_of::<T>()
}

/// Returns the slot of a message of up to 56 bytes.
///
/// Whole words are copied word by word, in one way for each number of words. A call of `memcpy`
/// would load words that were just written in pieces of 32 bytes, and wait until they have left the
/// CPU's store buffer.
#[inline(always)]
pub(super) fn to_slot(message: &[u8]) -> Slot {
    match message.len() {
        4 => slot_of_bytes::<4>(message),
        8 => slot_of_words::<1>(message),
        16 => slot_of_words::<2>(message),
        24 => slot_of_words::<3>(message),
        32 => slot_of_words::<4>(message),
        40 => slot_of_words::<5>(message),
        48 => slot_of_words::<6>(message),
        SLOT_BYTES => slot_of_words::<7>(message),
        _ => {
            let mut slot = [0; MESSAGE_WORDS];
            slot.as_mut_bytes()[..message.len()].copy_from_slice(message);
            slot
        }
    }
}

/// Copies a message of a constant size, which needs no call.
#[inline(always)]
fn slot_of_bytes<const B: usize>(message: &[u8]) -> Slot {
    let mut slot = [0; MESSAGE_WORDS];
    if let Some(bytes) = message.first_chunk::<B>() {
        slot.as_mut_bytes()[..B].copy_from_slice(bytes);
    }
    slot
}

#[inline(always)]
fn slot_of_words<const W: usize>(message: &[u8]) -> Slot {
    let mut slot = [0; MESSAGE_WORDS];
    if let Some(words) = message.as_chunks::<8>().0.first_chunk::<W>() {
        for (at, word) in words.iter().enumerate() {
            slot[at] = u64::from_ne_bytes(*word);
        }
    }
    slot
}

/// Copies a message of up to 56 bytes out of its slot, as [`to_slot`] does.
#[inline(always)]
pub(super) fn copy_from_slot(slot: Slot, message: &mut [u8]) {
    match message.len() {
        4 => {
            if let Some(bytes) = message.first_chunk_mut::<4>() {
                bytes.copy_from_slice(&slot[0].as_bytes()[..4]);
            }
        }
        8 => copy_words::<1>(slot, message),
        16 => copy_words::<2>(slot, message),
        24 => copy_words::<3>(slot, message),
        32 => copy_words::<4>(slot, message),
        40 => copy_words::<5>(slot, message),
        48 => copy_words::<6>(slot, message),
        SLOT_BYTES => copy_words::<7>(slot, message),
        _ => {
            let [a, b, c, d, e, f, g] = slot;
            copy_bytes(a, b, c, d, e, f, g, message);
        }
    }
}

#[inline(always)]
fn copy_words<const W: usize>(slot: Slot, message: &mut [u8]) {
    if let Some(words) = message.as_chunks_mut::<8>().0.first_chunk_mut::<W>() {
        for (at, word) in words.iter_mut().enumerate() {
            *word = slot[at].to_ne_bytes();
        }
    }
}

/// Copies a message whose size is not of whole words. Takes words, not their address: with an
/// address they would be in memory for the other sizes, too.
#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "the words of a slot")]
fn copy_bytes(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, message: &mut [u8]) {
    let slot = [a, b, c, d, e, f, g];
    let bytes = message.len().min(SLOT_BYTES);
    message[..bytes].copy_from_slice(&slot.as_bytes()[..bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_small_size_survive_a_slot() {
        for bytes in 0..=SLOT_BYTES {
            let message: Vec<u8> = (1..=bytes as u8).collect();
            let mut copy = vec![0; bytes];
            copy_from_slot(to_slot(&message), &mut copy);
            assert_eq!(copy, message);
        }
        assert_eq!(to_slot(&[1, 2, 3])[..2], [0x03_02_01, 0]);
    }
}
