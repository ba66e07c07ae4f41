//! What a stamp log says, read in one pass that can go on later: for who takes the place of the one that writes it.

use crate::stamps::{Point, RECORD_WORDS, Record, TouchWritten};
use crate::status::LOG_OFFSET;
use crate::wire::OrderId;
use shm::memory::View;
use shm::sync::Ordering;

/// How far a log was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The next record to look at.
    next: usize,
}

impl LogTail {
    /// Shows what was appended since the last look. The log may still be written.
    pub fn look(&mut self, log: &View, mut show: impl FnMut(Record)) {
        let records = log.len().saturating_sub(LOG_OFFSET) / RECORD_WORDS;
        while self.next < records {
            let at = LOG_OFFSET + self.next * RECORD_WORDS;
            // Acquire: pairs with the Release in `append`, which stores it last.
            let key = log.load(at, Ordering::Acquire);
            if key == 0 {
                return;
            }
            self.next += 1;
            Record::from_words(key, log.load(at + 1, Ordering::Relaxed)).into_iter().for_each(&mut show);
        }
    }
}

/// Counts of an exchange's records, up to where its log was looked at last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    tail: LogTail,
    /// Stamps of orders that an exchange has taken.
    pub orders: u64,
    /// The last of these orders.
    pub last_order: Option<OrderId>,
    /// Stamps of reports that it has given.
    pub reports: u64,
    /// The last order whose trigger is there.
    pub last_triggered: Option<OrderId>,
    /// The last version of each instrument's touch; 0 for none.
    pub touches: Vec<u64>,
}

impl Tally {
    /// Of a log with touches of so many instruments; nothing is counted yet.
    pub fn new(instruments: usize) -> Self {
        Self { touches: vec![0; instruments], ..Self::default() }
    }

    /// Counts what was appended since. The log may still be written.
    pub fn look(&mut self, log: &View) {
        let Self { tail, orders, last_order, reports, last_triggered, touches } = self;
        tail.look(log, |record| match record.point {
            Point::ExchangeRecv => {
                *orders += 1;
                *last_order = Some(record.id);
            }
            Point::ExchangeDone => *reports += 1,
            Point::Trigger => *last_triggered = Some(record.id),
            _ => {
                if let Some(written) = TouchWritten::of(&record)
                    && let Some(version) = touches.get_mut(usize::from(written.instrument))
                {
                    *version = written.version;
                }
            }
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stamps::{StampLog, count_point, last_of, last_versions};
    use shm::memory::Region;

    #[test]
    fn what_is_counted_in_parts_is_what_is_there() {
        let words = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let view: View = words.clone().into();
        let (mut log, mut tally) = (StampLog::new(&words), Tally::new(2));
        for n in 0..50_u64 {
            let id = OrderId::new(1, 0, n);
            match n % 5 {
                0 => log.append(Point::ExchangeRecv, id, n),
                1 => log.append(Point::ExchangeDone, id, n),
                2 => log.append(Point::Trigger, id, n),
                3 => log.append(Point::Due, id, n),
                _ => {
                    let written = TouchWritten { venue: 0, instrument: (n % 2) as u16, version: n, ticks: 9 };
                    log.append_record(written.record());
                }
            }
            if n % 7 == 0 {
                tally.look(&view);
            }
        }
        tally.look(&view);
        assert_eq!(tally.orders, count_point(&view, Point::ExchangeRecv) as u64);
        assert_eq!(tally.reports, count_point(&view, Point::ExchangeDone) as u64);
        assert_eq!(tally.last_order, last_of(&view, Point::ExchangeRecv));
        assert_eq!(tally.last_triggered, last_of(&view, Point::Trigger));
        assert_eq!(tally.touches, last_versions(&view, 2));
        assert_eq!(tally.orders, 8, "the log has room for 40");
    }
}
