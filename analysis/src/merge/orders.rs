//! Where orders go: the ways in which an order that was sent can end, and how many ended so.

use super::row::{OrderRow, bit};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};
use std::iter::Sum;

/// Where every order went: sent = returned + rejected + cancelled + orphaned + lost.
///
/// Of a strategy that was quarantined, only orders count that the engine stamped: its own stamps
/// prove nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Orders in the plan.
    pub scheduled: u64,
    /// Orders that a strategy stamped as sent (or that the engine received from a strategy that
    /// died).
    pub sent: u64,
    /// Orders whose report the venue made and the strategy got.
    pub returned: u64,
    /// Orders that the orchestrator refused and whose strategy got to know.
    pub rejected: u64,
    /// Orders that their venue cancelled, because their strategy died.
    #[serde(default)]
    pub cancelled: u64,
    /// Orders that the engine finished or refused, and whose strategy died before it took the
    /// report.
    #[serde(default)]
    pub orphaned: u64,
    /// Orders that the engine never got, and all others that vanished.
    pub lost: u64,
    /// Reports behind the first of their order, all orders together.
    #[serde(default)]
    pub further_reports: u64,
    /// Orders with some point stamped more than once.
    pub duplicated: u64,
    /// Pushes that found a ring full, over all threads; of a strategy that died, those of its last
    /// incarnation.
    pub full: u64,
}

impl Orders {
    /// Counts an order that was sent.
    #[inline]
    pub(super) fn count(&mut self, end: OrderEnd) {
        self.sent += 1;
        match end {
            OrderEnd::Returned => self.returned += 1,
            OrderEnd::Rejected => self.rejected += 1,
            OrderEnd::Cancelled => self.cancelled += 1,
            OrderEnd::Orphaned => self.orphaned += 1,
            OrderEnd::Lost => self.lost += 1,
        }
    }
}

/// How an order ended that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEnd {
    /// Its strategy got the venue's report.
    Returned,
    /// Its strategy got the engine's refusal.
    Rejected,
    /// Its venue cancelled it, because its strategy was dead.
    Cancelled,
    /// The engine was done with it, and nobody was there to take the report.
    Orphaned,
    /// None of these.
    Lost,
}

impl OrderEnd {
    /// The end of an order with these stamps. Only the orders of the dead can be orphaned: what a
    /// living strategy does not get is lost.
    #[inline]
    pub fn from_points(points: u64, is_dead: bool) -> Self {
        let has = |point| points & bit(point) != 0;
        let is_done = has(Point::OrchRecvCompletion) || has(Point::Rejected);
        match has(Point::StrategyRecv) {
            true if has(Point::Rejected) => Self::Rejected,
            _ if has(Point::Cancelled) => Self::Cancelled,
            true => Self::Returned,
            false if is_dead && is_done => Self::Orphaned,
            false => Self::Lost,
        }
    }

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Orphaned => "orphaned",
            Self::Lost => "lost",
        }
    }
}

/// What became of the orders of an incarnation that died: those that it got no report of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Never seen again.
    pub lost: u64,
    /// Cancelled by their venue.
    pub cancelled: u64,
    /// Finished or refused by the engine.
    pub orphaned: u64,
}

impl Losses {
    /// Counts an order.
    #[inline]
    pub(super) fn count(&mut self, end: OrderEnd) {
        match end {
            OrderEnd::Returned | OrderEnd::Rejected => {}
            OrderEnd::Cancelled => self.cancelled += 1,
            OrderEnd::Orphaned => self.orphaned += 1,
            OrderEnd::Lost => self.lost += 1,
        }
    }

    /// All of them together.
    pub const fn all(&self) -> u64 {
        self.lost + self.cancelled + self.orphaned
    }
}

impl Sum for Losses {
    fn sum<I: Iterator<Item = Self>>(losses: I) -> Self {
        losses.fold(Self::default(), |sum, losses| Self {
            lost: sum.lost + losses.lost,
            cancelled: sum.cancelled + losses.cancelled,
            orphaned: sum.orphaned + losses.orphaned,
        })
    }
}

/// The outermost stamps of a run, in ticks, and the time that orders were open. Without the orders
/// of strategies that were quarantined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Orders with a t1.
    pub sent: u64,
    /// The first t1; `u64::MAX` if nothing was sent.
    pub first_sent: u64,
    /// The last t1.
    pub last_sent: u64,
    /// Orders with a t8.
    pub received: u64,
    /// The first t8; `u64::MAX` if nothing came back.
    pub first_received: u64,
    /// The last t8.
    pub last_received: u64,
    /// The sum of all t8 − t1.
    pub open_ticks: u128,
}

impl Span {
    /// No time at all.
    pub(super) fn empty() -> Self {
        Self { first_sent: u64::MAX, first_received: u64::MAX, ..Self::default() }
    }

    /// Takes in the time of an order.
    #[inline]
    pub(super) fn take(&mut self, row: &OrderRow) {
        let sent = row.at(Point::StrategySend);
        if let Some(sent) = sent {
            self.sent += 1;
            self.first_sent = self.first_sent.min(sent);
            self.last_sent = self.last_sent.max(sent);
        }
        if let Some(received) = row.at(Point::StrategyRecv) {
            self.received += 1;
            self.first_received = self.first_received.min(received);
            self.last_received = self.last_received.max(received);
            self.open_ticks += u128::from(received.saturating_sub(sent.unwrap_or(received)));
        }
    }
}
