//! Typed messages as words of slots.
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
/// Bytes of a slot after its part number.
const PART_BYTES: usize = SLOT_BYTES - 8;

/// A type that can be sent through a queue: plain data of at most [`MAX_MESSAGE_BYTES`]. It has no
/// padding, pointers or invalid values. Derive the three traits with `zerocopy`.
pub trait Message: FromBytes + IntoBytes + Immutable {}

impl<T: FromBytes + IntoBytes + Immutable> Message for T {}

pub(super) const fn slots<T>() -> usize {
    const { assert!(size_of::<T>() <= MAX_MESSAGE_BYTES, "a message has at most MAX_MESSAGE_BYTES bytes") };
    if size_of::<T>() <= SLOT_BYTES { 1 } else { size_of::<T>().div_ceil(PART_BYTES) }
}

#[inline(always)]
pub(super) fn to_slot<T: Message>(message: &T) -> Slot {
    let mut slot = [0; MESSAGE_WORDS];
    slot.as_mut_bytes()[..size_of::<T>()].copy_from_slice(message.as_bytes());
    slot
}

#[inline(always)]
pub(super) fn from_slot<T: Message>(slot: &Slot) -> T {
    T::read_from_bytes(&slot.as_bytes()[..size_of::<T>()]).expect("the size is that of the type")
}

/// Splits a large message into the words of its slots, in order.
pub(super) fn split_into_slots<T: Message>(message: &T) -> impl ExactSizeIterator<Item = Slot> {
    message.as_bytes().chunks(PART_BYTES).enumerate().map(|(part, bytes)| {
        let mut slot = [0; MESSAGE_WORDS];
        slot[0] = part as u64;
        slot[1..].as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        slot
    })
}

/// Collects the slots of a large message as they arrive from one producer.
#[derive(Default)]
pub(super) struct Partial(Vec<u8>);

impl Partial {
    /// Adds the next slot of a large message. Returns the message with its last part.
    pub(super) fn add<T: Message>(&mut self, slot: &Slot) -> Option<T> {
        if slot[0] == 0 {
            self.0.clear();
        }
        let next = self.0.len() / PART_BYTES;
        if slot[0] != next as u64 {
            // The rest of a message whose first part is lost.
            self.0.clear();
            return None;
        }
        self.0.extend_from_slice(slot[1..].as_bytes());
        if next + 1 < slots::<T>() {
            return None;
        }
        let message = T::read_from_bytes(&self.0[..size_of::<T>()]).ok();
        self.0.clear();
        message
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
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
        assert_eq!((slots::<()>(), slots::<[u64; 7]>(), slots::<[u64; 8]>()), (1, 1, 2));
        assert_eq!(slots::<[u8; MAX_MESSAGE_BYTES]>(), 1366);
        let message = [1u32, 2, 3];
        assert_eq!(from_slot::<[u32; 3]>(&to_slot(&message)), message);
    }

    #[test]
    fn incomplete_messages_are_dropped() {
        let mut partial = Partial::default();
        let mut add = |slot: Slot| partial.add::<[u8; 1000]>(&slot);
        assert!(split_into_slots(&large(1)).take(9).all(|slot| add(slot).is_none()));
        assert_eq!(split_into_slots(&large(2)).filter_map(&mut add).collect::<Vec<_>>(), [large(2)]);
        assert!(
            split_into_slots(&large(3)).skip(1).all(|slot| add(slot).is_none()),
            "the first part is missing"
        );
        assert_eq!(split_into_slots(&large(4)).filter_map(&mut add).collect::<Vec<_>>(), [large(4)]);
    }
}
