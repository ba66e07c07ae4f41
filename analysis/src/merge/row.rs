//! A row of the table: the stamps of one order, in 88 bytes; and those of its exchange, in 24 more.

use protocol::flow::{ExchangeStage, PATH, Stage, points_mask};
use protocol::stamps::Point;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The stamps of one order.
///
/// ```text
/// state  63                29 28       27     21 20   14 13         12         11                0
///       │ position in the    │ more     │ gateway │ reason│ duplicated │ measured │ a bit for each   │
///       │ gateway's order    │ reports  │ + 1     │       │            │          │ point stamped    │
/// ```
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
pub struct OrderRow {
    ticks: [u64; KEPT],
    state: u64,
}

/// The points whose times a row keeps: the whole way, due and release, by their codes.
const KEPT: usize = Point::Release as usize;
/// The points that an order can have.
const OF_ORDER: u32 = Point::Cancelled as u32;

const _: () = assert!(points_mask(&PATH) | bit(Point::Due) | bit(Point::Release) == (1 << KEPT) - 1);
const _: () = assert!(MEASURED == 1 << OF_ORDER, "the flags stand above the points");
const _: () = assert!(size_of::<OrderRow>() == 88);

const MEASURED: u64 = 1 << 12;
const DUPLICATED: u64 = 1 << 13;
const REASON_SHIFT: u32 = 14;
const REASON_MASK: u64 = 0x7F;
const GATEWAY_SHIFT: u32 = 21;
const GATEWAY_MASK: u64 = 0x7F;
const MORE: u64 = 1 << 28;
const POSITION_SHIFT: u32 = 29;
/// The largest position that a row can hold: a gateway's 34 thousand millionth report.
const POSITION_MAX: u64 = (1 << (64 - POSITION_SHIFT)) - 1;

/// The bit of a point in [`OrderRow::points`].
#[inline]
pub const fn bit(point: Point) -> u64 {
    1 << (point as u64 - 1)
}

impl OrderRow {
    /// A bit for each point that was stamped.
    #[inline]
    pub const fn points(&self) -> u64 {
        self.state & ((1 << OF_ORDER) - 1)
    }

    /// Whether the point was stamped.
    #[inline]
    pub const fn has(&self, point: Point) -> bool {
        self.state & bit(point) != 0
    }

    /// The ticks of a point, if it was stamped; never for [`Point::Rejected`], which is no time,
    /// and [`Point::Cancelled`], whose time is that of t5.
    #[inline]
    pub fn at(&self, point: Point) -> Option<u64> {
        if self.has(point) { self.ticks.get(point as usize - 1).copied() } else { None }
    }

    /// The stamps of the whole way, t1 to t8; zero where there is none.
    #[inline]
    pub fn stamps(&self) -> [u64; PATH.len()] {
        PATH.map(|point| self.ticks[point as usize - 1])
    }

    /// How long a stage took, in ticks; 0 where its end lies before its beginning, none where one
    /// of them was not stamped.
    #[inline]
    pub fn stage(&self, stage: Stage) -> Option<u64> {
        let record = stage.info();
        let both = bit(record.from) | bit(record.to);
        (self.points() & both == both)
            .then(|| self.ticks[record.to as usize - 1].saturating_sub(self.ticks[record.from as usize - 1]))
    }

    /// When the way began (t1); 0 where that is not stamped.
    #[inline]
    pub const fn began(&self) -> u64 {
        self.ticks[PATH[0] as usize - 1]
    }

    /// When it ended (t8); 0 where that is not stamped.
    #[inline]
    pub const fn ended(&self) -> u64 {
        self.ticks[PATH[PATH.len() - 1] as usize - 1]
    }

    /// The whole way, in ticks.
    #[inline]
    pub const fn round_trip(&self) -> u64 {
        self.ended().saturating_sub(self.began())
    }

    /// Whether each of t1 to t8 was stamped: a run may stamp only the ends of the engine's way.
    #[inline]
    pub const fn has_all_stamps(&self) -> bool {
        self.points() & points_mask(&PATH) == points_mask(&PATH)
    }

    /// The code of the reason for which the order was refused, if it was (0 to 127, larger ones are
    /// cut).
    pub const fn reason(&self) -> Option<u8> {
        if self.has(Point::Rejected) {
            Some(((self.state >> REASON_SHIFT) & REASON_MASK) as u8)
        } else {
            None
        }
    }

