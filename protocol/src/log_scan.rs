//! Scans the stamp log of earlier incarnations, for a restarted thread.

use crate::plan::{Plan, ThreadPlan};
use crate::point_totals::PointTotals;
use crate::segments;
use crate::spill::{LogRing, SpillLocation, UnspilledTail};
use crate::stamps::{self, Point, RECORD_WORDS};
use crate::status::{self, LOG_OFFSET};
use crate::topology;
use shm::attached::Attached;
use shm::memory::{ReadOnlyWords, RegionError};
use shm::sync::Ordering;
use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;

/// The stamp log that earlier incarnations of a thread have written.
pub struct PriorLog {
    log: ReadOnlyWords,
    spilled: Option<(ReadOnlyWords, LogRing)>,
}

/// A position in a stamp log, with the totals of all records before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCursor {
    location: SpillLocation,
    /// The next record of a log that is not spilled.
    next: usize,
    /// The totals of the records before the cursor.
    pub totals: PointTotals,
}

impl LogCursor {
    /// Creates a cursor at the beginning of a stamp log, for that number of instruments.
    pub fn new(instruments: usize) -> Self {
        Self { location: SpillLocation::default(), next: 0, totals: PointTotals::new(instruments) }
    }
}

impl Default for LogCursor {
    /// A cursor at the beginning of a log without top-of-book records.
    fn default() -> Self {
        Self::new(0)
    }
}

impl PriorLog {
    /// Creates the view of a thread's earlier log, and of its part on disk if it is moved there.
    pub const fn new(log: ReadOnlyWords, spilled: Option<(ReadOnlyWords, LogRing)>) -> Self {
        Self { log, spilled }
    }

    fn unspilled_tail(&self) -> Option<UnspilledTail<'_>> {
        self.spilled.as_ref().map(|(spilled, ring)| UnspilledTail::new(&self.log, spilled, *ring))
    }

    /// Counts the log's records after the cursor's position into its totals, and advances it. The
    /// log may still be written. For a spilled log this reads only the part in memory.
    pub fn scan(&self, tally: &mut LogCursor) {
        let LogCursor { location: place, next, totals: sums } = tally;
        if let Some(rest) = self.unspilled_tail() {
            return rest.scan(place, sums);
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

    /// Returns `true` if records are missing because moving them to disk was late. Then the totals
    /// are not exact.
    pub fn is_partial(&self) -> bool {
        self.spilled.is_some() && status::read(&self.log).lost().records > 0
    }

    /// Searches the log backwards for record keys ([`stamps::key_with`]) until `is_over` returns
    /// `true`. Returns the keys found and the number of records read. `is_over` is called once
    /// before the first record (`None`), and after each record with its key, the newest first.
    /// `saved` reads the keys of a chunk that has left memory.
    ///
    /// # Errors
    /// An error of `saved`.
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
        match self.unspilled_tail() {
            Some(rest) => rest.for_each_key_rev(saved, each)?,
            None => drop(stamps::keys(&self.log).rev().try_for_each(each)),
        }
        Ok((found, looked))
    }
}

/// Returns how many records of a stamp point the ended incarnations of a thread have logged.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan has no such thread.
pub fn count_stamped(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
    point: Point,
) -> Result<u64, RegionError> {
    let mut tally = LogCursor::new(topology::logged_instruments(plan, thread));
    prior_log(attached, plan, thread)?.scan(&mut tally);
    Ok(tally.totals.count(point))
}

