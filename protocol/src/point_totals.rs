//! Totals of a log's records by point, for a restarted writer of the log.
//!
//! The totals depend on the keys and their order only. So they can be computed in parts: a reader
//! continues with the totals that the spiller computed for the saved chunks ([`crate::spill`]).

use crate::record::{Point, Record, TopOfBookWritten, code_of};
use crate::wire::{ID_WIDTH, OrderId};
use shm::sync::{AtomicU64, Ordering};

/// Number of codes that a stamp point can have: six bits; loom uses one point.
pub(crate) const POINTS: usize = if cfg!(loom) { 2 } else { 1 << (64 - ID_WIDTH) };

/// Number and last order of a stamp log's records for each stamp point, up to some position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointTotals {
    counts: [u64; POINTS],
    /// The last key of each point; 0 for none.
    last: [u64; POINTS],
    versions: Vec<u64>,
}

impl PointTotals {
    /// Creates the totals of an empty stamp log, for that number of instruments.
    pub fn new(instruments: usize) -> Self {
        Self { counts: [0; POINTS], last: [0; POINTS], versions: vec![0; instruments] }
    }

    /// Counts the log's next record, given its key word. Any word is accepted and counted under its
    /// code.
    pub fn add(&mut self, key: u64) {
        let code = usize::from(code_of(key));
        if let (Some(count), Some(last)) = (self.counts.get_mut(code), self.last.get_mut(code)) {
            *count = count.saturating_add(1);
            *last = key;
        }
        if code == Point::TopOfBook as usize
            && let Some(written) = Record::from_words(key, 0).as_ref().and_then(TopOfBookWritten::from_record)
            && let Some(version) = self.versions.get_mut(usize::from(written.instrument))
        {
            *version = written.version;
        }
    }

    /// Returns the number of records of one stamp point.
    pub fn count(&self, point: Point) -> u64 {
        self.counts.get(point as usize).copied().unwrap_or(0)
    }

    /// Returns the order in the last record of a stamp point.
    pub fn last(&self, point: Point) -> Option<OrderId> {
        let key = self.last.get(point as usize)?;
        Record::from_words(*key, 0).map(|record| record.id)
    }

    /// Returns the last top-of-book version of each instrument; 0 for none.
    pub fn versions(&self) -> &[u64] {
        &self.versions
    }

    /// Returns the size in words of a table of totals in shared memory.
    pub(crate) const fn table_words(instruments: usize) -> usize {
        2 * POINTS + instruments
    }

    /// Reads the totals from a table in shared memory, word by word with `load`.
    pub(crate) fn from_table(instruments: usize, load: impl Fn(usize) -> u64) -> Self {
        Self {
            counts: core::array::from_fn(&load),
            last: core::array::from_fn(|code| load(POINTS + code)),
            versions: (2 * POINTS..Self::table_words(instruments)).map(load).collect(),
        }
    }

    /// Writes the totals to a table in shared memory. A reader that sees one of its words sees all
    /// earlier stores.
    pub(crate) fn store(&self, table: &[AtomicU64]) {
        let words = self.counts.iter().chain(&self.last).chain(&self.versions);
        for (word, value) in table.iter().zip(words) {
            // Release: pairs with the Acquire of a slow reader, which then sees that the table is
            // being overwritten.
            word.store(*value, Ordering::Release);
        }
    }
}
