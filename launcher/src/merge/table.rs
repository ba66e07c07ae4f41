//! The table that stamps are joined in: a lane for each strategy and epoch, a row of 88 bytes for each order.
//!
//! A row's place is its order's sequence, so a join is an index, not a search, and costs the same for the first
//! order and the last. A lane grows as its orders appear, up to a limit that the size of the logs bounds: a run
//! that promises 2^60 orders and stamped ten costs ten rows.

use shm::stamps::Point;
use shm::wire::OrderId;

/// Rows are made in chunks of this many, so that growing does not show.
const CHUNK: u64 = 4096;

/// The stamps of one order.
///
/// ```text
/// state  63                    28 27     21 20   14 13         12         11                0
///       │ position in the        │ gateway │ reason│ duplicated │ measured │ a bit for each   │
///       │ gateway's push order   │ + 1     │       │            │          │ point stamped    │
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    ticks: [u64; 10],
    state: u64,
}

const _: () = assert!(size_of::<Row>() == 88);

const MEASURED: u64 = 1 << 12;
const DUPLICATED: u64 = 1 << 13;
const REASON_SHIFT: u32 = 14;
const REASON_MASK: u64 = 0x7F;
const GATEWAY_SHIFT: u32 = 21;
const GATEWAY_MASK: u64 = 0x7F;
const POSITION_SHIFT: u32 = 28;
/// The largest position that a row can hold: a gateway's 68 thousand millionth report.
const POSITION_MAX: u64 = (1 << (64 - POSITION_SHIFT)) - 1;

/// The bit of a point in [`Row::points`].
#[inline]
pub const fn bit(point: Point) -> u64 {
    1 << (point as u64 - 1)
}

impl Row {
    /// A bit for each point that was stamped.
    #[inline]
    pub const fn points(&self) -> u64 {
        self.state & ((1 << 12) - 1)
    }

    /// Whether the point was stamped.
    #[inline]
    pub const fn has(&self, point: Point) -> bool {
        self.state & bit(point) != 0
    }

    /// The ticks of a point, if it was stamped; never for [`Point::Rejected`], which is no time, and [`Point::Cancelled`], whose
    /// time is that of t5.
    #[inline]
    pub fn at(&self, point: Point) -> Option<u64> {
        if self.has(point) { self.ticks.get(point as usize - 1).copied() } else { None }
    }

    /// The eight stamps t1 to t8; zero where there is none.
    #[inline]
    pub fn stamps(&self) -> [u64; 8] {
        let mut stamps = [0; 8];
        stamps.copy_from_slice(&self.ticks[..8]);
        stamps
    }

    /// The code of the reason for which the order was refused, if it was (0 to 127, larger ones are cut).
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

    /// The gateway that served the order and how many reports it had pushed before, where its log tells.
    #[inline]
    pub const fn pushed(&self) -> Option<(usize, u64)> {
        match (self.state >> GATEWAY_SHIFT) & GATEWAY_MASK {
            0 => None,
            gateway => Some((gateway as usize - 1, self.state >> POSITION_SHIFT)),
        }
    }

    #[inline]
    pub(super) fn set_measured(&mut self) {
        self.state |= MEASURED;
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

/// The orders of one strategy in one epoch, by sequence.
#[derive(Debug)]
pub(super) struct Lane {
    pub strategy: u16,
    pub epoch: u16,
    pub rows: Vec<Row>,
    /// Rows that it may grow to.
    limit: u64,
    /// One past the last sequence sent, received, … : what the next one must not be below.
    pub next_sent: u64,
    pub next_received: u64,
    /// The latest t8 of an order returned (or t7 of an order received), whichever log is read second.
    pub last_return: u64,
}

/// Why an order has no row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRow {
    /// Its sequence is past what the logs can hold.
    Limit,
    /// The memory for it is not there: this many bytes more.
    Memory(u64),
}

impl Lane {
    fn new(strategy: u16, epoch: u16, limit: u64) -> Self {
        let rows = Vec::new();
        Self { strategy, epoch, rows, limit, next_sent: 0, next_received: 0, last_return: 0 }
    }

    /// Makes sure that there is a row for the sequence.
    #[inline]
    pub fn reach(&mut self, sequence: u64) -> Result<(), NoRow> {
        if sequence < self.rows.len() as u64 { Ok(()) } else { self.grow(sequence) }
    }

    #[cold]
    fn grow(&mut self, sequence: u64) -> Result<(), NoRow> {
        if sequence >= self.limit {
            return Err(NoRow::Limit);
        }
        let wanted = (sequence + 1).next_multiple_of(CHUNK).min(self.limit);
        let more = (wanted - self.rows.len() as u64) as usize;
        if self.rows.try_reserve(more).is_err() {
            return Err(NoRow::Memory(more as u64 * size_of::<Row>() as u64));
        }
        self.rows.resize(wanted as usize, Row::default());
        Ok(())
    }

    /// The id of the order in a row.
    pub const fn id(&self, sequence: u64) -> OrderId {
        OrderId::new(self.strategy, self.epoch, sequence)
    }
}

/// All lanes. Those of epoch 0 stand at their strategy's index; later epochs are rare and searched for.
#[derive(Debug)]
pub(super) struct Table {
    pub lanes: Vec<Lane>,
    strategies: usize,
}

impl Table {
    /// A table for strategies whose lanes may grow to these limits.
    pub fn new(limits: &[u64]) -> Self {
        let lane = |(strategy, limit): (usize, &u64)| Lane::new(strategy as u16, 0, *limit);
        Self { lanes: limits.iter().enumerate().map(lane).collect(), strategies: limits.len() }
    }

    /// The lane of an order, made if it is a new epoch of a strategy; `None` if there is no such strategy.
    #[inline]
    pub fn lane(&mut self, id: OrderId) -> Option<&mut Lane> {
        let strategy = usize::from(id.strategy());
        if strategy >= self.strategies {
            return None;
        }
        let index = if id.epoch() == 0 { strategy } else { self.later(id) };
        self.lanes.get_mut(index)
    }

    #[cold]
    fn later(&mut self, id: OrderId) -> usize {
        let known = |lane: &Lane| (lane.strategy, lane.epoch) == (id.strategy(), id.epoch());
        self.lanes.iter().position(known).unwrap_or_else(|| {
            let limit = self.lanes[usize::from(id.strategy())].limit;
            self.lanes.push(Lane::new(id.strategy(), id.epoch(), limit));
            self.lanes.len() - 1
        })
    }

    /// Every row that could hold an order, with the order's id.
    pub fn rows(&self) -> impl Iterator<Item = (OrderId, &Row)> {
        self.lanes.iter().flat_map(|lane| {
            lane.rows.iter().enumerate().map(|(sequence, row)| (lane.id(sequence as u64), row))
        })
    }
}
