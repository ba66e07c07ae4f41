//! Messages as words of slots.
//!
//! A message of up to 56 bytes is one slot. A larger one is several slots of its producer's ring,
//! in order, each with a word that numbers it:
//!
//! ```text
//! slot of a small message:    7 words
//! slot of a large message:    part │ 6 words          part: 0 for the first one
//! ```
//!
//! The receiver starts a message at part 0 only, so that it drops a message that a crashed sender
//! has not completed, and continues with the next one.

use crate::ring::{MESSAGE_WORDS, Message as Slot};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Maximum size of a message in bytes. A larger type does not compile:
///
/// ```compile_fail
/// let queue = shm::queue::spsc::<[u8; shm::queue::MAX_MESSAGE_BYTES + 1]>("large", 2);
/// ```
pub const MAX_MESSAGE_BYTES: usize = 1 << 16;

/// Bytes of a slot without a part number.
const SLOT_BYTES: usize = MESSAGE_WORDS * 8;
/// Words of a slot after its part number.
const PART_WORDS: usize = MESSAGE_WORDS - 1;
/// Bytes of a slot after its part number.
const PART_BYTES: usize = PART_WORDS * 8;

/// A type that can be sent through a queue: plain data of at most [`MAX_MESSAGE_BYTES`]. It has no
/// padding, pointers or invalid values. Derive the three traits with `zerocopy`.
pub trait Message: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Message for T {}

/// Returns the size of a message in bytes. A type that is too large does not compile.
pub(super) const fn message_bytes<T>() -> usize {
    const { assert!(size_of::<T>() <= MAX_MESSAGE_BYTES, "a message has at most MAX_MESSAGE_BYTES bytes") };
    size_of::<T>()
}

/// Returns the number of slots of a message of `bytes` bytes.
#[inline(always)]
pub(super) const fn slot_count(bytes: usize) -> usize {
    if bytes <= SLOT_BYTES { 1 } else { bytes.div_ceil(PART_BYTES) }
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
    let (words, _) = message.as_chunks::<8>();
    for (at, word) in words.iter().take(W).enumerate() {
        slot[at] = u64::from_ne_bytes(*word);
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
    let (words, _) = message.as_chunks_mut::<8>();
    for (at, word) in words.iter_mut().take(W).enumerate() {
        *word = slot[at].to_ne_bytes();
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

/// Splits a large message into the words of its slots, in order.
#[inline]
pub(super) fn split_into_slots(message: &[u8]) -> impl ExactSizeIterator<Item = Slot> {
    message.chunks(PART_BYTES).enumerate().map(|(part, bytes)| {
        let mut slot = [0; MESSAGE_WORDS];
        slot[0] = part as u64;
        let words = slot[1..].as_mut_bytes();
        match bytes.first_chunk::<PART_BYTES>() {
            // All but the last one. A constant size needs no call.
            Some(bytes) => words.copy_from_slice(bytes),
            None => words[..bytes.len()].copy_from_slice(bytes),
        }
        slot
    })
}

/// Collects the slots of a large message as they arrive from one producer.
pub(super) struct Partial {
    parts: Vec<[u64; PART_WORDS]>,
    /// Number of parts of a message.
    count: usize,
    /// Number of the part that continues the message; 0 after its last part.
    next: usize,
    message_bytes: usize,
}

impl Partial {
    /// Allocates the memory of one message, so that no message allocates when it arrives.
    pub(super) fn new(message_bytes: usize) -> Self {
        let count = slot_count(message_bytes);
        Self { parts: Vec::with_capacity(count), count, next: 0, message_bytes }
    }

    /// Adds the next slot of a large message. Returns `true` if it was the last one:
    /// [`Partial::message`] is then whole until the next call.
    #[inline]
    pub(super) fn add(&mut self, slot: &Slot) -> bool {
        if slot[0] == 0 {
            self.clear();
        } else if slot[0] != self.next as u64 {
            // The rest of a message whose first part is lost.
            self.next = 0;
            return false;
        }
        let [_, part @ ..] = *slot;
        self.parts.push(part);
        self.next += 1;
        let is_whole = self.next == self.count;
        if is_whole {
            self.next = 0;
        }
        is_whole
    }

    /// Returns the bytes of a whole message, aligned to 8 bytes; those of an incomplete one are
    /// missing.
    #[inline]
    pub(super) fn message(&self) -> &[u8] {
        let bytes = self.parts.as_bytes();
        &bytes[..self.message_bytes.min(bytes.len())]
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(n: u8) -> [u8; 1000] {
        core::array::from_fn(|i| n.wrapping_add(i as u8))
    }

    #[test]
    fn small_messages_take_one_slot() {
        assert_eq!([0, 56, 57, MAX_MESSAGE_BYTES].map(slot_count), [1, 1, 2, 1366]);
        assert_eq!(to_slot(&[1, 2, 3])[..2], [0x03_02_01, 0]);
    }

    /// Adds slots, and returns the messages that they complete.
    fn add(partial: &mut Partial, slots: impl Iterator<Item = Slot>) -> Vec<Vec<u8>> {
        let add = |slot: Slot| if partial.add(&slot) { Some(partial.message().to_vec()) } else { None };
        slots.filter_map(add).collect()
    }

    #[test]
    fn incomplete_messages_are_dropped() {
        let mut partial = Partial::new(1000);
        assert!(add(&mut partial, split_into_slots(&large(1)).take(9)).is_empty());
        assert_eq!(add(&mut partial, split_into_slots(&large(2))), [large(2)]);
        let third = large(3);
        let without_first = split_into_slots(&third).skip(1);
        assert!(add(&mut partial, without_first).is_empty(), "the first part is missing");
        assert_eq!(add(&mut partial, split_into_slots(&large(4))), [large(4)]);
    }

    /// A part after the last one, from a producer that misbehaves, extends no message.
    #[test]
    fn part_after_the_last_is_dropped() {
        let mut partial = Partial::new(1000);
        assert_eq!(add(&mut partial, split_into_slots(&large(1))), [large(1)]);
        assert!(!partial.add(&[21, 9, 9, 9, 9, 9, 9]), "a message of 1,000 bytes has parts 0 to 20");
        assert_eq!(add(&mut partial, split_into_slots(&large(2))), [large(2)]);
    }

    #[test]
    fn messages_do_not_allocate_when_they_arrive() {
        let mut partial = Partial::new(1000);
        let reserved = partial.parts.capacity();
        assert_eq!(add(&mut partial, split_into_slots(&large(1))).len(), 1);
        assert_eq!(partial.parts.capacity(), reserved);
    }
}
