//! Rows of the order table: the stamps of one order in 88 bytes, and those of its exchange in 24
//! more.

use protocol::flow::{ExchangeStage, PATH, Stage, points_mask};
use protocol::role::RoleKind;
use protocol::stamps::Point;

/// The stamps of one order (times in ticks), as a row of the merged table.
///
/// ```text
/// state 63              29 28      27     21 20   14 13         12         11             0
///      │ position among   │ more    │ gateway │ reason│ duplicated │ measured │ a bit for each │
///      │ gateway's reports│ reports │ + 1     │       │            │          │ stamped point  │
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderRow {
    ticks: [u64; TIMED_POINTS],
    state: u64,
}

/// Number of points whose times a row keeps: the whole path, due and release, by their codes.
const TIMED_POINTS: usize = Point::Release as usize;
/// Number of points that an order can have.
const ORDER_POINTS: u32 = Point::Cancelled as u32;

const _: () = assert!(points_mask(&PATH) | bit(Point::Due) | bit(Point::Release) == (1 << TIMED_POINTS) - 1);
const _: () = assert!(MEASURED == 1 << ORDER_POINTS, "the flags stand above the points");
const _: () = assert!(size_of::<OrderRow>() == 88);

const MEASURED: u64 = 1 << 12;
const DUPLICATED: u64 = 1 << 13;
const REASON_SHIFT: u32 = 14;
const REASON_MASK: u64 = 0x7F;
const GATEWAY_SHIFT: u32 = 21;
const GATEWAY_MASK: u64 = 0x7F;
const MORE: u64 = 1 << 28;
const POSITION_SHIFT: u32 = 29;
/// The largest position that a row can hold: 34 billion reports of a gateway.
const POSITION_MAX: u64 = (1 << (64 - POSITION_SHIFT)) - 1;

/// A bit mask of the points that strategies stamp.
pub(super) const STRATEGY_POINTS: u64 = points_mask(RoleKind::Strategy.info().points);

/// Returns the bit of a stamp point, a place on the order's path, in [`OrderRow::points`].
#[inline]
pub const fn bit(point: Point) -> u64 {
    1 << (point as u64 - 1)
}

impl OrderRow {
    /// Returns a bit mask of the points at which the order was stamped.
    #[inline]
    pub const fn points(&self) -> u64 {
        self.state & ((1 << ORDER_POINTS) - 1)
    }

    /// Returns `true` if the order was stamped at this point of its path.
    #[inline]
    pub const fn has(&self, point: Point) -> bool {
        self.state & bit(point) != 0
    }

    /// Returns the time at which the order was stamped at a point, in ticks. Never for
    /// [`Point::Rejected`], which is not a time, and [`Point::Cancelled`], which has the time of
    /// t5.
    #[inline]
    pub fn at(&self, point: Point) -> Option<u64> {
        if self.has(point) { self.ticks.get(point as usize - 1).copied() } else { None }
    }

    /// Returns the stamps t1 to t8 of the order's path; 0 for a missing one.
    #[inline]
    pub fn stamps(&self) -> [u64; PATH.len()] {
        PATH.map(|point| self.ticks[point as usize - 1])
    }

    /// Returns the duration of a stage of the order's path in ticks; `None` if a stamp is missing.
    /// 0 if its end precedes its start.
    #[inline]
    pub fn stage(&self, stage: Stage) -> Option<u64> {
        let record = stage.info();
        let both = bit(record.from) | bit(record.to);
        (self.points() & both == both)
            .then(|| self.ticks[record.to as usize - 1].saturating_sub(self.ticks[record.from as usize - 1]))
    }

    /// Returns t1, the tick at which the strategy sent the order; 0 if it was not stamped.
    #[inline]
    pub const fn began(&self) -> u64 {
        self.ticks[PATH[0] as usize - 1]
    }

    /// Returns t8, the tick at which the strategy received the report; 0 if it was not stamped.
    #[inline]
    pub const fn ended(&self) -> u64 {
        self.ticks[PATH[PATH.len() - 1] as usize - 1]
    }

