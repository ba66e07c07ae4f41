//! Words that are reached again and again: checked once, when they are chosen, and from then on reached without a check.

use super::{View, Words};
use crate::prefetch::prefetch_ahead;
use crate::sync::{AtomicU64, Ordering, load_owned};
use core::ops::Deref;
use core::ptr::NonNull;

/// One word of a region.
pub(crate) struct Word(Words);

impl Word {
    /// That word of the window.
    ///
    /// # Panics
    /// If it is outside.
    pub(crate) fn new(words: &Words, index: usize) -> Self {
        Self(words.window(index, 1))
    }
}

impl Deref for Word {
    type Target = AtomicU64;

    #[inline(always)]
    fn deref(&self) -> &AtomicU64 {
        // SAFETY: the window is one word long, which nobody changes; it keeps its memory, and its words are initialised atomics.
        unsafe { &*self.0.as_ptr() }
    }
}

/// A slot: `M` words and the sequence behind them.
#[repr(C)]
pub(crate) struct Slot<const M: usize> {
    /// The message.
    pub(crate) message: [AtomicU64; M],
    /// Which message that is.
    pub(crate) sequence: AtomicU64,
}

/// Slots side by side, a power of two of them: every position has its slot.
pub(crate) struct Slots<const M: usize> {
    /// `mask + 1` slots.
    words: Words,
    mask: u64,
}

impl<const M: usize> Slots<M> {
    /// All of the window.
    ///
    /// # Panics
    /// If it is not a power of two of slots.
    pub(crate) fn new(words: Words) -> Self {
        let count = words.len() / (M + 1);
        assert!(count.is_power_of_two() && count * (M + 1) == words.len(), "checked geometries only");
        Self { words, mask: count as u64 - 1 }
    }

    /// Slots, less one.
    #[inline(always)]
    pub(crate) const fn mask(&self) -> u64 {
        self.mask
    }

    /// The slot of that position.
    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> &Slot<M> {
        let place = (position & self.mask) as usize;
        // SAFETY: no place is beyond the mask, and there are `mask + 1` slots in the window, which nobody changes; a slot is `M + 1`
        // words side by side (`repr(C)`, all of one type). The window keeps its memory, and its words are initialised atomics.
        unsafe { &*self.words.as_ptr().cast::<Slot<M>>().add(place) }
    }

    /// The slots from that position on that are side by side, `most` at most.
    #[inline(always)]
    pub(crate) fn side_by_side(&self, position: u64, most: u64) -> &[Slot<M>] {
        let place = position & self.mask;
        let count = most.min(self.mask + 1 - place) as usize;
        // SAFETY: as in `slot`, and none of these places is beyond the mask. From the window's own pointer: one to a slot may reach that slot only.
        unsafe {
            let first = self.words.as_ptr().cast::<Slot<M>>().add(place as usize);
            core::slice::from_raw_parts(first, count)
        }
    }
}

impl<const M: usize> Slot<M> {
    /// Copies the message, which nobody writes now: see [`load_owned`].
    #[inline(always)]
    pub(crate) fn copy_owned(&self) -> [u64; M] {
        let mut copy = [0; M];
        for (value, word) in copy.iter_mut().zip(&self.message) {
            *value = load_owned(word);
        }
        copy
    }
}

/// Where a consumer looks for its next message: one of the slots, which it only reads. A look is two loads.
// In this order: see `ring::spsc::Consumer`.
#[repr(C)]
pub(crate) struct Cursor<const M: usize> {
    /// One of these slots.
    at: NonNull<Slot<M>>,
    slots: Slots<M>,
}

// SAFETY: the pointer is a shared reference to atomics of the slots, which go with it.
unsafe impl<const M: usize> Send for Cursor<M> {}

impl<const M: usize> Cursor<M> {
    /// At position 0.
    ///
    /// # Panics
    /// As [`Slots::new`].
    pub(crate) fn new(view: View) -> Self {
        let slots = Slots::new(view.0);
        Self { at: NonNull::from(slots.slot(0)), slots }
    }

