//! Records of a stamp log: stamps, checksums, positions, touches.
//!
//! How a record's two words are laid out is drawn in [`crate::stamps`].

use crate::wire::{ID_WIDTH, OrderId};

system::names! {
    /// Which points of an order's way are stamped. A stamp costs a look at the clock, on the way
    /// that is measured.
    Stamps {
        /// All: every stage of the way has its figures.
        All = "all",
        /// Only those that rt_venue is made of: t1, t4, t5 and t8. What it is less than under `all`
        /// is what observing costs.
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
    /// The gateway cancelled the order, because its strategy's incarnation is dead (ticks). Its t5
    /// follows at once.
    Cancelled = 12,
    /// No order but a link: the checksum of what one end of it handed over ([`LinkEnd`]). Written
    /// once, behind all stamps.
    Checksum = 13,
    /// No order but the thread itself: it was away from its duty cycles (`gaps::Gap`). The value is
    /// when it came back (ticks).
    Gap = 14,
    /// What the order trades, by its index. Absent: instrument 0.
    Instrument = 15,
    /// What was filled with a report, in 1e-8 units; bought above 0, sold below (two's complement).
    /// Absent without a fill.
    FillQuantity = 16,
    /// At which price, in cents (two's complement). Follows the quantity of the same report.
    FillPrice = 17,
    /// No order but an account, that of a strategy in an instrument: a figure of its final position
    /// ([`PositionField`]).
    Position = 18,
    /// No order but a kill switch: the orchestrator has seen it (ticks); the sequence is the
    /// command's number.
    KillSeen = 19,
    /// The last order that it cancels is confirmed (ticks).
    KillDone = 20,
    /// The exchange has taken the order from its gateway's session (ticks): behind t4.
    ExchangeRecv = 21,
    /// The exchange is about to push a report into that session (ticks): before its t5.
    ExchangeDone = 22,
    /// The version of the touch that, by the order's own word, made its strategy send it: taken
    /// down by the exchange. Absent: none.
    Trigger = 23,
    /// No order but an instrument's touch: the exchange has written this version of it to its board
    /// ([`TouchWritten`]). The value is the time of the write (ticks).
    Touch = 24,
    /// No order but the thread itself: it had given its core away by its idle strategy, and then
    /// had work (`gaps::Gap`). The value is when the strategy came back (ticks).
    Slept = 25,
}

// Six bits, none of which is the end of a log.
const _: () = assert!(Point::ALL.len() < 1 << (64 - ID_WIDTH) && Point::ALL[0] as u8 == 1);

impl Point {
    /// Every point, in the order of its codes.
    pub const ALL: [Point; 25] = [
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
        Point::Instrument,
        Point::FillQuantity,
        Point::FillPrice,
        Point::Position,
        Point::KillSeen,
        Point::KillDone,
        Point::ExchangeRecv,
        Point::ExchangeDone,
        Point::Trigger,
        Point::Touch,
        Point::Slept,
    ];

    /// The point with this code, if there is one.
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        if code >= 1 && code <= Self::ALL.len() as u8 { Some(Self::ALL[code as usize - 1]) } else { None }
    }

    /// The name that tools print: `t1` to `t8`, `due`, `release`, `rejected`, `cancelled`,
    /// `checksum`, `gap`, and so on.
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
            "instrument",
            "fill-quantity",
            "fill-price",
            "position",
            "kill-seen",
            "kill-done",
            "exchange-recv",
            "exchange-done",
            "trigger",
            "touch",
            "slept",
        ][self as usize - 1]
    }

    /// Whether its records are about an order.
    pub const fn is_of_order(self) -> bool {
        !matches!(
            self,
            Point::Checksum
                | Point::Gap
                | Point::Position
                | Point::KillSeen
                | Point::KillDone
                | Point::Touch
                | Point::Slept
        )
    }

    /// Whether its records hold a time, in ticks.
    pub const fn is_time(self) -> bool {
        !matches!(
            self,
            Point::Rejected
                | Point::Checksum
                | Point::Instrument
                | Point::FillQuantity
                | Point::FillPrice
                | Point::Position
                | Point::Trigger
        )
    }

    /// Returns `true` if the time is read when the record is appended, so that these times never
    /// fall within a log. Not so: a schedule ([`Point::Due`]), the end of a delay
    /// ([`Point::Release`]), when a thread came back and when a touch was written, which are
    /// appended later.
    pub const fn is_stamped_when_logged(self) -> bool {
        self.is_time()
            && !matches!(self, Point::Due | Point::Release | Point::Gap | Point::Slept | Point::Touch)
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
            "what it trades",
            "quantity filled with the report",
            "at which price",
            "a figure of a final position",
            "kill switch seen",
            "last order of the kill switch confirmed",
            "the exchange has taken it",
            "the exchange has answered",
            "the version of the touch that triggered it",
            "a touch written to its board",
            "gave its core away until it had work",
        ][self as usize - 1]
    }
}

