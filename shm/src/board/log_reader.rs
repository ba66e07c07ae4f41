//! Reads every version of a cell in order, as from a log, and counts the entries missed.

use super::{ReadError, Reader, Stamp};

/// The result of polling a board as a log: an entry, nothing new, or a number of missed entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPoll {
    /// The log has no new entry now.
    Empty,
    /// The next entry of the log, with its version and time, was copied.
    Entry(Stamp),
    /// The number of entries that were overwritten before this reader read them. The reader
    /// continues half the slots before the newest entry, so that it can catch up.
    Missed(u64),
}

/// A reader that takes the versions of a board's cell in order, as the entries of a log, and counts
/// the versions that it missed. Its version is the number of the last entry read or missed.
pub struct LogReader {
    reader: Reader,
    cell: usize,
    seen: u64,
}

impl Reader {
    /// Returns a reader of a board's cell as a log: every version after `seen` in order, and the
    /// number missed. Pass [`Reader::version`] to begin with the next version, 0 to read all.
    ///
    /// # Panics
    /// If `cell` is out of range.
    pub fn follow(&self, cell: usize, seen: u64) -> LogReader {
        assert!(cell < self.shape().cells(), "cell {cell} of {}", self.shape().cells());
        LogReader { reader: self.clone(), cell, seen }
    }
}

impl LogReader {
    /// Returns the version (number) of the log's last entry that was read or missed.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the number of 64-bit words in each entry of the log.
    pub fn words(&self) -> usize {
        self.reader.shape().words()
    }

    /// Copies the log's next entry into `into`; returns the entry's version, that there is none, or
    /// the number of missed entries. Wait-free: as many loads as the value has words, plus four.
    ///
    /// # Errors
    /// [`ReadError::Backwards`]: the position stays, and the error repeats until the writer has
    /// passed it.
    ///
    /// # Panics
    /// If `into` has not as many words as the board's values.
    #[inline(always)]
    pub fn next(&mut self, into: &mut [u64]) -> Result<LogPoll, ReadError> {
        self.next_with(into, &mut |_| ())
    }

    /// Copies the log's next entry as [`LogReader::next`] does, and calls `at` with a word's index
    /// before the word is loaded, for tests. After the last word it is called once more, as by
    /// [`Reader::try_read_with`].
    ///
    /// # Errors
    /// [`ReadError::Backwards`].
    ///
    /// # Panics
    /// As [`LogReader::next`].
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
