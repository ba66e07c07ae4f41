//! The stamp log of a thread: one 16-byte record for each point, appended when it happens.
//!
//! A log is written by one thread into a mapped region that the launcher created, sized and
//! prefaulted. A record exists as soon as its key is stored, so a killed process loses no stamp,
//! and no length is stored: the log ends at the first key of zero.
//!
//! ```text
//!  63     58 57      50 49          40 39      32 31              0   63                        0
//! ┌─────────┬──────────┬──────────────┬──────────┬─────────────────┬─────────────────────────────┐
//! │ point   │ strategy │ epoch        │ detail   │ sequence        │ value: ticks, or a code     │
//! └─────────┴──────────┴──────────────┴──────────┴─────────────────┴─────────────────────────────┘
//!  key: written second (Release), never zero                          value: written first
//! ```
//!
//! One thread writes a log, so the times of its stamps never decrease.
//! [`Point::is_stamped_when_logged`] names the points for which this holds.
//!
//! | points | detail |
//! |---|---|
//! | t3 | 1: not a new order, but a cancel, a replace or a mass cancel |
//! | t4 | the venue: a thread may run several gateways |
//! | t5 | the number of the report of its order, from 0; the highest bit: more reports follow |
//! | exchange-done | the number of the report of its order, from 0 |
//! | t6, t7, t8 | the number of the report of its order, from 0 |
//! | cancelled, fill-quantity, fill-price | the number of the report, from 0 |
//! | position | the figure: [`PositionField`]; strategy and sequence are the account |
//! | gap | kernel events of the thread ([`Gap`]); strategy, epoch and sequence are its length |
//! | slept | 0; strategy, epoch and sequence are its length |
//! | checksum | 0; strategy, epoch and sequence are a [`LinkEnd`] |
//! | touch | the instrument's lower 8 bits; for the rest see [`TopOfBookWritten`] |
//! | all others | 0 |

use crate::checksum::Checksum;
pub use crate::gaps::{Gap, KernelEvents};
use crate::gaps::{GapQuota, LEVELS, MAX_GAPS};
pub use crate::record::*;
use crate::wire::OrderId;
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::prefetch::prefetch_ahead;
use shm::sync::Ordering;

/// Prefetch distance in bytes: the cache line after the one that is being filled.
const AHEAD: usize = 128;

/// The writing end of a thread's stamp log: the times at which orders passed points of their path.
pub struct StampLog {
    records: AtomicWords,
    /// Offset of the next record's key; not in shared memory.
    next: usize,
    dropped: u64,
    gaps: GapQuota,
    sleeps: GapQuota,
    ends_only: bool,
}

impl StampLog {
    /// Opens the stamp log in a thread's segment, and appends after earlier incarnations' records.
    /// The number of gaps among them is in the status block, or counted by a scan if that was
    /// reset.
    pub fn new(segment: &AtomicWords) -> Self {
        let offset = crate::status::LOG_OFFSET;
        let view = segment.clone().into();
        let next = count_records(&view) * RECORD_WORDS;
        let [gaps, sleeps] = crate::status::gap_counters(segment);
        let gaps = GapQuota::new(MAX_GAPS, gaps, || count_point(&view, Point::Gap) as u64);
        let sleeps = GapQuota::new(0, sleeps, || count_point(&view, Point::Slept) as u64);
        let records = segment.slice(offset, segment.len() - offset);
        Self { records, next, dropped: 0, gaps, sleeps, ends_only: false }
    }

    /// Sets whether all points of an order's path are stamped, or only the ends.
    #[must_use]
    pub fn with_stamps(self, stamps: Stamps) -> Self {
        Self { ends_only: stamps == Stamps::Ends, ..self }
    }

    /// Sets how many records of sleeps the log can hold; it is 0 by default.
    #[must_use]
    pub fn with_sleep_records(self, sleeps: u64) -> Self {
        Self { sleeps: self.sleeps.with_capacity(sleeps), ..self }
    }

    /// Returns `true` if the inner points of an order's path are stamped too.
    #[inline(always)]
    pub const fn has_inner_stamps(&self) -> bool {
        !self.ends_only
    }

    /// Appends a record for a stamp point and an order, with a time in ticks or a code as the
    /// value. A record that finds the log full is counted as dropped, which makes the run invalid.
    #[inline(always)]
    pub fn append(&mut self, point: Point, id: OrderId, value: u64) {
        self.append_with(point, id, 0, value);
    }

    /// Appends a record for a stamp point and an order as [`StampLog::append`] does, with a detail
    /// byte such as the venue.
    #[inline(always)]
    pub fn append_with(&mut self, point: Point, id: OrderId, detail: u8, value: u64) {
        self.append_words([key_with(point, id, detail), value]);
    }