    /// Whether the order came back with every stamp in its place: only those count in the figures.
    #[inline]
    pub const fn is_measured(&self) -> bool {
        self.state & MEASURED != 0
    }

    /// Whether some point of the order was stamped more than once.
    #[inline]
    pub const fn is_duplicated(&self) -> bool {
        self.state & DUPLICATED != 0
    }

    /// The gateway that served the order and how many reports it had pushed before, where its log
    /// tells.
    #[inline]
    pub const fn pushed(&self) -> Option<(usize, u64)> {
        match (self.state >> GATEWAY_SHIFT) & GATEWAY_MASK {
            0 => None,
            gateway => Some((gateway as usize - 1, self.state >> POSITION_SHIFT)),
        }
    }

    /// Whether more reports follow the first, by its t5.
    #[inline]
    pub const fn has_more(&self) -> bool {
        self.state & MORE != 0
    }

    #[inline]
    pub(super) fn set_more(&mut self) {
        self.state |= MORE;
    }

    #[inline]
    pub(super) fn set_measured(&mut self) {
        self.state |= MEASURED;
    }

    #[inline]
    pub(super) fn clear_measured(&mut self) {
        self.state &= !MEASURED;
    }

    #[inline]
    pub(super) fn set_pushed(&mut self, gateway: u16, position: u64) {
        self.state &= (1 << GATEWAY_SHIFT) - 1;
        self.state |= ((u64::from(gateway) + 1) & GATEWAY_MASK) << GATEWAY_SHIFT;
        self.state |= position.min(POSITION_MAX) << POSITION_SHIFT;
    }

    /// Notes a stamp; `false` if the order already has one of that point, which then stays.
    #[inline]
    pub(super) fn stamp(&mut self, point: Point, value: u64) -> bool {
        if self.has(point) {
            self.state |= DUPLICATED;
            return false;
        }
        self.state |= bit(point);
        match self.ticks.get_mut(point as usize - 1) {
            Some(ticks) => *ticks = value,
            None if point == Point::Rejected => self.state |= (value & REASON_MASK) << REASON_SHIFT,
            None => {}
        }
        true
    }
}

/// What an exchange stamped of one order within its venue's time, in 24 bytes beside the row. Only
/// runs with an exchange have room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
pub struct AtExchange {
    received: u64,
    /// Of the first report.
    done: u64,
    /// The thread that stamped it, and the points that there are, a bit each.
    thread: u32,
    points: u32,
}

const RECEIVED: u32 = 1;
const DONE: u32 = 2;

const _: () = assert!(size_of::<AtExchange>() == 24);

impl AtExchange {
    /// Notes a stamp; `false` if there is one already.
    pub(super) fn stamp(&mut self, point: Point, value: u64, thread: usize) -> bool {
        let (bit, ticks) = match point {
            Point::ExchangeRecv => (RECEIVED, &mut self.received),
            _ => (DONE, &mut self.done),
        };
        if self.points & bit != 0 {
            return false;
        }
        *ticks = value;
        self.points |= bit;
        self.thread = thread as u32;
        true
    }

    /// Whether nothing was.
    pub(super) const fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// The thread that stamped it.
    pub(super) const fn thread(&self) -> usize {
        self.thread as usize
    }

    fn at(&self, bit: u32, ticks: u64) -> Option<u64> {
        (self.points & bit != 0).then_some(ticks)
    }

    /// When it was taken, in ticks.
    pub fn received(&self) -> Option<u64> {
        self.at(RECEIVED, self.received)
    }

    /// When its first report was given, in ticks.
    pub fn done(&self) -> Option<u64> {
        self.at(DONE, self.done)
    }

    /// The parts of the order's time at its venue, in the order of [`ExchangeStage::ALL`]; none
    /// where a stamp is missing or they are not in their order.
    pub fn parts(&self, row: &OrderRow) -> Option<[u64; ExchangeStage::ALL.len()]> {
        let way = [row.at(Point::GatewayRecv)?, self.received()?, self.done()?, row.at(Point::GatewayDone)?];
        way.is_sorted().then(|| [way[1] - way[0], way[2] - way[1], way[3] - way[2]])
    }
}