    /// Returns the round trip t8 − t1 of the order, in ticks.
    #[inline]
    pub const fn round_trip(&self) -> u64 {
        self.ended().saturating_sub(self.began())
    }

    /// Returns `true` if all of t1 to t8 of the order were stamped; with `--stamps ends` the inner
    /// ones are not.
    #[inline]
    pub const fn has_all_stamps(&self) -> bool {
        self.points() & points_mask(&PATH) == points_mask(&PATH)
    }

    /// Returns the code of the reason for which the order was refused; `None` if it was not. Codes
    /// are 0 to 127; larger ones are truncated.
    pub const fn reason(&self) -> Option<u8> {
        if self.has(Point::Rejected) {
            Some(((self.state >> REASON_SHIFT) & REASON_MASK) as u8)
        } else {
            None
        }
    }

    /// Returns `true` if the order counts in the figures: it returned with every stamp in order.
    #[inline]
    pub const fn is_measured(&self) -> bool {
        self.state & MEASURED != 0
    }

    /// Returns `true` if a point of the order was stamped more than once.
    #[inline]
    pub const fn is_duplicated(&self) -> bool {
        self.state & DUPLICATED != 0
    }

    /// Returns the gateway that received the order, and how many reports on any orders that gateway
    /// had pushed before this order's first one. The number is 0 without a report. `None` if no
    /// gateway stamped the order's arrival.
    #[inline]
    pub const fn pushed(&self) -> Option<(usize, u64)> {
        match (self.state >> GATEWAY_SHIFT) & GATEWAY_MASK {
            0 => None,
            gateway => Some((gateway as usize - 1, self.state >> POSITION_SHIFT)),
        }
    }

    /// Returns `true` if more reports follow the order's first one, according to a flag that the
    /// gateway logged with the stamp t5.
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

    /// Sets the order's stamp at a point. Returns `false` if the order has one of this point
    /// already, which then stays.
    #[inline]
    pub(super) fn try_stamp(&mut self, point: Point, value: u64) -> bool {
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

/// The times at which an exchange received an order and produced its first report, in ticks. Takes
/// 24 bytes next to the order's row. Allocated only in runs with an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeStamps {
    received: u64,
    done: u64,
    /// Thread that stamped it, and a bit for each stamped point.
    thread: u32,
    points: u32,
}

const RECEIVED: u32 = 1;
const DONE: u32 = 2;

const _: () = assert!(size_of::<ExchangeStamps>() == 24);

impl ExchangeStamps {
    /// Sets the exchange's stamp of the order at a point. Returns `false` if it was set already.
    pub(super) fn try_stamp(&mut self, point: Point, value: u64, thread: usize) -> bool {
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

    pub(super) const fn is_empty(&self) -> bool {
        self.points == 0
    }

    pub(super) const fn thread(&self) -> usize {
        self.thread as usize
    }

    fn at(&self, bit: u32, ticks: u64) -> Option<u64> {
        (self.points & bit != 0).then_some(ticks)
    }

    /// Returns the time at which the exchange received the order, in ticks.
    pub fn received(&self) -> Option<u64> {
        self.at(RECEIVED, self.received)
    }

    /// Returns the time at which the exchange produced the first report, in ticks.
    pub fn done(&self) -> Option<u64> {
        self.at(DONE, self.done)
    }

    /// Returns the durations of the order's stages within the exchange, in the order of
    /// [`ExchangeStage::ALL`]. `None` if a stamp is missing or out of order.
    pub fn stage_ticks(&self, row: &OrderRow) -> Option<[u64; ExchangeStage::ALL.len()]> {
        let path = [row.at(Point::GatewayRecv)?, self.received()?, self.done()?, row.at(Point::GatewayDone)?];
        path.is_sorted().then(|| [path[1] - path[0], path[2] - path[1], path[3] - path[2]])
    }
}
