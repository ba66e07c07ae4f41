//! Words that are reached again and again: checked once, when they are chosen, and from then on reached without a check.

use super::{View, Words};
use crate::prefetch::prefetch_ahead;
use crate::sync::{AtomicU64, Ordering, load_owned, load_read_only};
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

    /// Where the slot of that position is; also a pointer to all others of the window.
    #[inline(always)]
    fn pointer(&self, position: u64) -> NonNull<Slot<M>> {
        let place = (position & self.mask) as usize;
        // SAFETY: as in `slot`.
        unsafe { NonNull::new_unchecked(self.words.as_ptr().cast_mut().cast::<Slot<M>>().add(place)) }
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

/// Where a consumer looks for its next message: a slot, which it only reads, of a *run* of slots side by side. A look is two loads.
// In this order: see `ring::spsc::Consumer`.
#[repr(C)]
pub(crate) struct Cursor<const M: usize> {
    /// One of the slots of the run.
    at: NonNull<Slot<M>>,
    /// The first one of them.
    first: NonNull<Slot<M>>,
    /// Bytes from there to the last one.
    reach: u64,
    slots: Slots<M>,
}

// SAFETY: the pointers are shared references to atomics of the slots, which go with them.
unsafe impl<const M: usize> Send for Cursor<M> {}

impl<const M: usize> Cursor<M> {
    /// Bytes of a slot.
    const SIZE: u64 = size_of::<Slot<M>>() as u64;

    /// At the first slot of the first run. Runs are so many slots long.
    ///
    /// # Panics
    /// As [`Slots::new`]; and if the window is no power of two of runs.
    pub(crate) fn new(view: View, run: u64) -> Self {
        let slots = Slots::new(view.0);
        assert!(run.is_power_of_two() && run <= slots.mask + 1, "checked geometries only");
        let first = slots.pointer(0);
        Self { at: first, first, reach: (run - 1) * Self::SIZE, slots }
    }

    /// Looks at the first slot of that run from now on (modulo the runs that there are).
    #[inline(always)]
    pub(crate) fn enter(&mut self, run: u64) {
        self.first = self.slots.pointer(run.wrapping_mul(self.reach / Self::SIZE + 1));
        self.at = self.first;
    }

    /// Looks at that slot of its run from now on: the place is in the bits of the word from `SHIFT` on (modulo the slots of a run). Where a slot is a power of two of bytes, nothing
    /// but a shift, a mask and a sum stand between the word and the address: in a stream each look may wait for the word before it, and that is the time that a message takes.
    #[inline(always)]
    pub(crate) fn go_to<const SHIFT: u32>(&mut self, word: u64) {
        let bits = Self::SIZE.trailing_zeros();
        let bytes = if Self::SIZE.is_power_of_two() && bits <= SHIFT {
            word >> (SHIFT - bits) & self.reach
        } else {
            (word >> SHIFT & (self.reach / Self::SIZE)) * Self::SIZE
        };
        // SAFETY: so many bytes behind the first slot of a run is another one of it: whole slots, and no more than the reach. All slots of a run are in the window (both
        // are powers of two of slots, and a run begins at a multiple of its length), and the pointer is the window's.
        self.at = unsafe { self.first.byte_add(bytes as usize) };
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
        load_read_only(&self.slot().sequence, ordering)
    }

    /// The sequence of the slot of that position, wherever it looks.
    #[inline(always)]
    pub(crate) fn sequence_of(&self, position: u64, ordering: Ordering) -> u64 {
        load_read_only(&self.slots.slot(position).sequence, ordering)
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
        drop(words);
        for position in 12..20 {
            assert_eq!(slots.slot(position).copy_owned()[1], 100 + position);
        }
        assert_eq!(slots.slot(7).copy_owned()[0], 5);
    }

    /// Four runs of four slots of so many words, each of which says its place; what a cursor finds that goes there.
    fn found<const M: usize>(run: u64, word: u64) -> u64 {
        let slots = Slots::<M>::new(Region::heap(16 * (M + 1)).words());
        for place in 0..16 {
            slots.slot(place).sequence.store(place, Ordering::Relaxed);
            slots.slot(place).message[0].store(place, Ordering::Relaxed);
        }
        let mut cursor = Cursor::<M>::new(slots.words.clone().into(), 4);
        drop(slots);
        cursor.enter(run);
        cursor.go_to::<12>(word << 12 | 0xfff);
        // Also when its memory has no other owner, and wherever it is.
        let moved = cursor;
        assert_eq!(moved.copy_owned()[0], moved.sequence(Ordering::Relaxed));
        moved.sequence(Ordering::Relaxed)
    }

    #[test]
    fn a_cursor_goes_to_the_slots_of_its_run() {
        for run in 0..4 {
            for place in 0..4 {
                // Slots of 16, 24 and 64 bytes.
                assert_eq!(found::<1>(run, place), 4 * run + place);
                assert_eq!(found::<2>(run, place), 4 * run + place);
                assert_eq!(found::<7>(run, place), 4 * run + place);
            }
        }
    }

    #[test]
    fn no_word_leads_a_cursor_out_of_its_run_and_no_number_out_of_the_slots() {
        for word in [4, 5, u64::MAX >> 12, 1 << 40 | 2] {
            assert_eq!((found::<2>(5, word), found::<7>(5, word)), (4 + word % 4, 4 + word % 4));
        }
        for run in [1 << 62, u64::MAX, u64::MAX - 2] {
            assert_eq!(found::<7>(run, 3), run % 4 * 4 + 3);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a panic takes seconds there")]
    fn runs_that_do_not_make_up_the_slots_are_refused() {
        let view = || Region::heap(32).words().into();
        for run in [0, 3, 16] {
            assert!(catch_unwind(AssertUnwindSafe(|| drop(Cursor::<3>::new(view(), run)))).is_err());
        }
        drop(Cursor::<3>::new(view(), 8));
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
