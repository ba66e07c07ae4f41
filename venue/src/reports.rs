//! Builds the execution reports of orders from the events of a command.

use crate::open_orders::OpenOrders;
use exchange::event::{CancelReason, Event, Events, RejectReason};
use protocol::session::WITHDRAWN;
use protocol::wire::{MAX_REPORTS, OrderId, OrderStatus, Report};
use serde::{Deserialize, Serialize};

/// The cause of a command of the matching engine: a message of a session, or the exchange itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A request of a strategy: an order, a cancel, a replace or a mass cancel.
    Request(OrderId),
    /// The cancellation of a scope by the engine: the strategy crashed, or a kill switch is on.
    Withdrawal,
    Time,
    Close,
}

/// A trade as it is recorded on the exchange's tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trade {
    /// Number of the trade at this exchange, from 0.
    pub number: u64,
    /// Index of the instrument.
    pub instrument: u16,
    /// The resting order's id; [`crate::RESTING`] is set for one of the opening book.
    pub maker: u64,
    /// Id of the incoming order.
    pub taker: u64,
    /// Price of the trade in cents.
    pub price: i64,
    /// Traded quantity in 1e-8 units.
    pub quantity: u64,
}

/// Converts the matching engine's events for one command into execution reports and trades. Fills
/// of one order at one price share a report: a taker of many small orders would run out of numbers.
pub struct ReportBuilder<'a> {
    venue: u16,
    cause: Cause,
    open: &'a mut OpenOrders,
    reports: &'a mut Vec<Report>,
    trades: &'a mut Vec<Trade>,
    /// Orders closed because they had no report number left: still in the matching engine.
    overrun: &'a mut Vec<u64>,
    /// The taker of the last trade, and the index of its report.
    last_take: Option<(u64, usize)>,
    refused: Option<RejectReason>,
}

/// The reason code in the closing report on an order that has no report number left.
pub const TOO_MANY_REPORTS: u8 = 64;

/// Converts the matching engine's reason for a rejection into the reason code of a report: 1 to 31.
pub const fn refusal(reason: RejectReason) -> u8 {
    reason as u8 + 1
}

/// Converts the matching engine's reason for a cancel into the reason code of a report: 33 to 63.
pub const fn cancellation(reason: CancelReason) -> u8 {
    reason as u8 + 33
}

impl<'a> ReportBuilder<'a> {
    pub fn new(
        venue: u16,
        cause: Cause,
        open: &'a mut OpenOrders,
        reports: &'a mut Vec<Report>,
        trades: &'a mut Vec<Trade>,
        overrun: &'a mut Vec<u64>,
    ) -> Self {
        Self { venue, cause, open, reports, trades, overrun, last_take: None, refused: None }
    }

    pub const fn refused(&self) -> Option<RejectReason> {
        self.refused
    }

    /// Adds a report of an order with `leaves` open; without another number it is closed.
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

    /// Closes an open order without a fill, and adds the execution report about it.
    #[inline]
    pub fn close(&mut self, id: u64, status: OrderStatus, reason: u8) {
        self.report(id, status, reason, Some(0), None);
    }

    /// Adds a fill of the taker; one at the price of its last report is added to that report.
    #[inline]
    fn record_take(&mut self, id: u64, price: i64, quantity: u64, leaves: u64) {
        let taken =
            self.last_take.filter(|(taker, index)| *taker == id && self.reports[*index].price == price);
        let Some((_, index)) = taken else {
            self.last_take = self.open.contains_key(&id).then_some((id, self.reports.len()));
            self.fill(id, price, quantity, leaves);
            return;
        };
        let report = &mut self.reports[index];
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
                self.record_take(taker, price, quantity, taker_leaves);
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
