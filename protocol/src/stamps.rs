//! The stamp log: what a thread saw, one 16-byte record for each point, appended where it happened.
//!
//! A log is written by one thread into a mapped region that the launcher created, sized and prefaulted. A record
//! exists as soon as its key is stored, so a killed process loses nothing that it had stamped, and there is no
//! length to keep up to date: the log ends at the first key that is zero.
//!
//! ```text
//!  63     60 59      52 51          40 39      32 31              0   63                        0
//! ┌─────────┬──────────┬──────────────┬──────────┬─────────────────┬─────────────────────────────┐
//! │ point   │ strategy │ epoch        │ detail   │ sequence        │ value: ticks, or a code     │
//! └─────────┴──────────┴──────────────┴──────────┴─────────────────┴─────────────────────────────┘
//!  key: written second (Release), never zero                          value: written first
//! ```
//!
//! | points | what the detail is |
//! |---|---|
//! | t4 | the venue: a thread may run several gateways |
//! | t5, t6, t7, t8 | which report of its order, from 0 |
//! | gap | what the kernel counted for the thread meanwhile ([`Gap`]); strategy, epoch and sequence are its length |
//! | checksum | 0; strategy, epoch and sequence are a [`LinkEnd`] |
//! | all others | 0 |

use crate::checksum::Checksum;
use crate::wire::OrderId;
use shm::memory::{View, Words};
use shm::sync::Ordering;

shm::names! {
    /// Which points of an order's way are stamped. A stamp costs a look at the clock, on the way that is measured.
    Stamps {
        /// All: every stage of the way has its figures.
        All = "all",
        /// Only those that rt_venue is made of: t1, t4, t5 and t8. What it is less than under `all` is what observing costs.
        Ends = "ends",
    }
}

/// Words in a record.
pub const RECORD_WORDS: usize = 2;
/// Bytes in a record.
pub const RECORD_BYTES: usize = 16;

/// What a record says about its order. The first eight are the stamps t1 to t8 of the round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Point {
    /// t1: the strategy is about to push the order for the first time (ticks).
    StrategySend = 1,
    /// t2: the orchestrator has taken it from the submit hand-off (ticks).
    OrchRecvSubmit = 2,
    /// t3: the orchestrator is about to push it into a gateway's inbox (ticks).
    OrchDispatch = 3,
    /// t4: the gateway has taken it from its inbox (ticks).
    GatewayRecv = 4,
    /// t5: the venue's delay has passed, the gateway is about to push the report (ticks).
    GatewayDone = 5,
    /// t6: the orchestrator has taken the report from the completion hand-off (ticks).
    OrchRecvCompletion = 6,
    /// t7: the orchestrator is about to push the report into the strategy's return ring (ticks).
    OrchReturn = 7,
    /// t8: the strategy has taken the report (ticks).
    StrategyRecv = 8,
    /// When the schedule wanted the order sent (ticks). Absent under closed pacing.
    Due = 9,
    /// When the venue's delay ends: t4 + D (ticks). Lateness of the gateway is t5 minus this.
    Release = 10,
    /// The orchestrator refused the order; the value is the reason's code, not a time.
    Rejected = 11,
    /// The gateway cancelled the order, because its strategy's incarnation is dead (ticks). Its t5 follows at once.
    Cancelled = 12,
    /// No order but a link: the checksum of what one end of it handed over ([`LinkEnd`]). Written once, behind all stamps.
    Checksum = 13,
    /// No order but the thread itself: it was away from its duty cycles ([`Gap`]). The value is when it came back (ticks).
    Gap = 14,
}

// Four bits, none of which is the end of a log.
const _: () = assert!(Point::ALL.len() < 1 << 4 && Point::ALL[0] as u8 == 1);

impl Point {
    /// Every point, in the order of its codes.
    pub const ALL: [Point; 14] = [
        Point::StrategySend,
        Point::OrchRecvSubmit,
        Point::OrchDispatch,
        Point::GatewayRecv,
        Point::GatewayDone,
        Point::OrchRecvCompletion,
        Point::OrchReturn,
        Point::StrategyRecv,
        Point::Due,
        Point::Release,
        Point::Rejected,
        Point::Cancelled,
        Point::Checksum,
        Point::Gap,
    ];