    #[inline(always)]
    fn append_words(&mut self, [key, value]: [u64; 2]) {
        let Some([key_word, value_word]) = self.records.get(self.next..self.next + RECORD_WORDS) else {
            return self.drop_record();
        };
        // Relaxed: published by the Release store of the key.
        value_word.store(value, Ordering::Relaxed);
        // Release: pairs with the Acquire of a live log's reader; a visible key has its value.
        key_word.store(key, Ordering::Release);
        self.next += RECORD_WORDS;
        // Stores become visible in order: one that misses the cache would delay the next message.
        prefetch_ahead(key_word, AHEAD);
    }

    /// Prefetches the next records, which nothing has used since the launcher zeroed them.
    pub(crate) fn prefetch_next(&self) {
        if let Some(key_word) = self.records.get(self.next) {
            prefetch_ahead(key_word, 0);
            prefetch_ahead(key_word, AHEAD / 2);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_record(&mut self) {
        self.dropped += 1;
    }

    /// Appends a record that the caller has composed to the stamp log.
    #[inline]
    pub fn append_record(&mut self, record: Record) {
        self.append_words(record.words());
    }

    /// Appends the checksum of one end of a link to the stamp log.
    pub fn append_checksum(&mut self, end: LinkEnd, sum: Checksum) {
        self.append(Point::Checksum, end.id(), sum.value());
    }

    /// Logs a gap (a pause of the thread) if it is long enough for the log's fill level, else
    /// counts it as dropped. `switches` is called only for a gap that is kept.
    #[cold]
    pub fn offer_gap(
        &mut self,
        ended: u64,
        ticks: u64,
        thresholds: &[u64; LEVELS],
        switches: impl FnOnce() -> KernelEvents,
    ) {
        if self.gaps.try_admit(ticks, thresholds) {
            self.append_gap(Gap { ended, ticks, events: switches() });
        }
    }

    /// Logs a gap (a pause of the thread) of any length, if the log still has capacity for it.
    #[cold]
    pub fn append_gap(&mut self, gap: Gap) {
        if self.gaps.try_reserve() {
            self.append_words(gap.words(Point::Gap));
        }
    }

    /// Logs a thread's sleep of `ticks` that was followed by work, or counts it as dropped.
    #[cold]
    pub fn offer_sleep(&mut self, ended: u64, ticks: u64, thresholds: &[u64; LEVELS]) {
        if self.sleeps.try_admit(ticks, thresholds) && self.sleeps.try_reserve() {
            self.append_words(Gap { ended, ticks, events: KernelEvents(0) }.words(Point::Slept));
        }
    }

    /// Returns the number of records lost because the stamp log was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Returns the number of records in a stamp log, by binary search for the first unused one.
pub fn count_records(segment: &ReadOnlyWords) -> usize {
    let offset = crate::status::LOG_OFFSET;
    let (mut low, mut high) = (0, (segment.len().saturating_sub(offset)) / RECORD_WORDS);
    while low < high {
        let middle = low + (high - low) / 2;
        // Acquire: pairs with the Release in `append`.
        if segment.load(offset + middle * RECORD_WORDS, Ordering::Acquire) == 0 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns the key word of each record in a stamp log, in order.
pub(crate) fn keys(segment: &ReadOnlyWords) -> impl DoubleEndedIterator<Item = u64> + '_ {
    let at = |record: usize| crate::status::LOG_OFFSET + record * RECORD_WORDS;
    (0..count_records(segment)).map(move |record| segment.load(at(record), Ordering::Acquire))
}

/// Returns how many records of a stamp point the log in a thread's segment holds.
pub fn count_point(segment: &ReadOnlyWords, point: Point) -> usize {
    points_in(segment).filter(|other| *other == point).count()
}

/// Returns the stamp point of each record in a log, in order.
pub fn points_in(segment: &ReadOnlyWords) -> impl Iterator<Item = Point> + '_ {
    keys(segment).filter_map(point_of)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::status::LOG_OFFSET;
    use shm::memory::Region;

    #[test]
    fn full_log_counts_dropped_records() {
        let segment = Region::heap(LOG_OFFSET + 3 * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        for sequence in 0..5 {
            log.append(Point::Due, OrderId::new(2, 0, sequence), sequence * 10);
        }
        assert_eq!((count_records(&segment.clone().into()), log.dropped()), (3, 2));
        assert_eq!(count_point(&segment.clone().into(), Point::Due), 3);
        assert_eq!(count_point(&segment.clone().into(), Point::StrategySend), 0);
        let words: Vec<u64> = segment[LOG_OFFSET..].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let last = Record::from_words(words[4], words[5]);
        assert_eq!(last, Some(Record { point: Point::Due, id: OrderId::new(2, 0, 2), detail: 0, value: 20 }));
    }

    #[test]
    fn empty_log_has_no_records() {
        assert_eq!(count_records(&Region::heap(LOG_OFFSET + 64).words().into()), 0);
        assert_eq!(count_records(&Region::heap(LOG_OFFSET).words().into()), 0);
    }

    #[test]
    fn link_ends_round_trip_through_log() {
        for &hand_off in HandOff::ALL {
            for end in
                [LinkEnd::sender(hand_off, 255, crate::wire::MAX_EPOCH), LinkEnd::receiver(hand_off, 0, 0)]
            {
                assert_eq!(LinkEnd::from_id(end.id()), Some(end));
            }
        }
        assert_eq!(LinkEnd::from_id(OrderId::new(0, 0, 8)), None);
    }

    #[test]
    fn top_of_book_updates_round_trip_through_log() {
        for (venue, instrument, version) in [(0, 0, 1), (63, 4_095, 70_000), (1, 255, u32::MAX.into())] {
            let written = TopOfBookWritten { venue, instrument, version, ticks: 9 };
            let [key, value] = written.record().words();
            assert_eq!(
                Record::from_words(key, value).as_ref().and_then(TopOfBookWritten::from_record),
                Some(written)
            );
        }
        let other = Record { point: Point::Due, id: OrderId::new(0, 0, 1), detail: 0, value: 1 };
        assert_eq!(TopOfBookWritten::from_record(&other), None);
    }

    #[test]
    fn details_and_gaps_round_trip_through_log() {
        let segment = Region::heap(LOG_OFFSET + 8 * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        let id = OrderId::new(255, u16::MAX, u64::MAX);
        log.append_with(Point::GatewayDone, id, 255, 7);
        let gaps = [1u64, (1 << 33) + 5, Gap::MAX_TICKS, u64::MAX].map(|ticks| Gap {
            ended: 9,
            ticks,
            events: KernelEvents(KernelEvents::INVOLUNTARY | KernelEvents::MAJOR_FAULT),
        });
        gaps.iter().for_each(|gap| log.append_gap(*gap));
        let words: Vec<u64> = segment[LOG_OFFSET..].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let records: Vec<Record> =
            words.chunks(2).map_while(|pair| Record::from_words(pair[0], pair[1])).collect();
        assert_eq!(records[0], Record { point: Point::GatewayDone, id, detail: 255, value: 7 });
        assert_eq!(Gap::from_record(&records[0]), None);
        for (record, gap) in records[1..].iter().zip(gaps) {
            assert_eq!(Gap::from_record(record), Some(Gap { ticks: gap.ticks.min(Gap::MAX_TICKS), ..gap }));
        }
        assert_eq!(records.len(), 5);
    }

    #[test]
    fn gaps_never_use_capacity_of_orders() {
        let segment = Region::heap(LOG_OFFSET + (MAX_GAPS as usize + 2) * RECORD_WORDS).words();
        for _ in 0..3 {
            let mut log = StampLog::new(&segment);
            (0..MAX_GAPS / 2 + 5)
                .for_each(|n| log.append_gap(Gap { ended: n, ticks: 1, events: KernelEvents(0) }));
        }
        let mut log = StampLog::new(&segment);
        (0..2).for_each(|n| log.append(Point::Due, OrderId::new(0, 0, n), n));
        assert_eq!((log.dropped(), count_records(&segment.clone().into()) as u64), (0, MAX_GAPS + 2));
    }

    #[test]
    fn successor_counts_gaps_only_if_status_has_none() {
        let segment = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let gap = Gap { ended: 1, ticks: 1, events: KernelEvents(0) };
        let mut log = StampLog::new(&segment);
        (0..3).for_each(|_| log.append_gap(gap));
        let kept = &segment[crate::status::GAPS.end - 1];
        assert_eq!((StampLog::new(&segment).gaps.kept, kept.load(Ordering::Relaxed)), (3, 4));
        // The count in the status block is used without scanning the log.
        kept.store(8, Ordering::Relaxed);
        assert_eq!(StampLog::new(&segment).gaps.kept, 7);
        // A status block that was reset.
        kept.store(0, Ordering::Relaxed);
        assert_eq!(StampLog::new(&segment).gaps.kept, 3);
        // Sleeps are counted separately.
        let thresholds = [3; LEVELS];
        let mut log = StampLog::new(&segment).with_sleep_records(9);
        (0..2).for_each(|ended| log.offer_sleep(ended, 7, &thresholds));
        let of_sleeps = crate::status::gap_counters(&segment)[1][1].clone();
        assert_eq!((of_sleeps[0].load(Ordering::Relaxed), StampLog::new(&segment).sleeps.kept), (3, 2));
        of_sleeps[0].store(0, Ordering::Relaxed);
        let log = StampLog::new(&segment).with_sleep_records(9);
        assert_eq!((log.sleeps.kept, log.gaps.kept, of_sleeps[0].load(Ordering::Relaxed)), (2, 3, 3));
        // An arbitrary count means that no capacity is left.
        kept.store(u64::MAX, Ordering::Relaxed);
        let mut log = StampLog::new(&segment);
        log.append_gap(gap);
        assert_eq!((log.gaps.kept, count_point(&segment.clone().into(), Point::Gap)), (u64::MAX - 1, 3));
    }
}
