//! The writing end of a board: one at a time, and it never waits for readers.

use super::{BoardError, BoardShape};
use crate::memory::AtomicWords;
use crate::sync::{Ordering, fence};
use core::ops::ControlFlow;

/// The writing end of a board, of which there is one at a time: a successor is attached when its
/// predecessor's death is certain.
pub struct Writer {
    words: AtomicWords,
    shape: BoardShape,
    /// The version that each cell has: ours, never read back from shared memory.
    versions: Vec<u64>,
}

impl Writer {
    /// The version of a cell, 2^56, from which on attaching a writer fails; one write per
    /// nanosecond reaches it in more than two years. Such a version in a board means that the board
    /// was overwritten.
    pub const MAX_VERSION: u64 = 1 << 56;

    /// Attaches the writing end to a board in shared memory whose header is already written. The
    /// first writer, or the successor of a crashed one. Continues after the last version of each
    /// cell; a value that a crashed writer had not finished is lost.
    ///
    /// # Errors
    /// A header that is not a board's; [`BoardError::Version`].
    pub fn attach(words: &AtomicWords) -> Result<Self, BoardError> {
        Self::attach_as(BoardShape::read(&words.clone().into())?, words)
    }

    /// Attaches the writing end to a board of a known shape, without trusting the board's header.
    ///
    /// # Errors
    /// A segment that does not have the size of such a board; [`BoardError::Version`].
    pub fn attach_as(shape: BoardShape, words: &AtomicWords) -> Result<Self, BoardError> {
        shape.check_size(words.len())?;
        let version = |cell| {
            // Relaxed: the predecessor's death is certain, and so are all its stores.
            let found = words[shape.version_at(cell)].load(Ordering::Relaxed);
            if found < Self::MAX_VERSION { Ok(found) } else { Err(BoardError::Version { cell, found }) }
        };
        let versions = (0..shape.cells()).map(version).collect::<Result<_, _>>()?;
        Ok(Self { words: words.clone(), shape, versions })
    }

    /// Returns the board's dimensions: number of cells, words of a value, slots of a cell.
    pub fn shape(&self) -> BoardShape {
        self.shape
    }

    /// Returns the version of the newest value in a board's cell; 0 before the first write.
    ///
    /// # Panics
    /// If `cell` is out of range.
    pub fn version(&self, cell: usize) -> u64 {
        self.versions[cell]
    }

    /// Copies a cell's newest value, perhaps a crashed predecessor's, and returns its time in
    /// ticks; `None` before the first write. A value that another process overwrote is returned as
    /// it is.
    ///
    /// # Panics
    /// If `cell` is out of range or `value` has a length other than the board's values.
    pub fn last(&self, cell: usize, value: &mut [u64]) -> Option<u64> {
        let count = self.shape.words();
        assert_eq!(value.len(), count, "a value of the board's size");
        let version = self.versions[cell];
        let start = self.shape.slot_at(cell, version);
        let slot = &self.words[start..=start + count];
        if version == 0 {
            return None;
        }
        // Relaxed: ours, or those of a predecessor whose death is certain.
        for (word, place) in value.iter_mut().zip(&slot[1..]) {
            *word = place.load(Ordering::Relaxed);
        }
        Some(slot[0].load(Ordering::Relaxed))
    }

    /// Makes `value` the newest of a board's cell, written at `ticks`, and returns its version.
    /// Wait-free: as many stores as the value has words, plus two. Makes no system call: see
    /// [`Writer::wake`].
    ///
    /// # Panics
    /// If `cell` is out of range or `value` has a length other than the board's values.
    #[inline(always)]
    pub fn write(&mut self, cell: usize, ticks: u64, value: &[u64]) -> u64 {
        self.write_with(cell, ticks, value, &mut |_| ControlFlow::Continue(())).unwrap_or_default()
    }

    /// Writes as [`Writer::write`] does, and calls `at` before each store with the store's number.
    /// Store 0 is the time, then come the words, then the version. Its `Break` leaves the write
    /// there, as a death does, and gives `None`: for tests, models and benches.
    ///
    /// # Panics
    /// As [`Writer::write`].
    #[inline(always)]
    pub fn write_with(
        &mut self,
        cell: usize,
        ticks: u64,
        value: &[u64],
        at: &mut impl FnMut(usize) -> ControlFlow<()>,
    ) -> Option<u64> {
        let count = self.shape.words();
        assert_eq!(value.len(), count, "a value of the board's size");
        let version = self.versions[cell] + 1;
        // Release: pairs with the reader's Acquire fence. A reader that sees one of the words below
        // also sees the versions before this one, and so that the slot's old value is gone.
        fence(Ordering::Release);
        let start = self.shape.slot_at(cell, version);
        let slot = &self.words[start..=start + count];
        if at(0).is_break() {
            return None;
        }
        // Relaxed, as the words below: the version publishes them.
        slot[0].store(ticks, Ordering::Relaxed);
        for (place, (word, value)) in slot[1..].iter().zip(value).enumerate() {
            if at(place + 1).is_break() {
                return None;
            }
            word.store(*value, Ordering::Relaxed);
        }
        if at(count + 1).is_break() {
            return None;
        }
        // Release: pairs with the reader's first load of the version; it sees the words written
        // before.
        self.words[self.shape.version_at(cell)].store(version, Ordering::Release);
        self.versions[cell] = version;
        Some(version)
    }

    /// Wakes the readers that sleep until the board's cell has a newer value, by a system call. Its
    /// time grows with the number of sleepers. Without it they poll every [`super::MAX_SLEEP`].
    ///
    /// # Panics
    /// If `cell` is out of range.
    pub fn wake(&self, cell: usize) {
        crate::futex::wake_all(&self.words[self.shape.version_at(cell)]);
    }
}