    /// The point with this code, if there is one.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code >= 1 && code <= Self::ALL.len() as u8 { Some(Self::ALL[code as usize - 1]) } else { None }
    }

    /// The name that tools print: `t1` to `t8`, `due`, `release`, `rejected`, `cancelled`, `checksum`, `gap`.
    pub const fn name(self) -> &'static str {
        [
            "t1",
            "t2",
            "t3",
            "t4",
            "t5",
            "t6",
            "t7",
            "t8",
            "due",
            "release",
            "rejected",
            "cancelled",
            "checksum",
            "gap",
        ][self as usize - 1]
    }

    /// Whether its records are about an order.
    pub const fn is_of_order(self) -> bool {
        !matches!(self, Point::Checksum | Point::Gap)
    }

    /// Whether its records hold a time, in ticks.
    pub const fn is_time(self) -> bool {
        !matches!(self, Point::Rejected | Point::Checksum)
    }

    /// Whether a run that stamps so stamps this.
    pub const fn is_taken(self, stamps: Stamps) -> bool {
        use Point::{OrchDispatch, OrchRecvCompletion, OrchRecvSubmit, OrchReturn};
        matches!(stamps, Stamps::All)
            || !matches!(self, OrchRecvSubmit | OrchDispatch | OrchRecvCompletion | OrchReturn)
    }

    /// What happened, in the words of the design.
    pub const fn meaning(self) -> &'static str {
        [
            "strategy_send",
            "orch_recv_submit",
            "orch_dispatch",
            "gateway_recv",
            "gateway_done",
            "orch_recv_completion",
            "orch_return",
            "strategy_recv",
            "schedule wanted it sent",
            "venue delay ends",
            "refused by the orchestrator",
            "cancelled: its strategy died",
            "checksum of a link's messages",
            "away from its duty cycles",
        ][self as usize - 1]
    }
}

/// One end of a link whose messages are summed up: see [`crate::checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// Which hand-off.
    pub hand_off: HandOff,
    /// The strategy or the venue at the one end of it; 0 for a hand-off that is summed up as a whole.
    pub peer: u16,
    /// The strategy's incarnation; 0 where the peer is a venue.
    pub epoch: u16,
    /// The end that takes, not the one that pushes.
    pub is_receiver: bool,
}

/// The hand-offs of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum HandOff {
    /// Strategy to orchestrator, summed up for each strategy.
    Submit = 0,
    /// Orchestrator to gateway, for each venue.
    Inbox = 1,
    /// Gateways to orchestrator, all together.
    Completion = 2,
    /// Orchestrator to strategy, for each strategy.
    Return = 3,
}

impl HandOff {
    /// Every hand-off, in the order of an order's way.
    pub const ALL: [HandOff; 4] = [HandOff::Submit, HandOff::Inbox, HandOff::Completion, HandOff::Return];

    /// Its name: `submit`, `inbox`, `completion`, `return`.
    pub const fn name(self) -> &'static str {
        ["submit", "inbox", "completion", "return"][self as usize]
    }
}

impl core::fmt::Display for LinkEnd {
    /// `submit 3 taken`, `return 3.1 pushed`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { hand_off, peer, epoch, is_receiver } = self;
        let epoch = if *epoch > 0 { format!(".{epoch}") } else { String::new() };
        let end = if *is_receiver { "taken" } else { "pushed" };
        write!(f, "{} {peer}{epoch} {end}", hand_off.name())
    }
}

impl LinkEnd {
    /// The end that pushes.
    pub const fn sender(hand_off: HandOff, peer: u16, epoch: u16) -> Self {
        Self { hand_off, peer, epoch, is_receiver: false }
    }

    /// The end that takes.
    pub const fn receiver(hand_off: HandOff, peer: u16, epoch: u16) -> Self {
        Self { is_receiver: true, ..Self::sender(hand_off, peer, epoch) }
    }

