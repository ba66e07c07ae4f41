//! The stamp log: what a thread saw, one 16-byte record for each point, appended where it happened.
//!
//! A log is written by one thread into a mapped region that the launcher created, sized and
//! prefaulted. A record exists as soon as its key is stored, so a killed process loses nothing that
//! it had stamped, and there is no length to keep up to date: the log ends at the first key that is
//! zero.
//!
//! ```text
//!  63     58 57      50 49          40 39      32 31              0   63                        0
//! ┌─────────┬──────────┬──────────────┬──────────┬─────────────────┬─────────────────────────────┐
//! │ point   │ strategy │ epoch        │ detail   │ sequence        │ value: ticks, or a code     │
//! └─────────┴──────────┴──────────────┴──────────┴─────────────────┴─────────────────────────────┘
//!  key: written second (Release), never zero                          value: written first
//! ```
//!
//! One thread writes a log, so the times of its stamps never fall.
//! [`Point::is_stamped_when_logged`] names the points for which this holds.
//!
//! | points | what the detail is |
//! |---|---|
//! | t3 | 1: not a new order, but a cancel, a replace or a mass cancel |
//! | t4 | the venue: a thread may run several gateways |
//! | t5 | which report of its order, from 0; the highest bit: more of them follow |
//! | exchange-done | which report of its order, from 0 |
//! | t6, t7, t8 | which report of its order, from 0 |
//! | cancelled, fill-quantity, fill-price | which report says so, from 0 |
//! | position | which figure: [`PositionField`]; strategy and sequence are the account |
//! | gap | what the kernel counted for the thread meanwhile ([`Gap`]); strategy, epoch and sequence are its length |
//! | slept | 0; strategy, epoch and sequence are its length |
//! | checksum | 0; strategy, epoch and sequence are a [`LinkEnd`] |
//! | touch | the instrument's lower 8 bits; the venue, its higher bits and the version are the rest of the key ([`TouchWritten`]) |
//! | all others | 0 |

use crate::checksum::Checksum;
pub use crate::gaps::{Gap, Switches};
use crate::gaps::{Keeper, MAX_GAPS, PARTS};
pub use crate::record::*;
use crate::spill::{ChunkRotator, Ring, UnspilledTail};
use crate::wire::OrderId;
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::prefetch::prefetch_ahead;
use shm::sync::Ordering;

/// How far ahead of the next record the log's memory is asked for, in bytes: the line behind the
/// one that is being filled.
const AHEAD: usize = 128;

/// The writing end of a stamp log.
pub struct StampLog {
    records: AtomicWords,
    /// The word of the next record's key. Private.
    next: usize,
    dropped: u64,
    gaps: Keeper,
    sleeps: Keeper,
    ends_only: bool,
    /// Where the log is a ring of chunks, and `records` one of them.
    turner: Option<ChunkRotator>,
}

impl StampLog {
    /// The log in a thread's segment, behind its status block. Goes on behind the records that are
    /// there: those of the thread's earlier incarnations. How many gaps are among them the status
    /// block says; where that was made anew, as a strategy's is, they are counted, which looks at
    /// all records.
    ///
    /// # Panics
    /// If the segment is shorter than [`crate::status::LOG_OFFSET`].
    pub fn new(segment: &AtomicWords) -> Self {
        let offset = crate::status::LOG_OFFSET;
        let view = segment.clone().into();
        let next = count_records(&view) * RECORD_WORDS;
        let [gaps, sleeps] = crate::status::kept(segment);
        let gaps = Keeper::new(MAX_GAPS, gaps, || count_point(&view, Point::Gap) as u64);
        let sleeps = Keeper::new(0, sleeps, || count_point(&view, Point::Slept) as u64);
        let records = segment.slice(offset, segment.len() - offset);
        Self { records, next, dropped: 0, gaps, sleeps, ends_only: false, turner: None }
    }

    /// The log in a thread's segment where it is spilled: a ring of chunks, and what the spiller
    /// says of it ([`crate::spill`]). Goes on as [`StampLog::new`] does.
    ///
    /// # Panics
    /// If a segment is too short for the ring.
    pub fn in_ring(segment: &AtomicWords, spilled: &ReadOnlyWords, ring: Ring) -> Self {
        let turner = ChunkRotator::new(segment, spilled, ring);
        let (records, there) = turner.chunk();
        let [gaps, sleeps] = crate::status::kept(segment);
        let count = |point| UnspilledTail::new(&segment.clone().into(), spilled, ring).count(point);
        let gaps = Keeper::new(MAX_GAPS, gaps, || count(Point::Gap));
        let sleeps = Keeper::new(0, sleeps, || count(Point::Slept));
        let (next, dropped) = (there * RECORD_WORDS, turner.lost_before());
        Self { records, next, dropped, gaps, sleeps, ends_only: false, turner: Some(turner) }
    }

