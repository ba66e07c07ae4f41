//! A simulated venue that holds each order for a delay and then reports it.

use crate::timer_wheel::TimerWheel;
use crate::venue::{CancelSweep, Reports, Venue, VenueContext, VenueInfo};
use protocol::wire::{Message, Operation, Order, OrderId, OrderStatus, Report};

/// The behavior of a simulated venue that reports once on each order, after a delay. Its methods
/// run on the gateway's thread and must not block. `contrib/examples/own-strategy/src/shallow.rs`
/// is one.
pub trait DelayModel: Send {
    /// Returns the delay of an order at the venue, in nanoseconds from its arrival. Default: the
    /// order's own delay.
    fn delay_ns(&mut self, order: &Order) -> u64 {
        order.request.delay_ns
    }

    /// Returns the only report on an order whose delay has passed. Orders come in order of release
    /// time, not of arrival.
    fn execute(&mut self, order: &Order) -> Report;

    /// Returns the report on an order that the gateway cancels before its delay has passed, because
    /// its strategy crashed.
    fn cancel(&mut self, order: &Order) -> Report {
        Report { status: OrderStatus::Cancelled, filled: 0, cumulative: 0, ..in_full(order) }
    }
}

/// A delay model that fills every new order in full at its price, and accepts every cancel.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFull;

impl DelayModel for InFull {
    #[inline]
    fn execute(&mut self, order: &Order) -> Report {
        in_full(order)
    }
}

/// Returns the report on an order that is filled in full, or on a cancel or replace that is
/// accepted.
#[inline]
pub const fn in_full(order: &Order) -> Report {
    let (status, filled) = match order.request.operation {
        Operation::New => (OrderStatus::Filled, order.request.quantity),
        Operation::Cancel | Operation::Replace | Operation::MassCancel => (OrderStatus::Done, 0),
    };
    Report { status, filled, cumulative: filled, ..Report::full_fill(order) }
}

/// A venue that holds orders in a timing wheel for a delay, and reports as its [`DelayModel`]
/// decides.
pub struct DelayVenue<M = InFull> {
    model: M,
    /// In wire format: one cache line each.
    held: TimerWheel<Message>,
}

impl<M: DelayModel> DelayVenue<M> {
    /// Creates a venue with memory for `context.max_held` orders that wait for their delays to
    /// pass.
    pub fn new(model: M, context: &VenueContext) -> Self {
        Self::with_capacity(model, context.max_held)
    }

    /// Creates a venue with memory for `max_held` orders that wait for their delays to pass.
    pub fn with_capacity(model: M, max_held: usize) -> Self {
        Self { model, held: TimerWheel::with_capacity(max_held) }
    }
}

#[inline]
fn single_report(report: Report, order: &Order) -> Report {
    Report { id: order.id, number: 0, is_last: true, ..report }
}

impl<M: DelayModel> Venue for DelayVenue<M> {
    const INFO: VenueInfo = VenueInfo::ONE_REPORT;

    #[inline]
    fn has_capacity(&self) -> bool {
        !self.held.is_full()
    }

    #[inline]
    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let release = now.saturating_add(reports.time().ticks(self.model.delay_ns(order)));
        self.held.push(release, order.to_message());
        Some(release)
    }

    #[inline]
    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        // Nearly always exactly one is due, so that case has no further branch.
        while let Some(message) = self.held.pop_due(now) {
            // Always an order: it was encoded from one.
            if let Ok(order) = Order::from_message(message) {
                // Cannot fail: checked below.
                let _ = reports.send(single_report(self.model.execute(&order), &order));
            }
            if self.held.next_release() > now || !reports.has_capacity() {
                break;
            }
        }
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        self.held.next_release()
    }

    fn prefetch_hot(&self) {
        self.held.prefetch_hot();
    }

    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, reports: &mut impl Reports) -> bool {
        while reports.has_capacity() {
            let key_of = |message: &Message| {
                let order = Order::from_message(*message).ok();
                order
                    .map_or((OrderId::from_word(message[0]), 0), |order| (order.id, order.request.instrument))
            };
            let Some(message) = self.held.cancel(sweep, key_of) else { break };
            if let Ok(order) = Order::from_message(message) {
                let _ = reports.send(single_report(self.model.cancel(&order), &order));
            }
        }
        self.held.is_swept(sweep)
    }
}
