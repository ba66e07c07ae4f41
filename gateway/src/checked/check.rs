//! Whether a report can be: what is known of an open order, and what its venue says of it.

use protocol::reject::Reject;
use protocol::wire::{CancelScope, Operation, Order, OrderId, OrderStatus, OrderType, Report, Side};

/// What a venue said that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VenueError {
    /// Another venue, instrument or side than the order's.
    OtherOrder,
    /// Not the next report of its order.
    Number,
    /// A status that such an order cannot have, or that does not go with what was filled or with
    /// more to come.
    Status,
    /// More filled than was ordered, or sums that go back.
    Quantity,
    /// Filled at a worse price than the limit.
    Price,
}

/// Whether an order goes on after a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// More may follow.
    More,
    /// It is closed.
    Last,
}

/// What is known of an order that is open at a venue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    order: Order,
    filled: u64,
    next_number: u8,
    /// Replaces of it that were sent and not carried out yet.
    replaces: u32,
    /// When it was sent, in ticks.
    sent: u64,
    /// When the venue last said something about it, or when it was sent, in ticks.
    pub heard: u64,
}

impl Open {
    /// An order that is being sent.
    pub const fn new(order: &Order, now: u64) -> Self {
        Self { order: *order, filled: 0, next_number: 0, replaces: 0, sent: now, heard: now }
    }

    /// Whether the venue has said anything about it.
    pub const fn is_acknowledged(&self) -> bool {
        self.next_number > 0
    }

    /// Whether it was there when the venue was told at that time to cancel the orders of a scope.
    pub const fn is_in(&self, (scope, told): (CancelScope, u64)) -> bool {
        self.sent <= told && scope.contains(self.order.id, self.order.instrument)
    }

    /// A replace of it is being sent.
    pub const fn is_to_be_replaced(&mut self) {
        self.replaces = self.replaces.saturating_add(1);
    }

    /// The report that closes it without its venue.
    pub const fn closed(&self, id: OrderId, status: OrderStatus, reason: Reject) -> Report {
        Report {
            id,
            venue: self.order.venue,
            instrument: self.order.instrument,
            status,
            reason: reason.code(),
            side: self.order.side,
            price: self.order.price,
            filled: 0,
            leaves: 0,
            cumulative: self.filled,
            number: self.next_number,
            is_last: true,
        }
    }

    /// Looks at a report of it, of which there may be numbers up to `last_number`, and takes it in
    /// if it can be.
    pub fn check(&mut self, report: &Report, last_number: u8) -> Result<Answer, VenueError> {
        let order = &self.order;
        if (report.venue, report.instrument, report.side) != (order.venue, order.instrument, order.side) {
            return Err(VenueError::OtherOrder);
        }
        if report.number != self.next_number || (!report.is_last && report.number >= last_number) {
            return Err(VenueError::Number);
        }
        let can_be = match (order.operation, report.status) {
            // The orchestrator's word, and no venue's.
            (_, OrderStatus::Rejected) => false,
            (Operation::New, OrderStatus::Done) => false,
            (Operation::New, OrderStatus::Filled) => report.is_last,
            (Operation::New, OrderStatus::PartiallyFilled) => report.filled > 0,
            (Operation::New, OrderStatus::Refused | OrderStatus::Cancelled | OrderStatus::Expired) => {
                report.is_last && report.filled == 0
            }
            (Operation::New, OrderStatus::Replaced) => report.filled == 0 && self.replaces > 0,
            (Operation::New, _) => report.filled == 0,
            (_, OrderStatus::Done | OrderStatus::Refused | OrderStatus::Cancelled) => {
                report.is_last && report.filled == 0
            }
            _ => false,
        };
        if !can_be {
            return Err(VenueError::Status);
        }
        let filled = self.filled.checked_add(report.filled).ok_or(VenueError::Quantity)?;
        let is_replaced = report.status == OrderStatus::Replaced;
        let all = filled.checked_add(report.leaves).ok_or(VenueError::Quantity)?;
        // Of a cancel or a replace nothing is filled: their statuses say so. A replace can make
        // more of an order.
        if order.operation == Operation::New && !is_replaced && all > order.quantity {
            return Err(VenueError::Quantity);
        }
        if report.is_last && report.leaves > 0 {
            return Err(VenueError::Quantity);
        }
        let is_limited = order.terms.order_type == OrderType::Limit && order.price > 0;
        let is_worse = match order.side {
            Side::Buy => report.price > order.price,
            Side::Sell => report.price < order.price,
        };
        if report.filled > 0 && (report.price < 0 || (is_limited && is_worse)) {
            return Err(VenueError::Price);
        }
        if is_replaced {
            self.replaces -= 1;
            (self.order.price, self.order.quantity) = (report.price, all);
        }
        self.filled = filled;
        self.next_number += 1;
        Ok(if report.is_last { Answer::Last } else { Answer::More })
    }
}