    /// The same, taking the stamps that a plan asks for.
    #[must_use]
    pub fn taking(self, stamps: Stamps) -> Self {
        Self { ends_only: stamps == Stamps::Ends, ..self }
    }

    /// The same with room for so many sleeps, as a plan has it; without this there is none.
    #[must_use]
    pub fn keeping(self, sleeps: u64) -> Self {
        Self { sleeps: self.sleeps.with_room(sleeps), ..self }
    }

    /// Whether the points between the ends of the engine's way are stamped too.
    #[inline(always)]
    pub const fn takes_all(&self) -> bool {
        !self.ends_only
    }

    /// Appends a record without a detail. If the log is full the record is counted as dropped
    /// instead, which makes the run invalid.
    #[inline(always)]
    pub fn append(&mut self, point: Point, id: OrderId, value: u64) {
        self.append_with(point, id, 0, value);
    }

    /// Appends a record; as [`StampLog::append`].
    #[inline(always)]
    pub fn append_with(&mut self, point: Point, id: OrderId, detail: u8, value: u64) {
        self.append_words([key_with(point, id, detail), value]);
    }

    #[inline(always)]
    fn append_words(&mut self, [key, value]: [u64; 2]) {
        let Some([key_word, value_word]) = self.records.get(self.next..self.next + RECORD_WORDS) else {
            self.turn([key, value]);
            return;
        };
        // Relaxed: published by the Release store of the key.
        value_word.store(value, Ordering::Relaxed);
        // Release: pairs with the Acquire of a reader of the live log; a key that is there has its
        // value.
        key_word.store(key, Ordering::Release);
        self.next += RECORD_WORDS;
        // Stores become visible in their order: a line that is not there yet would hold up the
        // message that is sent next.
        prefetch_ahead(key_word, AHEAD);
    }

    /// Asks for the memory of the next records, which nobody has used since the launcher filled it
    /// with zeros.
    pub(crate) fn keep_warm(&self) {
        if let Some(key_word) = self.records.get(self.next) {
            prefetch_ahead(key_word, 0);
            prefetch_ahead(key_word, AHEAD / 2);
        }
    }

    /// Goes on in the next chunk, where there is one; else the record is dropped.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, record: [u64; 2]) {
        if let Some(records) = self.turner.as_mut().and_then(ChunkRotator::turn) {
            (self.records, self.next) = (records, 0);
            return self.append_words(record);
        }
        self.dropped += 1;
        if let Some(turner) = &self.turner {
            turner.lost(self.dropped);
        }
    }

    /// Appends a record that was put together elsewhere; as [`StampLog::append`].
    #[inline]
    pub fn append_record(&mut self, record: Record) {
        self.append_words(record.words());
    }

    /// Takes the records out again that were appended since the start, or since this was last done:
    /// for a log that is nobody's.
    pub fn take_out(&mut self, mut each: impl FnMut(Record)) {
        for record in self.records[..self.next].chunks_exact(RECORD_WORDS) {
            // Relaxed: our own stores.
            let [key, value] = [0, 1].map(|word| record[word].load(Ordering::Relaxed));
            Record::from_words(key, value).into_iter().for_each(&mut each);
        }
        self.next = 0;
    }

    /// Appends the checksum of one end of a link.
    pub fn append_checksum(&mut self, end: LinkEnd, sum: Checksum) {
        self.append(Point::Checksum, end.id(), sum.value());
    }

    /// Takes a gap of the thread: keeps it or counts it as dropped, as [`crate::gaps`] says.
    /// `least`: [`LEAST_NS`](crate::gaps::LEAST_NS) in ticks. What the kernel counted is asked only
    /// for what is kept.
    #[cold]
    pub fn offer_gap(
        &mut self,
        ended: u64,
        ticks: u64,
        least: &[u64; PARTS],
        switches: impl FnOnce() -> Switches,
    ) {
        if self.gaps.takes(ticks, least) {
            self.append_gap(Gap { ended, ticks, switches: switches() });
        }
    }

    /// Appends a gap of the thread, if there is room for one more: only so many are kept, so that
    /// orders always have theirs.
    #[cold]
    pub fn append_gap(&mut self, gap: Gap) {
        if self.gaps.keep() {
            self.append_words(gap.words(Point::Gap));
        }
    }

    /// Takes a sleep behind which the thread had work, in the same way; nothing is asked.
    #[cold]
    pub fn offer_sleep(&mut self, ended: u64, ticks: u64, least: &[u64; PARTS]) {
        if self.sleeps.takes(ticks, least) && self.sleeps.keep() {
            self.append_words(Gap { ended, ticks, switches: Switches(0) }.words(Point::Slept));
        }
    }

    /// Records that found the log full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// How many records a log holds: keys up to the first that is zero, found by bisection.
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

