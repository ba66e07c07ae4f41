//! From the events of a command to the reports of the orders that they are about.

use crate::open::OpenOrders;
use exchange::event::{CancelReason, Event, Events, RejectReason};
use protocol::session::WITHDRAWN;
use protocol::wire::{MAX_REPORTS, OrderId, OrderStatus, Report};
use serde::{Deserialize, Serialize};

/// Why the exchange answers with a command that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An order of a strategy came, or a cancel, a replace or a mass cancel.
    Request(OrderId),
    /// Orders of a scope are cancelled: their strategy is dead, or a kill switch is on.
    Withdrawal,
    /// Time has passed.
    Time,
    /// Trading is over.
    Close,
}

/// A trade, as it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trade {
    /// Its number at this exchange, from 0.
    pub number: u64,
    /// What was traded.
    pub instrument: u16,
    /// The resting order's id; [`crate::RESTING`] is set for one of the opening book.
    pub maker: u64,
    /// The incoming order's id.
    pub taker: u64,
    /// The price.
    pub price: i64,
    /// The quantity.
    pub quantity: u64,
}

/// Takes the events of one command and makes reports of them.
///
/// What an order takes at one price within one command comes in one report: else the taker of many
/// small orders would run out of numbers.
pub struct ReportBuilder<'a> {
    venue: u16,
    cause: Cause,
    open: &'a mut OpenOrders,
    reports: &'a mut Vec<Report>,
    trades: &'a mut Vec<Trade>,
    /// Orders that were closed because they had no number left for another report: the engine still
    /// has them.
    overrun: &'a mut Vec<u64>,
    /// The taker of the last trade, and where its report stands.
    taken: Option<(u64, usize)>,
    /// The request was refused.
    refused: Option<RejectReason>,
}

/// A report's reason for an order that has had as many reports as one can have.
pub const TOO_MANY_REPORTS: u8 = 64;

/// A report's reason for an order that the exchange refused: 1 to 31. Of one that it cancelled: 33
/// to 63.
pub const fn refusal(reason: RejectReason) -> u8 {
    reason as u8 + 1
}

/// A report's reason for an order that it cancelled.
pub const fn cancellation(reason: CancelReason) -> u8 {
    reason as u8 + 33
}

impl<'a> ReportBuilder<'a> {
    /// Answers to a command at this venue.
    pub fn new(
        venue: u16,
        cause: Cause,
        open: &'a mut OpenOrders,
        reports: &'a mut Vec<Report>,
        trades: &'a mut Vec<Trade>,
        overrun: &'a mut Vec<u64>,
    ) -> Self {
        Self { venue, cause, open, reports, trades, overrun, taken: None, refused: None }
    }

    /// Whether the request was refused.
    pub const fn refused(&self) -> Option<RejectReason> {
        self.refused
    }

    /// A report of an order, of which `leaves` are open then; nothing for one of the opening book,
    /// whose owner is not there. An order that has no number left for another report is closed with
    /// this one.
    #[inline]
    fn report(
        &mut self,
        id: u64,
        status: OrderStatus,
        reason: u8,
        leaves: Option<u64>,
        fill: Option<(i64, u64)>,
    ) {
        let Some(order) = self.open.get_mut(&id) else { return };
        order.leaves = leaves.unwrap_or(order.leaves);
        let (price, filled) = fill.unwrap_or((order.price, 0));
        order.filled += filled;
        let mut report = Report {
            id: OrderId::from_word(id),
            venue: self.venue,
            instrument: order.instrument,
            status,
            reason,
            side: order.side,
            price,
            filled,
            leaves: order.leaves,
            cumulative: order.filled,
            number: order.number,
            is_last: order.leaves == 0,
        };
        if usize::from(order.number) + 1 == MAX_REPORTS && !report.is_last {
            self.overrun.push(id);
            (report.status, report.reason) = (OrderStatus::Cancelled, TOO_MANY_REPORTS);
            (report.leaves, report.is_last) = (0, true);
        }
        order.number += 1;
        if report.is_last {
            self.open.remove(&id);
        }
        self.reports.push(report);
    }

    /// The order is closed without a fill.
    #[inline]
    pub fn close(&mut self, id: u64, status: OrderStatus, reason: u8) {
        self.report(id, status, reason, Some(0), None);
    }

    /// What an order took. More at the price of its last report goes into that report.
    #[inline]
    fn take(&mut self, id: u64, price: i64, quantity: u64, leaves: u64) {
        let taken = self.taken.filter(|(taker, place)| *taker == id && self.reports[*place].price == price);
        let Some((_, place)) = taken else {
            self.taken = self.open.contains_key(&id).then_some((id, self.reports.len()));
            self.fill(id, price, quantity, leaves);
            return;
        };
        let report = &mut self.reports[place];
        report.filled += quantity;
        report.cumulative += quantity;
        report.leaves = leaves;
        if leaves == 0 {
            (report.status, report.is_last) = (OrderStatus::Filled, true);
            self.open.remove(&id);
        } else if let Some(order) = self.open.get_mut(&id) {
            order.filled += quantity;
            order.leaves = leaves;
        }
    }

    #[inline]
    fn fill(&mut self, id: u64, price: i64, quantity: u64, leaves: u64) {
        let status = if leaves == 0 { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
        self.report(id, status, 0, Some(leaves), Some((price, quantity)));
    }
}

impl Events for ReportBuilder<'_> {
    #[inline]
    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { id, .. } => {
                self.report(id, OrderStatus::Accepted, 0, None, None);
            }
            Event::Rejected { reason, .. } => self.refused = Some(reason),
            Event::Trade {
                number,
                instrument,
                maker,
                taker,
                price,
                quantity,
                maker_leaves,
                taker_leaves,
                ..
            } => {
                self.trades.push(Trade { number, instrument, maker, taker, price, quantity });
                self.take(taker, price, quantity, taker_leaves);
                self.fill(maker, price, quantity, maker_leaves);
            }
            Event::Cancelled { id, reason, .. } => match self.cause {
                Cause::Withdrawal => self.close(id, OrderStatus::Cancelled, WITHDRAWN),
                Cause::Close => self.close(id, OrderStatus::Expired, 0),
                Cause::Request(_) | Cause::Time => {
                    self.close(id, OrderStatus::Cancelled, cancellation(reason));
                }
            },
            Event::Expired { id, .. } => self.close(id, OrderStatus::Expired, 0),
            Event::Replaced { id, price, leaves, .. } => {
                if let Some(order) = self.open.get_mut(&id) {
                    order.price = price;
                }
                self.report(id, OrderStatus::Replaced, 0, Some(leaves), None);
            }
            Event::Reduced { id, leaves } => {
                self.report(id, OrderStatus::Restated, 0, Some(leaves), None);
            }
            Event::Triggered { id } => {
                self.report(id, OrderStatus::Triggered, 0, None, None);
            }
            Event::Uncrossed { .. } => {}
        }
    }
}
