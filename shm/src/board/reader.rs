//! The reading end of a board, on pages that it cannot write; there may be any number.

use super::{BoardError, BoardShape};
use crate::memory::ReadOnlyWords;
use crate::sync::{Ordering, fence, spin_hint};
use thiserror::Error;

/// The version number of a board's value, and the time that its writer gave for the write, in ticks
/// of the writer's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The cell's version: 1 for the first write, then one more each.
    pub version: u64,
    /// Time at which the writer wrote the value, in ticks of its clock.
    pub ticks: u64,
}

/// Errors of reading a value from a board in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Each time a value was copied, the writer overwrote it. A correct writer does that only if it
    /// writes more than the board's slots in the time of one copy, again and again.
    #[error(
        "the writer overtook {tries} reads in a row: it writes faster than this value can be copied, or it is hostile"
    )]
    Overtaken {
        /// Number of attempts to read.
        tries: u32,
    },
    /// The version that was asked for is overwritten, or about to be.
    #[error("version {version} is overwritten: the newest one is {newest}")]
    Overwritten {
        /// The version that was asked for.
        version: u64,
        /// The newest version.
        newest: u64,
    },
    /// The version went backwards: no honest writer does that.
    #[error("the version went backwards, from {seen} to {found}: the writer broke the rules")]
    Backwards {
        /// The version that was read before.
        seen: u64,
        /// The version that is in the board now.
        found: u64,
    },
}

/// Attempts of [`Reader::read`].
const TRIES: u32 = if cfg!(loom) { 2 } else { 1_000 };

/// A reading end of a board, which copies the newest values that the board's one writer has
/// written. A board may have any number of readers; a reader writes nothing to it, and the writer
/// does not notice the reader.
#[derive(Clone)]
pub struct Reader {
    view: ReadOnlyWords,
    shape: BoardShape,
}

impl Reader {
    /// Attaches a reading end to a board in shared memory whose header is already written.
    ///
    /// # Errors
    /// A header that is not a board's, or does not fit the segment.
    pub fn attach(view: &ReadOnlyWords) -> Result<Self, BoardError> {
        Ok(Self { shape: BoardShape::read(view)?, view: view.clone() })
    }

    /// Attaches a reading end to a board of a known shape, without trusting the board's header.
    ///
    /// # Errors
    /// A segment that does not have the size of such a board.
    pub fn attach_as(shape: BoardShape, view: &ReadOnlyWords) -> Result<Self, BoardError> {
        shape.check_size(view.len())?;
        Ok(Self { shape, view: view.clone() })
    }

    /// Returns the board's dimensions: number of cells, words of a value, slots of a cell.
    pub fn shape(&self) -> BoardShape {
        self.shape
    }

    /// Returns the version of the newest value in a board's cell; 0 before the first write.
    /// Acquire: pairs with the writer's Release store of the version.
    ///
    /// # Panics
    /// If `cell` is out of range.
    #[inline(always)]
    pub fn version(&self, cell: usize) -> u64 {
        // Acquire: pairs with the writer's Release store of the version.
        self.view.load(self.shape.version_at(cell), Ordering::Acquire)
    }

    /// Copies the newest value of a board's cell, never a torn one; `None` before the first write.
    /// Tries a thousand times.
    ///
    /// # Errors
    /// [`ReadError::Overtaken`]: `into` holds nothing of use then.
    ///
    /// # Panics
    /// If `cell` is out of range or `into` has a length other than the board's values.
    #[inline]
    pub fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        for _ in 0..TRIES {
            if let Ok(stamp) = self.try_read(cell, into) {
                return Ok(stamp);
            }
            spin_hint();
        }
        Err(ReadError::Overtaken { tries: TRIES })
    }

    /// Copies the value of a given version of a board's cell, which may be older than the newest;
    /// `None` before it is written. So several readers can use one version. A board keeps the
    /// newest `slots − 1` versions: the newest alone where a value has up to 16 bytes.
    ///
    /// # Errors
    /// [`ReadError::Overwritten`]: `into` holds nothing of use then.
    ///
    /// # Panics
    /// As [`Reader::read`].
    #[inline]
    pub fn read_version(
        &self,
        cell: usize,
        version: u64,
        into: &mut [u64],
    ) -> Result<Option<Stamp>, ReadError> {
        // Acquire, within: if this version or a later one is published, its words are there.
        if version == 0 || self.version(cell) < version {
            return Ok(None);
        }
        let (ticks, newest) = self.copy(cell, version, into, &mut |_| ());
        if self.is_whole(version, newest) {
            Ok(Some(Stamp { version, ticks }))
        } else {
            Err(ReadError::Overwritten { version, newest })
        }
    }

    /// Copies the newest value of a board's cell in one attempt, which fails if the writer may have
    /// overwritten the value during the copy. `None` before the first write. Wait-free: as many
    /// loads as the value has words, plus three.
    ///
    /// # Errors
    /// [`ReadError::Overtaken`].
    ///
    /// # Panics
    /// As [`Reader::read`].
    #[inline(always)]
    pub fn try_read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        self.try_read_with(cell, into, &mut |_| ())
    }

    /// Reads a board's cell as [`Reader::try_read`] does, and calls `at` before each load and after
    /// the last one, for tests. It receives the index of the word, so that tests can let the writer
    /// run there.
    ///
    /// # Errors
    /// [`ReadError::Overtaken`].
    ///
    /// # Panics
    /// As [`Reader::read`].
    #[inline(always)]
    pub fn try_read_with(
        &self,
        cell: usize,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> Result<Option<Stamp>, ReadError> {
        let version = self.version(cell);
        if version == 0 {
            return Ok(None);
        }
        let (ticks, after) = self.copy(cell, version, into, at);
        if self.is_whole(version, after) {
            Ok(Some(Stamp { version, ticks }))
        } else {
            Err(ReadError::Overtaken { tries: 1 })
        }
    }

    /// Returns `true` if a copied version was not overwritten while it was copied. The cell's
    /// version was `after`, and the writer of version v + slots, which uses the same slot, begins
    /// only after v + slots − 1 was published.
    #[inline(always)]
    pub(super) fn is_whole(&self, version: u64, after: u64) -> bool {
        // Huge, and so refused, also where a hostile version went backwards.
        after.wrapping_sub(version) < self.shape.slots() as u64 - 1
    }

    /// Copies the slot of a version, and returns its time and the cell's version after the copy.
    /// That shows whether the copy is whole.
    #[inline(always)]
    pub(super) fn copy(
        &self,
        cell: usize,
        version: u64,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> (u64, u64) {
        let count = self.shape.words();
        assert_eq!(into.len(), count, "room for a value of the board's size");
        let slot = self.shape.slot_at(cell, version);
        let ticks = self.view.load(slot, Ordering::Relaxed);
        self.view.copy(slot + 1, into, at);
        at(count);
        // Acquire: pairs with the writer's Release fence. If a word above was of a later version,
        // then the load below sees the versions before that one.
        fence(Ordering::Acquire);
        (ticks, self.view.load(self.shape.version_at(cell), Ordering::Relaxed))
    }

    #[cfg(not(loom))]
    pub(super) fn sleep(&self, cell: usize, version: u64, timeout: core::time::Duration) {
        self.view.wait(self.shape.version_at(cell), version as u32, timeout);
    }
}