/// The keys of a log's records, in their order.
pub(crate) fn keys(segment: &ReadOnlyWords) -> impl DoubleEndedIterator<Item = u64> + '_ {
    let at = |record: usize| crate::status::LOG_OFFSET + record * RECORD_WORDS;
    (0..count_records(segment)).map(move |record| segment.load(at(record), Ordering::Acquire))
}

/// How many of a log's records are of that point.
pub fn count_point(segment: &ReadOnlyWords, point: Point) -> usize {
    points_in(segment).filter(|other| *other == point).count()
}

/// The points of a log's records, in their order.
pub fn points_in(segment: &ReadOnlyWords) -> impl Iterator<Item = Point> + '_ {
    keys(segment).filter_map(point_of)
}

/// The last version of each instrument's touch that a log has ([`TouchWritten`]); 0 for none.
pub fn last_versions(segment: &ReadOnlyWords, instruments: usize) -> Vec<u64> {
    let word = |at| segment.load(crate::status::LOG_OFFSET + at, Ordering::Acquire);
    let mut versions = vec![0; instruments];
    for record in (0..count_records(segment)).map(|record| record * RECORD_WORDS) {
        let record = Record::from_words(word(record), word(record + 1));
        let Some(written) = record.as_ref().and_then(TouchWritten::of) else { continue };
        if let Some(version) = versions.get_mut(usize::from(written.instrument)) {
            *version = written.version;
        }
    }
    versions
}

