//! Scans the stamp log of earlier incarnations, for a restarted thread.

use crate::record::{Record, TopOfBookWritten, code_of};
use crate::stamps::{self, Point, RECORD_WORDS};
use crate::status::LOG_OFFSET;
use crate::wire::{ID_WIDTH, OrderId};
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;
use std::collections::HashSet;

/// Number of codes that a stamp point can have: six bits.
const POINTS: usize = 1 << (64 - ID_WIDTH);

/// A stamp log's totals up to some position: for each stamp point, the number of records and the
/// last order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTotals {
    next: usize,
    counts: [u64; POINTS],
    /// The last key of each point; 0 for none.
    last: [u64; POINTS],
    versions: Vec<u64>,
}

impl Default for LogTotals {
    fn default() -> Self {
        Self::new(0)
    }
}

impl LogTotals {
    /// Creates empty totals, for a scan from the start of a stamp log, in a run with `instruments`
    /// instruments.
    pub fn new(instruments: usize) -> Self {
        Self { next: 0, counts: [0; POINTS], last: [0; POINTS], versions: vec![0; instruments] }
    }

    /// Adds the stamp log's records after the position of the last scan to the totals. The log may
    /// still be written.
    pub fn scan(&mut self, log: &ReadOnlyWords) {
        let records = log.len().saturating_sub(LOG_OFFSET) / RECORD_WORDS;
        while self.next < records {
            // Acquire: pairs with the Release in `append`, which stores it last.
            let key = log.load(LOG_OFFSET + self.next * RECORD_WORDS, Ordering::Acquire);
            if key == 0 {
                return;
            }
            self.next += 1;
            self.add(key);
        }
    }

    /// Counts a record, given its key word. Any word is accepted and counted under its code.
    fn add(&mut self, key: u64) {
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

    /// Returns the number of the log's records of one stamp point.
    pub fn count(&self, point: Point) -> u64 {
        self.counts.get(point as usize).copied().unwrap_or(0)
    }

    /// Returns the id of the order in the log's last record of a stamp point.
    pub fn last(&self, point: Point) -> Option<OrderId> {
        let key = self.last.get(point as usize)?;
        Record::from_words(*key, 0).map(|record| record.id)
    }

    /// Returns the last top-of-book version of each instrument in the stamp log; 0 for none.
    pub fn versions(&self) -> &[u64] {
        &self.versions
    }
}

/// Searches a stamp log backwards and returns which of the `wanted` record keys it has found, and
/// the number of records read. A key is the point, order id and detail of a record
/// ([`stamps::key_with`]). `is_over` is called with `None`, and then with each key read; the search
/// ends when it returns `true`.
pub fn keys_from_end(
    log: &ReadOnlyWords,
    wanted: &HashSet<u64>,
    mut is_over: impl FnMut(Option<u64>) -> bool,
) -> (HashSet<u64>, usize) {
    let (mut keys_found, mut records_read) = (HashSet::new(), 0);
    if is_over(None) {
        return (keys_found, records_read);
    }
    for key in stamps::keys(log).rev() {
        records_read += 1;
        if wanted.contains(&key) {
            keys_found.insert(key);
        }
        if is_over(Some(key)) {
            break;
        }
    }
    (keys_found, records_read)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stamps::StampLog;
    use shm::memory::Region;

    fn append(log: &mut StampLog, n: u64) {
        let id = OrderId::new(1, 0, n);
        match n % 5 {
            0 => log.append(Point::ExchangeRecv, id, n),
            1 => log.append(Point::ExchangeDone, id, n),
            2 => log.append(Point::Trigger, id, n),
            3 => log.append(Point::Due, id, n),
            _ => {
                let written = TopOfBookWritten { venue: 0, instrument: (n % 2) as u16, version: n, ticks: 9 };
                log.append_record(written.record());
            }
        }
    }

    #[test]
    fn totals_computed_in_parts_equal_whole_log() {
        let words = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let view = words.clone().into();
        let (mut log, mut totals) = (StampLog::new(&words), LogTotals::new(2));
        for n in 0..50_u64 {
            append(&mut log, n);
            if n % 7 == 0 {
                totals.scan(&view);
            }
        }
        totals.scan(&view);
        for (point, last) in [(Point::ExchangeRecv, 35), (Point::ExchangeDone, 36), (Point::Trigger, 37)] {
            assert_eq!(totals.count(point), 8, "the log has room for 40");
            assert_eq!(totals.last(point), Some(OrderId::new(1, 0, last)));
        }
        assert_eq!(totals.versions(), [34, 39]);
    }
}
