//! Records of a stamp log, of two words ([`crate::stamps`]).

use crate::wire::{ID_WIDTH, OrderId};

system::named_enum! {
    /// Which points of an order's path are stamped; a stamp costs a clock read there.
    Stamps {
        /// All: every stage of the path is measured.
        All = "all",
        /// Only t1, t4, t5 and t8, which give rt_venue: the difference is the cost of observation.
        Ends = "ends",
    }
}

/// Number of 64-bit words of a stamp log's record.
pub const RECORD_WORDS: usize = 2;
/// Size of a stamp log's record in bytes.
pub const RECORD_BYTES: usize = 16;

/// Makes an enum with codes from 1, and for each value a name and a meaning.
macro_rules! points {
    ($(#[$of:meta])* $list:ident
    $($(#[$doc:meta])* $point:ident = $code:literal, $name:literal, $meaning:literal;)+) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $list { $($(#[$doc])* $point = $code,)+ }

        impl $list {
            /// All stamp points of the logs, in the order of their codes.
            pub const ALL: [$list; [$($code),+].len()] = [$($list::$point),+];

            /// Returns the stamp point with this code, if there is one.
            #[inline]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some($list::$point),)+
                    _ => None,
                }
            }

            /// Returns the stamp point's name, which tools print, such as `t1`, `due` or
            /// `rejected`.
            pub const fn name(self) -> &'static str {
                match self { $($list::$point => $name,)+ }
            }

            /// Describes what a stamp point marks in an order's path, in a few words for `inspect`.
            pub const fn meaning(self) -> &'static str {
                match self { $($list::$point => $meaning,)+ }
            }
        }
    };
}

points! {
    /// The kind of a record: one of the stamps t1 to t8 of the round trip, or another event.
    Point
    /// t1: the strategy is about to push the order for the first time (ticks).
    StrategySend = 1, "t1", "strategy_send";
    /// t2: the orchestrator has received the order from the submit hand-off (ticks).
    OrchRecvSubmit = 2, "t2", "orch_recv_submit";
    /// t3: the orchestrator is about to push the order into a gateway's inbox (ticks).
    OrchDispatch = 3, "t3", "orch_dispatch";
    /// t4: the gateway has received the order from the gateway's inbox (ticks).
    GatewayRecv = 4, "t4", "gateway_recv";
    /// t5: the venue's delay has passed, the gateway is about to push the report (ticks).
    GatewayDone = 5, "t5", "gateway_done";
    /// t6: the orchestrator has received the report from the completion hand-off (ticks).
    OrchRecvCompletion = 6, "t6", "orch_recv_completion";
    /// t7: the orchestrator is about to push the report into the strategy's return ring (ticks).
    OrchReturn = 7, "t7", "orch_return";
    /// t8: the strategy has received the report (ticks).
    StrategyRecv = 8, "t8", "strategy_recv";
    /// The time at which the order was scheduled (ticks). Absent under closed pacing.
    Due = 9, "due", "schedule wanted it sent";
    /// The end of the venue's delay: t4 + D (ticks). The gateway's lateness is t5 minus this.
    Release = 10, "release", "venue delay ends";
    /// The orchestrator rejected the order; the value is the reason's code, not a time.
    Rejected = 11, "rejected", "refused by the orchestrator";
    /// Cancelled by the gateway, as the strategy's incarnation is dead (ticks). Its t5 follows.
    Cancelled = 12, "cancelled", "cancelled: its strategy died";
    /// The checksum of one end of a link ([`LinkEnd`] instead of an order), after all stamps.
    Checksum = 13, "checksum", "checksum of a link's messages";
    /// A gap of the thread (`gaps::Gap` instead of an order); the value is its end (ticks).
    Gap = 14, "gap", "away from its duty cycles";
    /// The index of the order's instrument. Absent: instrument 0.
    Instrument = 15, "instrument", "what it trades";
    /// The quantity filled with a report, in 1e-8 units; negative for sells. Absent without one.
    FillQuantity = 16, "fill-quantity", "quantity filled with the report";
    /// The price of the fill, in cents (two's complement). Follows the quantity of the same report.
    FillPrice = 17, "fill-price", "at which price";
    /// A figure ([`PositionField`]) of the final position of an account, which the id names.
    Position = 18, "position", "a figure of a final position";
    /// A kill switch that the orchestrator has seen (ticks); the id is the switch.
    KillSeen = 19, "kill-seen", "kill switch seen";
    /// The last cancel of a kill switch is confirmed (ticks).
    KillDone = 20, "kill-done", "last order of the kill switch confirmed";
    /// The exchange has received the order from the session of the gateway (ticks): after t4.
    ExchangeRecv = 21, "exchange-recv", "the exchange has taken it";
    /// The exchange is about to push a report into the session of the gateway (ticks): before the
    /// report's t5.
    ExchangeDone = 22, "exchange-done", "the exchange has answered";
    /// The top-of-book version that triggered the order; logged by the exchange. Absent: none.
    Trigger = 23, "trigger", "the version of the touch that triggered it";
    /// A version written to the board ([`TopOfBookWritten`] instead of an order), at that time.
    TopOfBook = 24, "touch", "a touch written to its board";
    /// A sleep that work ended (`gaps::Gap` instead of an order); the value is its end (ticks).
    Slept = 25, "slept", "gave its core away until it had work";
}