/// What a record of [`Point::Position`] holds: its detail. The order id names the account: the
/// strategy, and as the sequence the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PositionField {
    /// Bought minus sold, in 1e-8 units (two's complement).
    Net = 0,
    /// What was paid minus what was got, price times quantity of every fill: the lower 64 bits
    /// (two's complement, 128 bits).
    CostLow = 1,
    /// Its higher 64 bits.
    CostHigh = 2,
    /// Realised profit, in the units of price times quantity: the lower 64 bits (two's complement,
    /// 128 bits).
    RealisedLow = 3,
    /// Its higher 64 bits.
    RealisedHigh = 4,
    /// Fills.
    Fills = 5,
    /// What is open of its buy orders.
    OpenBuy = 6,
    /// What is open of its sell orders.
    OpenSell = 7,
}

impl PositionField {
    /// Every field, in the order of their codes.
    pub const ALL: [PositionField; 8] = [
        PositionField::Net,
        PositionField::CostLow,
        PositionField::CostHigh,
        PositionField::RealisedLow,
        PositionField::RealisedHigh,
        PositionField::Fills,
        PositionField::OpenBuy,
        PositionField::OpenSell,
    ];

    /// The field with this code, if there is one.
    pub const fn from_code(code: u8) -> Option<Self> {
        if (code as usize) < Self::ALL.len() { Some(Self::ALL[code as usize]) } else { None }
    }
}

/// One end of a link whose messages are summed up: see [`crate::checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// Which hand-off.
    pub hand_off: HandOff,
    /// The strategy or the venue at the one end of it; 0 for a hand-off that is summed up as a
    /// whole.
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

    /// As the order id of its record: peer and epoch in their places, hand-off and end as the
    /// sequence.
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

/// A version of an instrument's touch that an exchange has written to its board: see
/// [`crate::market`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchWritten {
    /// The venue that the exchange is.
    pub venue: u16,
    /// The instrument.
    pub instrument: u16,
    /// The version of its cell, from 1; 2^32 − 1 and more are that.
    pub version: u64,
    /// When it was written, in ticks.
    pub ticks: u64,
}

impl TouchWritten {
    /// Its record: the venue stands where an order's strategy does, the instrument in epoch and
    /// detail, the version as the sequence.
    #[inline]
    pub const fn record(self) -> Record {
        let version = if self.version < u32::MAX as u64 { self.version } else { u32::MAX as u64 };
        let id = OrderId::new(self.venue, self.instrument >> 8, version);
        Record { point: Point::Touch, id, detail: self.instrument as u8, value: self.ticks }
    }

    /// The touch of a record; `None` if it is of something else.
    pub const fn of(record: &Record) -> Option<Self> {
        let Record { point: Point::Touch, id, detail, value } = *record else { return None };
        let instrument = id.epoch() << 8 | detail as u16;
        Some(Self { venue: id.strategy(), instrument, version: id.sequence(), ticks: value })
    }
}

/// Where the detail stands in a key.
const DETAIL_SHIFT: u32 = 32;

/// The point of a key; `None` if it is not one of ours.
#[inline]
pub const fn point_of(key: u64) -> Option<Point> {
    Point::from_code(code_of(key))
}

/// The code of a key's point, known or not.
#[inline]
pub const fn code_of(key: u64) -> u8 {
    (key >> ID_WIDTH) as u8
}

/// The key word of a record without a detail.
#[inline]
pub const fn key(point: Point, id: OrderId) -> u64 {
    ((point as u64) << ID_WIDTH) | id.word()
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
    /// The venue of t4, the number of the report of t5 to t8 and of a fill, the field of a
    /// position, part of a touch's instrument, else 0.
    pub detail: u8,
    /// Ticks, or for [`Point::Rejected`] the reason's code, for [`Point::Checksum`] the sum.
    pub value: u64,
}

impl Record {
    /// Decodes the two words of a record; `None` if the key is not one of ours (zero ends a log).
    #[inline]
    pub const fn from_words(key: u64, value: u64) -> Option<Self> {
        match point_of(key) {
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
