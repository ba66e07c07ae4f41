//! Totals of a log's records by point, for a successor of the log's writer.
//!
//! All of it follows from the keys, in their order. So it can be summed up piece by piece, and what
//! the spiller has summed up of chunks that have left memory ([`crate::spill`]) goes on in who
//! reads the rest.

use crate::record::{Point, Record, TouchWritten, code_of};
use crate::wire::{ID_WIDTH, OrderId};
use shm::sync::{AtomicU64, Ordering};

/// A point's code has six bits. Loom has one point.
pub(crate) const POINTS: usize = if cfg!(loom) { 2 } else { 1 << (64 - ID_WIDTH) };

/// The sums of a log's records, from its beginning up to some place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointTotals {
    counts: [u64; POINTS],
    /// The last key of each point; 0 for none.
    last: [u64; POINTS],
    versions: Vec<u64>,
}

impl PointTotals {
    /// Of no record, in a log with touches of so many instruments.
    pub fn new(instruments: usize) -> Self {
        Self { counts: [0; POINTS], last: [0; POINTS], versions: vec![0; instruments] }
    }

    /// Adds the next record, by its key. Any word will do: one that is no record's is counted under
    /// its code.
    pub fn add(&mut self, key: u64) {
        let code = usize::from(code_of(key));
        if let (Some(count), Some(last)) = (self.counts.get_mut(code), self.last.get_mut(code)) {
            *count = count.saturating_add(1);
            *last = key;
        }
        if code == Point::Touch as usize
            && let Some(written) = Record::from_words(key, 0).as_ref().and_then(TouchWritten::of)
            && let Some(version) = self.versions.get_mut(usize::from(written.instrument))
        {
            *version = written.version;
        }
    }

    /// How many records of that point there are.
    pub fn count(&self, point: Point) -> u64 {
        self.counts.get(point as usize).copied().unwrap_or(0)
    }

    /// The order of the last record of that point.
    pub fn last(&self, point: Point) -> Option<OrderId> {
        let key = self.last.get(point as usize)?;
        Record::from_words(*key, 0).map(|record| record.id)
    }

    /// The last version of each instrument's touch; 0 for none.
    pub fn versions(&self) -> &[u64] {
        &self.versions
    }

    /// Words of a table of them.
    pub(crate) const fn words(instruments: usize) -> usize {
        2 * POINTS + instruments
    }

    /// Those of a table, whose words `load` gives.
    pub(crate) fn of_table(instruments: usize, load: impl Fn(usize) -> u64) -> Self {
        Self {
            counts: core::array::from_fn(&load),
            last: core::array::from_fn(|code| load(POINTS + code)),
            versions: (2 * POINTS..Self::words(instruments)).map(load).collect(),
        }
    }

    /// Writes the table. Who sees a word of it sees what was stored before.
    pub(crate) fn store(&self, table: &[AtomicU64]) {
        let words = self.counts.iter().chain(&self.last).chain(&self.versions);
        for (word, value) in table.iter().zip(words) {
            // Release: pairs with the Acquire of a reader that is late: it sees that the table is
            // written anew.
            word.store(*value, Ordering::Release);
        }
    }
}