    /// As the order id of its record: peer and epoch in their places, hand-off and end as the sequence.
    pub const fn id(self) -> OrderId {
        OrderId::new(self.peer, self.epoch, (self.hand_off as u64) << 1 | self.is_receiver as u64)
    }

    /// The end that a record names; `None` if there is no such hand-off.
    pub const fn of(id: OrderId) -> Option<Self> {
        let code = id.sequence();
        if code >> 1 >= HandOff::ALL.len() as u64 {
            return None;
        }
        let hand_off = HandOff::ALL[(code >> 1) as usize];
        Some(Self { hand_off, peer: id.strategy(), epoch: id.epoch(), is_receiver: code & 1 == 1 })
    }
}

/// A time in which a thread began no duty cycle: its own work, its idling, or somebody else on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it ended, in ticks.
    pub ended: u64,
    /// How long it was, in ticks; [`Gap::LONGEST`] and more are that.
    pub ticks: u64,
    /// What the kernel counted for the thread since its last gap.
    pub switches: Switches,
}

/// What the kernel counted for a thread, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(pub u8);

impl Switches {
    /// The kernel took the core away.
    pub const INVOLUNTARY: u8 = 1;
    /// The thread gave the core away: it slept or yielded.
    pub const VOLUNTARY: u8 = 2;
    /// A page fault that was served from memory.
    pub const MINOR_FAULT: u8 = 4;
    /// A page fault that read from a device.
    pub const MAJOR_FAULT: u8 = 8;

