//! Validates a venue's report against the state of its open order.

use protocol::reject::Reject;
use protocol::wire::{CancelScope, Operation, Order, OrderId, OrderStatus, OrderType, Report, Side};

/// An order that is open at a venue, with what its reports have stated so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    order: Order,
    filled: u64,
    next_number: u8,
    replaces: u32,
    /// When it was sent, in ticks.
    sent: u64,
    /// Tick of the order's last report, or at which the order was sent.
    pub last_heard: u64,
}

impl OpenOrder {
    /// Creates the state of an order that is sent to the venue at the tick `now`.
    pub const fn new(order: &Order, now: u64) -> Self {
        Self { order: *order, filled: 0, next_number: 0, replaces: 0, sent: now, last_heard: now }
    }

    /// Returns `true` if the venue has sent any report on the order.
    pub const fn is_acknowledged(&self) -> bool {
        self.next_number > 0
    }

    /// Returns `true` if a mass cancel of a scope, requested at a tick, covers the open order.
    pub const fn is_covered_by(&self, (scope, requested): (CancelScope, u64)) -> bool {
        self.sent <= requested && scope.contains(self.order.id, self.order.request.instrument)
    }

    /// Counts that a replace request for the order is being sent.
    pub const fn count_replace(&mut self) {
        self.replaces = self.replaces.saturating_add(1);
    }

    /// Builds the report with which the validating session closes an order without an answer from
    /// the venue.
    pub const fn closing_report(&self, id: OrderId, status: OrderStatus, reason: Reject) -> Report {
        let (cumulative, number) = (self.filled, self.next_number);
        let report = Report::rejected(&self.order, reason);
        Report { id, status, cumulative, number, ..report }
    }

    /// Applies a venue's report on the order if it is valid, and returns `true`. Its number may be
    /// at most `last_number`. A report is invalid if
    ///
    /// - venue, instrument or side differ from the order's;
    /// - its number is not the next one of its order;
    /// - its status is impossible for such an order, its fill or its remaining quantity;
    /// - more is filled than was ordered, or totals decrease;
    /// - the fill price is worse than the limit.
    pub fn try_apply(&mut self, report: &Report, last_number: u8) -> bool {
        let order = &self.order;
        if (report.venue, report.instrument, report.side)
            != (order.request.venue, order.request.instrument, order.request.side)
            || report.number != self.next_number
            || (!report.is_last && report.number >= last_number)
            || (report.is_last && report.leaves > 0)
            || !self.can_have_status(report)
        {
            return false;
        }
        let is_replaced = report.status == OrderStatus::Replaced;
        let filled = self.filled.checked_add(report.filled);
        let Some((filled, total)) =
            filled.and_then(|filled| Some((filled, filled.checked_add(report.leaves)?)))
        else {
            return false;
        };
        // Cancels and replaces have no fills: their status was checked. A replace can increase the
        // quantity.
        let is_overfill =
            order.request.operation == Operation::New && !is_replaced && total > order.request.quantity;
        let is_limited = order.request.terms.order_type == OrderType::Limit && order.request.price > 0;
        let is_worse_than_limit = match order.request.side {
            Side::Buy => report.price > order.request.price,
            Side::Sell => report.price < order.request.price,
        };
        if is_overfill || report.filled > 0 && (report.price < 0 || (is_limited && is_worse_than_limit)) {
            return false;
        }
        if is_replaced {
            self.replaces -= 1;
            (self.order.request.price, self.order.request.quantity) = (report.price, total);
        }
        self.filled = filled;
        self.next_number += 1;
        true
    }

    const fn can_have_status(&self, report: &Report) -> bool {
        match (self.order.request.operation, report.status) {
            // Only the orchestrator rejects.
            (_, OrderStatus::Rejected) | (Operation::New, OrderStatus::Done) => false,
            (Operation::New, OrderStatus::Filled) => report.is_last,
            (Operation::New, OrderStatus::PartiallyFilled) => report.filled > 0,
            (Operation::New, OrderStatus::Refused | OrderStatus::Cancelled | OrderStatus::Expired)
            | (_, OrderStatus::Done | OrderStatus::Refused | OrderStatus::Cancelled) => {
                report.is_last && report.filled == 0
            }
            (Operation::New, OrderStatus::Replaced) => report.filled == 0 && self.replaces > 0,
            (Operation::New, _) => report.filled == 0,
            _ => false,
        }
    }
}