// Codes have six bits; 0 marks the end of a log.
const _: () = assert!(Point::ALL.len() < 1 << (64 - ID_WIDTH) && Point::ALL[0] as u8 == 1);

impl Point {
    /// Returns `true` if records of this stamp point are about one order.
    pub const fn is_of_order(self) -> bool {
        !matches!(
            self,
            Point::Checksum
                | Point::Gap
                | Point::Position
                | Point::KillSeen
                | Point::KillDone
                | Point::TopOfBook
                | Point::Slept
        )
    }

    /// Returns `true` if the value in records of this stamp point is a time, in ticks.
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

    /// Returns `true` if records of this stamp point hold the time of their append, so that their
    /// times never decrease.
    pub const fn is_stamped_when_logged(self) -> bool {
        self.is_time()
            && !matches!(self, Point::Due | Point::Release | Point::Gap | Point::Slept | Point::TopOfBook)
    }

    /// Returns `true` if a run with this setting (all points, or only the path's ends) stamps this
    /// point.
    pub const fn is_stamped_with(self, stamps: Stamps) -> bool {
        use Point::{OrchDispatch, OrchRecvCompletion, OrchRecvSubmit, OrchReturn};
        matches!(stamps, Stamps::All)
            || !matches!(self, OrchRecvSubmit | OrchDispatch | OrchRecvCompletion | OrchReturn)
    }
}

/// A field of a strategy's final position, the detail of a [`Point::Position`] record. The record's
/// id is the account: the strategy, and the instrument as its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PositionField {
    /// Bought minus sold, in 1e-8 units (two's complement).
    Net = 0,
    /// Paid minus received, over all fills: the lower 64 of 128 bits (two's complement).
    CostLow = 1,
    /// The higher 64 of 128 bits of paid minus received, over all fills.
    CostHigh = 2,
    /// Realised profit, in price times quantity: the lower 64 of 128 bits (two's complement).
    RealisedLow = 3,
    /// The higher 64 of 128 bits of the realised profit.
    RealisedHigh = 4,
    /// Number of fills of the account.
    Fills = 5,
    /// Open quantity of the account's buy orders, in 1e-8 units.
    OpenBuy = 6,
    /// Open quantity of the account's sell orders, in 1e-8 units.
    OpenSell = 7,
}

impl PositionField {
    /// All fields of a logged position, in the order of their codes.
    pub const ALL: [PositionField; 8] = {
        use PositionField::{CostHigh, CostLow, Fills, Net, OpenBuy, OpenSell, RealisedHigh, RealisedLow};
        [Net, CostLow, CostHigh, RealisedLow, RealisedHigh, Fills, OpenBuy, OpenSell]
    };

    /// Returns the field of a logged position with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// One end of a link whose messages are checksummed: see [`crate::checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkEnd {
    /// The hand-off at whose end the checksum was logged.
    pub hand_off: HandOff,
    /// The strategy or the venue at one end; 0 for a hand-off that is checksummed as a whole.
    pub peer: u16,
    /// The strategy's incarnation; 0 where the peer is a venue.
    pub epoch: u16,
    /// `true` for the receiving end, `false` for the sending end.
    pub is_receiver: bool,
}