/// The order of a log's last record of that point.
pub fn last_of(segment: &ReadOnlyWords, point: Point) -> Option<OrderId> {
    let word = |at| segment.load(crate::status::LOG_OFFSET + at, Ordering::Acquire);
    let mut records = (0..count_records(segment)).rev().map(|record| record * RECORD_WORDS);
    records
        .find_map(|at| Record::from_words(word(at), word(at + 1)).filter(|record| record.point == point))
        .map(|record| record.id)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::status::LOG_OFFSET;
    use shm::memory::Region;

    #[test]
    fn a_log_holds_what_fits_and_counts_the_rest() {
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
    fn a_later_incarnation_appends() {
        let segment = Region::heap(LOG_OFFSET + 4 * RECORD_WORDS).words();
        for epoch in 0..3 {
            StampLog::new(&segment).append(Point::Due, OrderId::new(2, epoch, 0), 1);
        }
        assert_eq!(count_records(&segment.clone().into()), 3);
    }

    #[test]
    fn an_empty_log_has_no_records() {
        assert_eq!(count_records(&Region::heap(LOG_OFFSET + 64).words().into()), 0);
        assert_eq!(count_records(&Region::heap(LOG_OFFSET).words().into()), 0);
    }

    #[test]
    fn ends_of_links_survive_the_log() {
        for hand_off in HandOff::ALL {
            for end in
                [LinkEnd::sender(hand_off, 255, crate::wire::MAX_EPOCH), LinkEnd::receiver(hand_off, 0, 0)]
            {
                assert_eq!(LinkEnd::of(end.id()), Some(end));
            }
        }
        assert_eq!(LinkEnd::of(OrderId::new(0, 0, 8)), None);
    }

    #[test]
    fn touches_survive_the_log() {
        for (venue, instrument, version) in [(0, 0, 1), (63, 4_095, 70_000), (1, 255, u32::MAX.into())] {
            let written = TouchWritten { venue, instrument, version, ticks: 9 };
            let [key, value] = written.record().words();
            assert_eq!(Record::from_words(key, value).as_ref().and_then(TouchWritten::of), Some(written));
        }
        let other = Record { point: Point::Due, id: OrderId::new(0, 0, 1), detail: 0, value: 1 };
        assert_eq!(TouchWritten::of(&other), None);
    }

    #[test]
    fn details_and_gaps_survive_the_log() {
        let segment = Region::heap(LOG_OFFSET + 8 * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        let id = OrderId::new(255, u16::MAX, u64::MAX);
        log.append_with(Point::GatewayDone, id, 255, 7);
        let gaps = [1u64, (1 << 33) + 5, Gap::LONGEST, u64::MAX].map(|ticks| Gap {
            ended: 9,
            ticks,
            switches: Switches(Switches::INVOLUNTARY | Switches::MAJOR_FAULT),
        });
        gaps.iter().for_each(|gap| log.append_gap(*gap));
        let words: Vec<u64> = segment[LOG_OFFSET..].iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let records: Vec<Record> =
            words.chunks(2).map_while(|pair| Record::from_words(pair[0], pair[1])).collect();
        assert_eq!(records[0], Record { point: Point::GatewayDone, id, detail: 255, value: 7 });
        assert_eq!(Gap::of(&records[0]), None);
        for (record, gap) in records[1..].iter().zip(gaps) {
            assert_eq!(Gap::of(record), Some(Gap { ticks: gap.ticks.min(Gap::LONGEST), ..gap }));
        }
        assert_eq!(records.len(), 5);
    }

    #[test]
    fn gaps_take_no_orders_room() {
        let segment = Region::heap(LOG_OFFSET + (MAX_GAPS as usize + 2) * RECORD_WORDS).words();
        for _ in 0..3 {
            let mut log = StampLog::new(&segment);
            (0..MAX_GAPS / 2 + 5)
                .for_each(|n| log.append_gap(Gap { ended: n, ticks: 1, switches: Switches(0) }));
        }
        let mut log = StampLog::new(&segment);
        (0..2).for_each(|n| log.append(Point::Due, OrderId::new(0, 0, n), n));
        assert_eq!((log.dropped(), count_records(&segment.clone().into()) as u64), (0, MAX_GAPS + 2));
    }

    #[test]
    fn a_successor_is_told_how_many_gaps_there_are_and_counts_them_only_where_nobody_says() {
        let segment = Region::heap(LOG_OFFSET + 40 * RECORD_WORDS).words();
        let gap = Gap { ended: 1, ticks: 1, switches: Switches(0) };
        let mut log = StampLog::new(&segment);
        (0..3).for_each(|_| log.append_gap(gap));
        let kept = &segment[crate::status::GAPS.end - 1];
        assert_eq!((StampLog::new(&segment).gaps.kept, kept.load(Ordering::Relaxed)), (3, 4));
        // As if there were none in the log: nobody has looked.
        kept.store(8, Ordering::Relaxed);
        assert_eq!(StampLog::new(&segment).gaps.kept, 7);
        // A status block that was made anew.
        kept.store(0, Ordering::Relaxed);
        assert_eq!(StampLog::new(&segment).gaps.kept, 3);
        // The same of sleeps, which are counted apart.
        let least = [3; PARTS];
        let mut log = StampLog::new(&segment).keeping(9);
        (0..2).for_each(|ended| log.offer_sleep(ended, 7, &least));
        let of_sleeps = crate::status::kept(&segment)[1][1].clone();
        assert_eq!((of_sleeps[0].load(Ordering::Relaxed), StampLog::new(&segment).sleeps.kept), (3, 2));
        of_sleeps[0].store(0, Ordering::Relaxed);
        let log = StampLog::new(&segment).keeping(9);
        assert_eq!((log.sleeps.kept, log.gaps.kept, of_sleeps[0].load(Ordering::Relaxed)), (2, 3, 3));
        // No room is left by one that says anything.
        kept.store(u64::MAX, Ordering::Relaxed);
        let mut log = StampLog::new(&segment);
        log.append_gap(gap);
        assert_eq!((log.gaps.kept, count_point(&segment.clone().into(), Point::Gap)), (u64::MAX - 1, 3));
    }

    #[test]
    fn codes_and_points_agree() {
        for point in Point::ALL {
            assert_eq!(Point::from_code(point as u8), Some(point));
        }
        assert_eq!((Point::from_code(0), Point::from_code(26)), (None, None));
    }
}