    /// Looks at the slot of that position from now on.
    #[inline(always)]
    pub(crate) fn go_to(&mut self, position: u64) {
        self.at = NonNull::from(self.slots.slot(position));
    }

    #[inline(always)]
    fn slot(&self) -> &Slot<M> {
        // SAFETY: it is one of the slots, whose memory they keep wherever this was moved.
        unsafe { self.at.as_ref() }
    }

    /// Asks the processor for the slot behind that one (behind the last one: for whatever is there).
    #[inline(always)]
    pub(crate) fn ask_ahead(&self) {
        prefetch_ahead(self.slot(), size_of::<Slot<M>>());
    }

    /// The sequence of that slot.
    #[inline(always)]
    pub(crate) fn sequence(&self, ordering: Ordering) -> u64 {
        self.slot().sequence.load(ordering)
    }

    /// The sequence of the slot of that position, wherever it looks.
    #[inline(always)]
    pub(crate) fn sequence_of(&self, position: u64, ordering: Ordering) -> u64 {
        self.slots.slot(position).sequence.load(ordering)
    }

    /// The slots from that position on that are side by side, `most` at most, wherever it looks.
    #[inline(always)]
    pub(crate) fn side_by_side(&self, position: u64, most: u64) -> &[Slot<M>] {
        self.slots.side_by_side(position, most)
    }

    /// Copies its message, which nobody writes now: see [`load_owned`].
    #[inline(always)]
    pub(crate) fn copy_owned(&self) -> [u64; M] {
        self.slot().copy_owned()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn every_position_has_its_slot_also_when_its_memory_has_no_other_owner() {
        let words = Region::heap(40).words();
        let slots = Slots::<2>::new(words.window(16, 24));
        assert_eq!(slots.mask(), 7);
        for position in 0..20 {
            slots.slot(position).sequence.store(position, Ordering::Relaxed);
            slots.slot(position).message[1].store(100 + position, Ordering::Relaxed);
        }
        slots.slot(u64::MAX).message[0].store(5, Ordering::Relaxed);
        let mut cursor = Cursor::<2>::new(words.window(16, 24).into());
        drop(words);
        for position in 12..20 {
            cursor.go_to(position);
            let moved = cursor;
            assert_eq!(moved.sequence(Ordering::Relaxed), position);
            assert_eq!(moved.copy_owned()[1], 100 + position);
            cursor = moved;
        }
        cursor.go_to(7);
        assert_eq!(cursor.copy_owned()[0], 5);
    }

    #[test]
    fn slots_side_by_side_end_with_the_last_one() {
        let slots = Slots::<2>::new(Region::heap(40).words().window(16, 24));
        for place in 0..8u64 {
            slots.slot(place).sequence.store(place, Ordering::Relaxed);
        }
        for (position, most, expected) in
            [(0, 8, 0..8), (3, 2, 3..5), (13, 99, 5..8), (7, u64::MAX, 7..8), (2, 0, 2..2)]
        {
            let found =
                slots.side_by_side(position, most).iter().map(|slot| slot.sequence.load(Ordering::Relaxed));
            assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{position}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a panic takes seconds there")]
    fn what_is_no_power_of_two_of_slots_is_refused() {
        for words in [0, 2, 4, 9, 25] {
            let words = Region::heap(40).words().window(0, words);
            assert!(catch_unwind(AssertUnwindSafe(|| drop(Slots::<2>::new(words)))).is_err());
        }
    }

    #[test]
    fn a_word_is_that_word() {
        let words = Region::heap(8).words();
        let word = Word::new(&words, 7);
        word.store(9, Ordering::Relaxed);
        assert_eq!(words[7].load(Ordering::Relaxed), 9);
        drop(words);
        assert_eq!(word.load(Ordering::Relaxed), 9);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn a_word_outside_is_refused() {
        drop(Word::new(&Region::heap(8).words(), 8));
    }
}
