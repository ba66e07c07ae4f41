//! A reading end that takes every version in order, as from a log, and is told what it missed.

use super::{ReadError, Reader, Stamp};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPoll {
    /// Nothing now.
    Empty,
    /// The next entry, in order.
    Entry(Stamp),
    /// So many entries were written over before they were read. The next one is half the slots
    /// behind the newest, so that there is room to catch up.
    Missed(u64),
}

/// A place in a log: entries read and entries missed add up to the version that it has come to.
pub struct LogReader {
    reader: Reader,
    cell: usize,
    seen: u64,
}

impl Reader {
    /// Follows a cell as a log: every version behind `seen`, in order, and how many were missed.
    /// [`Reader::version`] for what is still to come, 0 for all.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn follow(&self, cell: usize, seen: u64) -> LogReader {
        assert!(cell < self.shape().cells(), "cell {cell} of {}", self.shape().cells());
        LogReader { reader: self.clone(), cell, seen }
    }
}

impl LogReader {
    /// The version that it has come to, read or missed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Words of an entry.
    pub fn words(&self) -> usize {
        self.reader.shape().words()
    }

    /// The next entry, into `into`; see [`Next`]. Always done after as many loads as the value has
    /// words, and four.
    ///
    /// # Errors
    /// [`ReadError::Backwards`]: it stays where it is, and this comes again until the writer is beyond that place.
    ///
    /// # Panics
    /// If `into` has not as many words as the board's values.
    #[inline(always)]
    pub fn next(&mut self, into: &mut [u64]) -> Result<LogPoll, ReadError> {
        self.next_with(into, &mut |_| ())
    }

    /// The same, and calls `at` as [`Reader::try_read_with`] does.
    ///
    /// # Errors
    /// [`ReadError::Backwards`].
    ///
    /// # Panics
    /// As [`Follower::next`].
    #[inline(always)]
    pub fn next_with(&mut self, into: &mut [u64], at: &mut impl FnMut(usize)) -> Result<LogPoll, ReadError> {
        let Self { seen, cell, .. } = *self;
        let mut newest = self.reader.version(cell);
        if newest == seen {
            return Ok(LogPoll::Empty);
        }
        let next = seen.wrapping_add(1);
        if self.reader.is_whole(next, newest) {
            let (ticks, after) = self.reader.copy(cell, next, into, at);
            if self.reader.is_whole(next, after) {
                self.seen = next;
                return Ok(LogPoll::Entry(Stamp { version: next, ticks }));
            }
            newest = after;
        }
        self.skip(newest)
    }

    #[cold]
    fn skip(&mut self, newest: u64) -> Result<LogPoll, ReadError> {
        let goal = newest.saturating_sub(self.reader.shape().slots() as u64 / 2);
        // An honest writer is at least all slots ahead here.
        if goal <= self.seen {
            return Err(ReadError::Backwards { seen: self.seen, found: newest });
        }
        let missed = goal - self.seen;
        self.seen = goal;
        Ok(LogPoll::Missed(missed))
    }
}
