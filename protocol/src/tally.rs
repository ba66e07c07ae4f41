//! Scans a stamp log for a successor of its writer.

use crate::plan::{Plan, ThreadPlan};
use crate::segments;
use crate::spill::{Ring, SpillLocation, UnspilledTail};
use crate::stamps::{self, Point, RECORD_WORDS};
use crate::status::{self, LOG_OFFSET};
use crate::sums::PointTotals;
use crate::topology;
use shm::attached::Attached;
use shm::memory::{ReadOnlyWords, RegionError};
use shm::sync::Ordering;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;

/// A thread's log, for its next incarnation.
pub struct PriorLog {
    log: ReadOnlyWords,
    spilled: Option<(ReadOnlyWords, Ring)>,
}

/// What was counted of a log, up to where it was looked at last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCursor {
    place: SpillLocation,
    /// The next record of a log that is not spilled.
    next: usize,
    /// What it came to.
    pub sums: PointTotals,
}

impl LogCursor {
    /// Of a log with touches of so many instruments; nothing is counted yet.
    pub fn new(instruments: usize) -> Self {
        Self { place: SpillLocation::default(), next: 0, sums: PointTotals::new(instruments) }
    }
}

impl Default for LogCursor {
    /// Of a log without touches.
    fn default() -> Self {
        Self::new(0)
    }
}

impl PriorLog {
    /// The log in a thread's segment; where it is spilled, with what the spiller says of it.
    pub const fn new(log: ReadOnlyWords, spilled: Option<(ReadOnlyWords, Ring)>) -> Self {
        Self { log, spilled }
    }

    fn rest(&self) -> Option<UnspilledTail<'_>> {
        self.spilled.as_ref().map(|(spilled, ring)| UnspilledTail::new(&self.log, spilled, *ring))
    }

    /// Counts what was appended since the last look. The log may still be written. Where it is
    /// spilled this looks at what has not left it.
    pub fn look(&self, tally: &mut LogCursor) {
        let LogCursor { place, next, sums } = tally;
        if let Some(rest) = self.rest() {
            return rest.look(place, sums);
        }
        let records = self.log.len().saturating_sub(LOG_OFFSET) / RECORD_WORDS;
        while *next < records {
            // Acquire: pairs with the Release in `append`, which stores it last.
            let key = self.log.load(LOG_OFFSET + *next * RECORD_WORDS, Ordering::Acquire);
            if key == 0 {
                return;
            }
            *next += 1;
            sums.add(key);
        }
    }

    /// Whether records are missing from it, because the spiller was behind: then no count of them
    /// says what was done.
    pub fn is_partial(&self) -> bool {
        self.spilled.is_some() && status::read(&self.log).lost().records > 0
    }

    /// Which of these keys ([`stamps::key_with`]) the log has between its end and where it
    /// `is_over`, and how many records were looked at. That is asked before the first one (`None`),
    /// and behind each with its key, the newest first. `saved` gives the keys of a chunk that has
    /// left memory.
    ///
    /// # Errors
    /// What `saved` refused.
    pub fn keys_from_end(
        &self,
        wanted: &HashSet<u64>,
        mut is_over: impl FnMut(Option<u64>) -> bool,
        saved: impl FnMut(u64) -> io::Result<Vec<u64>>,
    ) -> io::Result<(HashSet<u64>, usize)> {
        let (mut found, mut looked) = (HashSet::new(), 0);
        if is_over(None) {
            return Ok((found, looked));
        }
        let each = |key| {
            looked += 1;
            if wanted.contains(&key) {
                found.insert(key);
            }
            if is_over(Some(key)) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        match self.rest() {
            Some(rest) => rest.each_back(saved, each)?,
            None => drop(stamps::keys(&self.log).rev().try_for_each(each)),
        }
        Ok((found, looked))
    }
}

/// How many records of that point the log of a thread has, of its earlier incarnations: they have
/// ended.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan has no such thread.
pub fn stamped(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
    point: Point,
) -> Result<u64, RegionError> {
    let mut tally = LogCursor::new(topology::instruments(plan, thread));
    past(attached, plan, thread)?.look(&mut tally);
    Ok(tally.sums.count(point))
}