/// Attaches the stamp log that earlier incarnations of a thread have written.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan has no such thread.
pub fn prior_log(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
) -> Result<PriorLog, RegionError> {
    let log = segments::log(attached, &thread.name)?;
    let ring = segments::log_ring(plan, thread);
    let spilled = ring.map(|ring| Ok((segments::spilled(attached, &thread.name)?, ring))).transpose()?;
    Ok(PriorLog::new(log, spilled))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::TopOfBookWritten;
    use crate::spill::{CHUNK_RECORDS, ChunkSpiller};
    use crate::stamps::{StampLog, key_with};
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
                let written = TopOfBookWritten { venue: 0, instrument: (n % 2) as u16, version: n, ticks: 9 };
                log.append_record(written.record());
            }
        }
    }

    #[test]
    fn totals_computed_in_parts_equal_whole_log() {
        let words = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let prior = PriorLog::new(words.clone().into(), None);
        let (mut log, mut tally) = (StampLog::new(&words), LogCursor::new(2));
        for n in 0..50_u64 {
            append(&mut log, n);
            if n % 7 == 0 {
                prior.scan(&mut tally);
            }
        }
        prior.scan(&mut tally);
        for (point, last) in [(Point::ExchangeRecv, 35), (Point::ExchangeDone, 36), (Point::Trigger, 37)] {
            assert_eq!(tally.totals.count(point), 8, "the log has room for 40");
            assert_eq!(tally.totals.last(point), Some(OrderId::new(1, 0, last)));
        }
        assert_eq!(tally.totals.versions(), [34, 39]);
        assert!(!prior.is_partial(), "and no room for more: the run is not valid, and says so by itself");
    }

    /// A spilled log and one that is not, with identical records, and the saved chunks.
    #[test]
    fn spilled_log_gives_same_results_as_unspilled() {
        let ring = LogRing { chunks: 3, max_chunks: 20, instruments: 2 };
        let whole = Region::heap(LOG_OFFSET + 8 * CHUNK_RECORDS as usize * RECORD_WORDS).words();
        let [words, spilled] =
            [ring.segment_words(), ring.spilled_words()].map(|words| Region::heap(words).words());
        let priors = [
            PriorLog::new(whole.clone().into(), None),
            PriorLog::new(words.clone().into(), Some((spilled.clone().into(), ring))),
        ];
        let mut logs = [StampLog::new(&whole), StampLog::in_ring(&words, &spilled.clone().into(), ring)];
        let mut drain = ChunkSpiller::new(words, spilled, ring);
        let mut file: Vec<Vec<u64>> = Vec::new();
        let (mut seldom, mut often) =
            ([LogCursor::new(2), LogCursor::new(2)], [LogCursor::new(2), LogCursor::new(2)]);
        let last = 6 * CHUNK_RECORDS + CHUNK_RECORDS / 2;
        for n in 0..=last {
            logs.iter_mut().for_each(|log| append(log, n));
            if n % 1_237 == 0 {
                for (prior, tally) in priors.iter().zip(&mut often) {
                    prior.scan(tally);
                }
                assert_eq!(often[0].totals, often[1].totals, "behind {n}");
            }
            // About one chunk after the writer's position.
            if n % CHUNK_RECORDS == 900 && n / CHUNK_RECORDS % 2 == 1 {
                while drain
                    .spill_next(|chunk, bytes| {
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
        for (prior, tally) in priors.iter().zip(&mut seldom) {
            prior.scan(tally);
        }
        assert_eq!(seldom[0].totals, seldom[1].totals);
        assert!(file.len() >= 4 && !priors[1].is_partial() && logs[1].dropped() == 0);
        let due = |n: u64| key_with(Point::Due, OrderId::new(1, 0, n), 0);
        // In memory, at the beginning of its oldest chunk, and in the file.
        for n in [last - last % 5 - 2, file.len() as u64 * CHUNK_RECORDS + 4, CHUNK_RECORDS + 4] {
            let key = due(n - (n + 2) % 5);
            let wanted = HashSet::from([key, due(3)]);
            let found = priors.each_ref().map(|prior| {
                let saved = |chunk: u64| Ok(file[chunk as usize].clone());
                prior.keys_from_end(&wanted, |seen| seen == Some(key), saved).unwrap()
            });
            assert_eq!(found[0], found[1]);
            assert_eq!(found[1].0, HashSet::from([key]));
        }
        let (gone, _) = priors[1]
            .keys_from_end(&HashSet::from([due(3)]), |_| false, |chunk| Ok(file[chunk as usize].clone()))
            .unwrap();
        assert_eq!(gone.len(), 1, "down to the first");
        let refused =
            priors[1].keys_from_end(&HashSet::new(), |_| false, |_| Err(io::Error::other("no file")));
        assert_eq!(refused.unwrap_err().to_string(), "no file");
    }
}
