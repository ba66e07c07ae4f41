//! Order outcomes: how orders that were sent can end, and their counts.

use super::row::{OrderRow, bit};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};
use std::iter::Sum;
use system::named_enum;

/// The numbers of a run's orders by outcome: sent = returned + rejected + cancelled + orphaned
/// (reported to a dead strategy) + lost (disappeared).
///
/// For a quarantined strategy, only orders that the engine stamped count: its own stamps are
/// untrusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCounts {
    /// Number of orders in the plan.
    pub scheduled: u64,
    /// Number of orders that a strategy stamped as sent (or that the engine received from a dead
    /// strategy).
    pub sent: u64,
    /// Number of orders with a venue report that the strategy received.
    pub returned: u64,
    /// Number of orders that the orchestrator refused, with the refusal received by the strategy.
    pub rejected: u64,
    /// Number of orders that the venue canceled because their strategy died.
    #[serde(default)]
    pub cancelled: u64,
    /// Number of orders that the engine completed or refused, whose strategy died before it
    /// received the report.
    #[serde(default)]
    pub orphaned: u64,
    /// Number of orders that the engine never received or that disappeared otherwise.
    pub lost: u64,
    /// Number of reports after the first one, over all orders.
    #[serde(default)]
    pub further_reports: u64,
    /// Number of orders with a duplicate stamp.
    pub duplicated: u64,
    /// Number of pushes that found a ring full, over all threads; for a dead strategy, of its last
    /// incarnation.
    pub full: u64,
}

impl OrderCounts {
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

named_enum! {
    /// The outcome of an order that was sent: returned, rejected, cancelled, orphaned or lost.
    OrderEnd {
        /// The strategy received the venue's report.
        Returned = "returned",
        /// The strategy received the engine's refusal.
        Rejected = "rejected",
        /// The venue canceled the order because the strategy was dead.
        Cancelled = "cancelled",
        /// The engine had completed the order, and the strategy was dead.
        Orphaned = "orphaned",
        /// The order disappeared.
        Lost = "lost",
    }
}

impl OrderEnd {
    /// Derives the outcome of an order (returned, lost, …) from its stamped points. Only orders of
    /// dead strategies can be orphaned: an order whose report a live strategy misses is lost.
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
}

/// The numbers of a dead strategy's orders without a report, by outcome: canceled by the venue,
/// completed or refused by the engine (orphaned), or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderLosses {
    /// Number of orders that disappeared.
    pub lost: u64,
    /// Number of orders canceled by their venue.
    pub cancelled: u64,
    /// Number of orders completed or refused by the engine.
    pub orphaned: u64,
}

impl OrderLosses {
    /// Counts an order of a dead strategy by its outcome.
    #[inline]
    pub(super) fn count(&mut self, end: OrderEnd) {
        match end {
            OrderEnd::Returned | OrderEnd::Rejected => {}
            OrderEnd::Cancelled => self.cancelled += 1,
            OrderEnd::Orphaned => self.orphaned += 1,
            OrderEnd::Lost => self.lost += 1,
        }
    }

    /// Returns the number of the dead strategy's orders without a report, over all outcomes.
    pub const fn total(&self) -> u64 {
        self.lost + self.cancelled + self.orphaned
    }
}

impl Sum for OrderLosses {
    fn sum<I: Iterator<Item = Self>>(losses: I) -> Self {
        losses.fold(Self::default(), |sum, losses| Self {
            lost: sum.lost + losses.lost,
            cancelled: sum.cancelled + losses.cancelled,
            orphaned: sum.orphaned + losses.orphaned,
        })
    }
}

/// The first and last ticks at which a run's orders were sent and reports received, and the sum of
/// all orders' open times in ticks. Orders of quarantined strategies do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampSpan {
    /// Number of orders with a stamp t1 (sent).
    pub sent: u64,
    /// The first stamp t1; `u64::MAX` if nothing was sent.
    pub first_sent: u64,
    /// The last stamp t1.
    pub last_sent: u64,
    /// Number of orders with a stamp t8 (report received).
    pub received: u64,
    /// The first stamp t8; `u64::MAX` if no order returned.
    pub first_received: u64,
    /// The last stamp t8.
    pub last_received: u64,
    /// Sum of t8 − t1 over all orders, in ticks.
    pub open_ticks: u128,
}

impl StampSpan {
    pub(super) fn empty() -> Self {
        Self { first_sent: u64::MAX, first_received: u64::MAX, ..Self::default() }
    }

    #[inline]
    pub(super) fn include(&mut self, row: &OrderRow) {
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