/// The log of a thread, for its next incarnation.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan has no such thread.
pub fn past(attached: &mut Attached<'_>, plan: &Plan, thread: &ThreadPlan) -> Result<PriorLog, RegionError> {
    let log = segments::log(attached, &thread.name)?;
    let ring = segments::ring_of(plan, thread);
    let spilled = ring.map(|ring| Ok((segments::spilled(attached, &thread.name)?, ring))).transpose()?;
    Ok(PriorLog::new(log, spilled))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::TouchWritten;
    use crate::spill::{CHUNK_RECORDS, Drain};
    use crate::stamps::{StampLog, count_point, key_with, last_of, last_versions};
    use crate::wire::OrderId;
    use shm::memory::Region;

    fn append(log: &mut StampLog, n: u64) {
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
    }

    #[test]
    fn what_is_counted_in_parts_is_what_is_there() {
        let words = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let view: ReadOnlyWords = words.clone().into();
        let past = PriorLog::new(view.clone(), None);
        let (mut log, mut tally) = (StampLog::new(&words), LogCursor::new(2));
        for n in 0..50_u64 {
            append(&mut log, n);
            if n % 7 == 0 {
                past.look(&mut tally);
            }
        }
        past.look(&mut tally);
        for point in [Point::ExchangeRecv, Point::ExchangeDone, Point::Trigger] {
            assert_eq!(tally.sums.count(point), count_point(&view, point) as u64);
            assert_eq!(tally.sums.last(point), last_of(&view, point));
        }
        assert_eq!(tally.sums.versions(), last_versions(&view, 2));
        assert_eq!(tally.sums.count(Point::ExchangeRecv), 8, "the log has room for 40");
        assert!(!past.is_partial(), "and no room for more: the run is not valid, and says so by itself");
    }

    /// A log that is spilled and one that is not, with the same records, and the chunks that have
    /// left.
    #[test]
    fn a_log_that_is_spilled_says_what_one_says_that_is_not() {
        let ring = Ring { chunks: 3, last: 20, instruments: 2 };
        let whole = Region::heap(LOG_OFFSET + 8 * CHUNK_RECORDS as usize * RECORD_WORDS).words();
        let [words, spilled] =
            [ring.segment_words(), ring.spilled_words()].map(|words| Region::heap(words).words());
        let pasts = [
            PriorLog::new(whole.clone().into(), None),
            PriorLog::new(words.clone().into(), Some((spilled.clone().into(), ring))),
        ];
        let mut logs = [StampLog::new(&whole), StampLog::in_ring(&words, &spilled.clone().into(), ring)];
        let mut drain = Drain::new(words, spilled, ring);
        let mut file: Vec<Vec<u64>> = Vec::new();
        let (mut seldom, mut often) =
            ([LogCursor::new(2), LogCursor::new(2)], [LogCursor::new(2), LogCursor::new(2)]);
        let last = 6 * CHUNK_RECORDS + CHUNK_RECORDS / 2;
        for n in 0..=last {
            logs.iter_mut().for_each(|log| append(log, n));
            if n % 1_237 == 0 {
                for (past, tally) in pasts.iter().zip(&mut often) {
                    past.look(tally);
                }
                assert_eq!(often[0].sums, often[1].sums, "behind {n}");
            }
            // Behind the writer by a chunk, more or less.
            if n % CHUNK_RECORDS == 900 && n / CHUNK_RECORDS % 2 == 1 {
                while drain
                    .step(|chunk, bytes| {
                        assert_eq!(chunk as usize, file.len());
                        let records = bytes.as_chunks::<16>().0;
                        let key =
                            |record: &[u8; 16]| u64::from_le_bytes(std::array::from_fn(|byte| record[byte]));
                        file.push(records.iter().map(key).collect());
                        Ok(())
                    })
                    .unwrap()
                {}
            }
        }
        for (past, tally) in pasts.iter().zip(&mut seldom) {
            past.look(tally);
        }
        assert_eq!(seldom[0].sums, seldom[1].sums);
        assert!(file.len() >= 4 && !pasts[1].is_partial() && logs[1].dropped() == 0);
        let due = |n: u64| key_with(Point::Due, OrderId::new(1, 0, n), 0);
        // In memory, at its oldest chunk's beginning, and in the file.
        for n in [last - last % 5 - 2, file.len() as u64 * CHUNK_RECORDS + 4, CHUNK_RECORDS + 4] {
            let key = due(n - (n + 2) % 5);
            let wanted = HashSet::from([key, due(3)]);
            let found = pasts.each_ref().map(|past| {
                let saved = |chunk: u64| Ok(file[chunk as usize].clone());
                past.keys_from_end(&wanted, |seen| seen == Some(key), saved).unwrap()
            });
            assert_eq!(found[0], found[1]);
            assert_eq!(found[1].0, HashSet::from([key]));
        }
        let (gone, _) = pasts[1]
            .keys_from_end(&HashSet::from([due(3)]), |_| false, |chunk| Ok(file[chunk as usize].clone()))
            .unwrap();
        assert_eq!(gone.len(), 1, "down to the first");
        let refused =
            pasts[1].keys_from_end(&HashSet::new(), |_| false, |_| Err(io::Error::other("no file")));
        assert_eq!(refused.unwrap_err().to_string(), "no file");
    }
}