system::named_enum! {
    /// One of the four hand-offs on an order's path, in the order of the codes.
    #[derive(PartialOrd, Ord, Hash)]
    HandOff {
        /// Strategy to orchestrator, one checksum for each strategy.
        Submit = "submit",
        /// Orchestrator to gateway, one checksum for each venue.
        Inbox = "inbox",
        /// Gateways to orchestrator, one checksum for all.
        Completion = "completion",
        /// Orchestrator to strategy, one checksum for each strategy.
        Return = "return",
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
    /// Creates the identity of a hand-off's sending end, under which the checksum of that end is
    /// logged.
    pub const fn sender(hand_off: HandOff, peer: u16, epoch: u16) -> Self {
        Self { hand_off, peer, epoch, is_receiver: false }
    }

    /// Creates the identity of a hand-off's receiving end, under which the checksum of that end is
    /// logged.
    pub const fn receiver(hand_off: HandOff, peer: u16, epoch: u16) -> Self {
        Self { is_receiver: true, ..Self::sender(hand_off, peer, epoch) }
    }

    /// Encodes the link's end as an order id: its strategy field holds the peer, its epoch the
    /// epoch, its sequence the hand-off and end.
    pub const fn id(self) -> OrderId {
        OrderId::new(self.peer, self.epoch, (self.hand_off as u64) << 1 | self.is_receiver as u64)
    }

    /// Decodes one end of a hand-off from the id of its stamp-log record; `None` if the hand-off
    /// does not exist.
    pub const fn from_id(id: OrderId) -> Option<Self> {
        let code = id.sequence();
        if code >> 1 >= HandOff::ALL.len() as u64 {
            return None;
        }
        let hand_off = HandOff::ALL[(code >> 1) as usize];
        Some(Self { hand_off, peer: id.strategy().0, epoch: id.epoch(), is_receiver: code & 1 == 1 })
    }
}

/// A top-of-book version that an exchange has written to its board: see [`crate::market`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopOfBookWritten {
    /// The venue of the exchange.
    pub venue: u16,
    /// The instrument's index.
    pub instrument: u16,
    /// The version of the top of book, from 1; capped at 2^32 − 1.
    pub version: u64,
    /// Time at which the top of book was written, in ticks.
    pub ticks: u64,
}

impl TopOfBookWritten {
    /// Encodes the top-of-book version as a stamp-log record, with venue and instrument in the
    /// fields of an order id.
    #[inline]
    pub const fn record(self) -> Record {
        let version = if self.version < u32::MAX as u64 { self.version } else { u32::MAX as u64 };
        let id = OrderId::new(self.venue, self.instrument >> 8, version);
        Record { point: Point::TopOfBook, id, detail: self.instrument as u8, value: self.ticks }
    }

    /// Decodes a written version from a stamp-log record; `None` for a record of another kind.
    pub const fn from_record(record: &Record) -> Option<Self> {
        let Record { point: Point::TopOfBook, id, detail, value } = *record else { return None };
        let instrument = id.epoch() << 8 | detail as u16;
        Some(Self { venue: id.strategy().0, instrument, version: id.sequence(), ticks: value })
    }
}

/// The position of the detail in a key (bits).
const DETAIL_SHIFT: u32 = 32;

/// Decodes the stamp point from a record's key word; `None` if its code is unknown.
#[inline]
pub const fn point_of(key: u64) -> Option<Point> {
    Point::from_code(code_of(key))
}

/// Returns the code of the stamp point in a record's key word, known or not.
#[inline]
pub const fn code_of(key: u64) -> u8 {
    (key >> ID_WIDTH) as u8
}

/// Encodes stamp point and order id as a record's key word, without a detail.
#[inline]
pub const fn key(point: Point, id: OrderId) -> u64 {
    ((point as u64) << ID_WIDTH) | id.word()
}

/// Encodes stamp point, order id and detail as a record's key word.
#[inline]
pub const fn key_with(point: Point, id: OrderId, detail: u8) -> u64 {
    key(point, id) | ((detail as u64) << DETAIL_SHIFT)
}

const _: () = assert!(key_with(Point::Gap, OrderId::from_word(u64::MAX), 0) & (0xFF << DETAIL_SHIFT) == 0);

/// A decoded record of a stamp log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The stamp point, which is the kind of the record.
    pub point: Point,
    /// The id of the order, or of another subject, such as a [`LinkEnd`].
    pub id: OrderId,
    /// The venue for t4, the report's number for t5 to t8 and fills, the field of a position.
    pub detail: u8,
    /// Ticks, or for [`Point::Rejected`] the reason's code, for [`Point::Checksum`] the sum.
    pub value: u64,
}

impl Record {
    /// Decodes a stamp-log record from its two words; `None` for an unknown code, as at a log's
    /// end.
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

    /// Encodes the stamp-log record as two words.
    #[inline]
    pub const fn words(&self) -> [u64; 2] {
        [key_with(self.point, self.id, self.detail), self.value]
    }
}