    /// Whether that was counted.
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl core::fmt::Display for Gap {
    /// `7000 ticks, preempted`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ticks", self.ticks)?;
        for (bit, name) in [
            (Switches::INVOLUNTARY, "preempted"),
            (Switches::VOLUNTARY, "slept"),
            (Switches::MINOR_FAULT, "minor fault"),
            (Switches::MAJOR_FAULT, "major fault"),
        ] {
            if self.switches.has(bit) {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

impl Gap {
    /// The longest that a record holds, in ticks: 2^52 − 1, far beyond any run.
    pub const LONGEST: u64 = (1 << 52) - 1;

    /// The words of its record: the length stands where strategy, epoch and sequence of an order do.
    const fn words(self) -> [u64; 2] {
        let ticks = if self.ticks < Self::LONGEST { self.ticks } else { Self::LONGEST };
        let (low, high) = (ticks & 0xFFFF_FFFF, ticks >> 32);
        let key = ((Point::Gap as u64) << 60) | (high << 40) | ((self.switches.0 as u64) << 32) | low;
        [key, self.ended]
    }

    /// The gap of a record; `None` if it is of something else.
    pub const fn of(record: &Record) -> Option<Self> {
        if !matches!(record.point, Point::Gap) {
            return None;
        }
        let word = record.id.word();
        let ticks = (word & 0xFFFF_FFFF) | ((word >> 40) << 32);
        Some(Self { ended: record.value, ticks, switches: Switches(record.detail) })
    }
}

/// Where the detail stands in a key.
const DETAIL_SHIFT: u32 = 32;

/// The key word of a record without a detail.
#[inline]
pub const fn key(point: Point, id: OrderId) -> u64 {
    ((point as u64) << 60) | id.word()
}

/// The key word of a record.
#[inline]
pub const fn key_with(point: Point, id: OrderId, detail: u8) -> u64 {
    key(point, id) | ((detail as u64) << DETAIL_SHIFT)
}

const _: () = assert!(key_with(Point::Gap, OrderId::from_word(u64::MAX), 0) & (0xFF << DETAIL_SHIFT) == 0);

/// One record, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it says.
    pub point: Point,
    /// About which order; of [`Point::Checksum`] a [`LinkEnd`].
    pub id: OrderId,
    /// The venue of t4, the number of the report of t5 to t8, else 0.
    pub detail: u8,
    /// Ticks, or for [`Point::Rejected`] the reason's code, for [`Point::Checksum`] the sum.
    pub value: u64,
}

impl Record {
    /// Decodes the two words of a record; `None` if the key is not one of ours (zero ends a log).
    #[inline]
    pub const fn from_words(key: u64, value: u64) -> Option<Self> {
        match Point::from_code((key >> 60) as u8) {
            Some(point) => {
                let detail = (key >> DETAIL_SHIFT) as u8;
                Some(Self { point, id: OrderId::from_word(key), detail, value })
            }
            None => None,
        }
    }

    /// The words of the record.
    #[inline]
    pub const fn words(&self) -> [u64; 2] {
        [key_with(self.point, self.id, self.detail), self.value]
    }
}

/// The writing end of a stamp log.
pub struct StampLog {
    records: Words,
    /// The word of the next record's key. Private.
    next: usize,
    dropped: u64,
    gaps_left: u64,
    ends_only: bool,
}

/// The most gaps that a log holds, all incarnations of its thread together; how much room it has for them.
pub const MAX_GAPS: u64 = 1024;

impl StampLog {
    /// The log in a thread's segment, behind its status block. Goes on behind the records that are there: those of a
    /// strategy's earlier incarnations.
    ///
    /// # Panics
    /// If the segment is shorter than [`crate::status::LOG_OFFSET`].
    pub fn new(segment: &Words) -> Self {
        let offset = crate::status::LOG_OFFSET;
        let view = segment.clone().into();
        let next = count_records(&view) * RECORD_WORDS;
        let gaps_left = MAX_GAPS.saturating_sub(count_point(&view, Point::Gap) as u64);
        let records = segment.window(offset, segment.len() - offset);
        Self { records, next, dropped: 0, gaps_left, ends_only: false }
    }

    /// The same, taking the stamps that a plan asks for.
    #[must_use]
    pub fn taking(self, stamps: Stamps) -> Self {
        Self { ends_only: stamps == Stamps::Ends, ..self }
    }

    /// Whether the points between the ends of the engine's way are stamped too.
    #[inline(always)]
    pub const fn takes_all(&self) -> bool {
        !self.ends_only
    }

    /// Appends a record without a detail. If the log is full the record is counted as dropped instead, which makes the run
    /// invalid.
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
            self.dropped += 1;
            return;
        };
        // Relaxed: published by the Release store of the key.
        value_word.store(value, Ordering::Relaxed);
        // Release: pairs with the Acquire of a reader of the live log; a key that is there has its value.
        key_word.store(key, Ordering::Release);
        self.next += RECORD_WORDS;
    }

    /// Appends the checksum of one end of a link.
    pub fn append_checksum(&mut self, end: LinkEnd, sum: Checksum) {
        self.append(Point::Checksum, end.id(), sum.value());
    }

    /// Whether one more gap would be kept.
    pub fn has_room_for_gaps(&self) -> bool {
        self.gaps_left > 0
    }

    /// Appends a gap of the thread, if there is room for one more: only so many are kept, so that orders always have theirs.
    #[cold]
    pub fn append_gap(&mut self, gap: Gap) {
        if self.gaps_left > 0 {
            self.gaps_left -= 1;
            self.append_words(gap.words());
        }
    }

    /// Records that found the log full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// How many records a log holds: keys up to the first that is zero, found by bisection.
pub fn count_records(segment: &View) -> usize {
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

/// How many of a log's records are of that point.
pub fn count_point(segment: &View, point: Point) -> usize {
    let key =
        |record: usize| segment.load(crate::status::LOG_OFFSET + record * RECORD_WORDS, Ordering::Acquire);
    (0..count_records(segment)).filter(|record| key(*record) >> 60 == point as u64).count()
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
            for end in [LinkEnd::sender(hand_off, 255, 4095), LinkEnd::receiver(hand_off, 0, 0)] {
                assert_eq!(LinkEnd::of(end.id()), Some(end));
            }
        }
        assert_eq!(LinkEnd::of(OrderId::new(0, 0, 8)), None);
    }

    #[test]
    fn details_and_gaps_survive_the_log() {
        let segment = Region::heap(LOG_OFFSET + 8 * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        let id = OrderId::new(255, 4095, u64::MAX);
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
    fn codes_and_points_agree() {
        for point in Point::ALL {
            assert_eq!(Point::from_code(point as u8), Some(point));
        }
        assert_eq!((Point::from_code(0), Point::from_code(15)), (None, None));
    }
}
