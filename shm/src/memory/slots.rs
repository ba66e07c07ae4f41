//! Pointers to hot atomic words whose bounds are checked once, when they are chosen; accesses then
//! need no check.

use super::{AtomicWords, ReadOnlyWords};
use crate::prefetch::prefetch_ahead;
use crate::sync::{AtomicU64, Ordering, load_owned, load_read_only};
use core::ops::Deref;
use core::ptr::NonNull;

/// A pointer to one 64-bit word of a region; the word's index is checked against the region's
/// bounds once, when the pointer is created.
pub struct Word(AtomicWords);

impl Word {
    /// Creates a pointer to the word at `index` of a region's slice, after a bounds check.
    ///
    /// # Panics
    /// If it is outside.
    pub fn new(words: &AtomicWords, index: usize) -> Self {
        Self(words.slice(index, 1))
    }
}

impl Deref for Word {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: the window is one word long, which nobody changes; it keeps its memory, and its
        // words are initialised atomics.
        unsafe { &*self.0.as_ptr() }
    }
}

/// A ring slot: `M` words and the sequence after them.
#[repr(C)]
pub(crate) struct Slot<const M: usize> {
    pub(crate) message: [AtomicU64; M],
    pub(crate) sequence: AtomicU64,
}

/// Contiguous slots of a ring, a power of two in number, so that every position maps to one.
pub(crate) struct Slots<const M: usize> {
    /// `mask + 1` slots.
    words: AtomicWords,
    mask: u64,
}

impl<const M: usize> Slots<M> {
    /// Creates ring slots that fill a whole slice.
    pub(crate) fn new(words: AtomicWords) -> Self {
        let count = words.len() / (M + 1);
        assert!(count.is_power_of_two() && count * (M + 1) == words.len(), "checked geometries only");
        Self { words, mask: count as u64 - 1 }
    }

    /// Returns the number of slots minus one, the mask that maps a position to its slot.
    #[inline(always)]
    pub(crate) const fn mask(&self) -> u64 {
        self.mask
    }

    /// Returns the slot of a position in the ring.
    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> &Slot<M> {
        let index = (position & self.mask) as usize;
        // SAFETY: the index is at most the mask, and there are `mask + 1` slots in the window,
        // which nobody changes. A slot is `M + 1` contiguous words (`repr(C)`, all of one type).
        // The window keeps its memory, and its words are initialised atomics.
        unsafe { &*self.words.as_ptr().cast::<Slot<M>>().add(index) }
    }
}

impl<const M: usize> Slot<M> {
    /// Loads the sequence of a ring slot whose page may not be writable.
    #[inline(always)]
    pub(crate) fn sequence(&self, ordering: Ordering) -> u64 {
        load_read_only(&self.sequence, ordering)
    }

    /// Writes a message into the slot without the sequence that publishes it.
    #[inline(always)]
    pub(crate) fn write(&self, message: &[u64; M]) {
        for (word, value) in self.message.iter().zip(message) {
            // Relaxed: the Release store of a sequence publishes them.
            word.store(*value, Ordering::Relaxed);
        }
    }

    /// Copies the message of a slot that no thread writes now: see [`load_owned`].
    #[inline(always)]
    pub(crate) fn copy_owned(&self) -> [u64; M] {
        let mut copy = [0; M];
        for (value, word) in copy.iter_mut().zip(&self.message) {
            *value = load_owned(word);
        }
        copy
    }
}

/// A consumer's read position: one slot of a ring, which it only reads. A poll is two loads.
// In this order: see `ring::spsc::Consumer`.
#[repr(C)]
pub(crate) struct Cursor<const M: usize> {
    /// One of `slots`. A pointer, so that a poll needs neither a mask nor a sum.
    at: NonNull<Slot<M>>,
    slots: Slots<M>,
}

// SAFETY: the pointer is a shared reference to atomics of the slots, which go with it.
unsafe impl<const M: usize> Send for Cursor<M> {}

impl<const M: usize> Cursor<M> {
    /// Creates a read position at the start of a ring.
    pub(crate) fn new(view: ReadOnlyWords) -> Self {
        let slots = Slots::new(view.0);
        Self { at: NonNull::from(slots.slot(0)), slots }
    }

    /// Returns the number of slots minus one, the mask that maps a position to its slot.
    #[inline(always)]
    pub(crate) const fn mask(&self) -> u64 {
        self.slots.mask()
    }

    /// Moves the read position to the slot of a position. The address needs a mask, a shift and a
    /// sum: in a stream each poll waits for the word before it, so their latency is part of every
    /// message's time.
    #[inline(always)]
    pub(crate) fn go_to(&mut self, position: u64) {
        self.at = NonNull::from(self.slots.slot(position));
    }

    /// Returns the slot at the read position.
    #[inline(always)]
    pub(crate) fn slot(&self) -> &Slot<M> {
        // SAFETY: it is one of the slots, whose memory they keep wherever this was moved.
        unsafe { self.at.as_ref() }
    }

    /// Returns the slot of any position, without moving the cursor.
    #[inline(always)]
    pub(crate) fn slot_of(&self, position: u64) -> &Slot<M> {
        self.slots.slot(position)
    }

    /// Prefetches the slot after the cursor's; after the last slot, the memory that follows.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self) {
        prefetch_ahead(self.slot(), size_of::<Slot<M>>());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn slots_map_positions_and_keep_their_memory() {
        let words = Region::heap(40).words();
        let slots = Slots::<2>::new(words.slice(16, 24));
        assert_eq!(slots.mask(), 7);
        for position in 0..20 {
            slots.slot(position).sequence.store(position, Ordering::Relaxed);
            slots.slot(position).message[1].store(100 + position, Ordering::Relaxed);
        }
        slots.slot(u64::MAX).message[0].store(5, Ordering::Relaxed);
        let mut cursor = Cursor::<2>::new(words.slice(16, 24).into());
        drop((words, slots));
        for position in 12..20 {
            cursor.go_to(position);
            // Wherever it is moved.
            let moved = cursor;
            assert_eq!(moved.slot().sequence.load(Ordering::Relaxed), position);
            assert_eq!(moved.slot_of(position).copy_owned()[1], 100 + position);
            cursor = moved;
        }
        cursor.go_to(u64::MAX);
        assert_eq!(cursor.slot().copy_owned()[0], 5);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a panic takes seconds there")]
    fn slot_count_other_than_power_of_two_panics() {
        for words in [0, 2, 4, 9, 25] {
            let words = Region::heap(40).words().slice(0, words);
            assert!(catch_unwind(AssertUnwindSafe(|| drop(Slots::<2>::new(words)))).is_err());
        }
    }
}
