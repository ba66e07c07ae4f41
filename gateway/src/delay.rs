//! Venues with one report an order: each order is held for a delay, and then reported.

use crate::held::TimerWheel;
use crate::venue::{Reports, Sweep, Venue, VenueContext, VenueInfo};
use protocol::wire::{Message, Operation, Order, OrderId, OrderStatus, Report};

/// What a user writes to have a venue with one report an order. Its methods run on the gateway's
/// thread and must not block.
///
/// ```
/// use gateway::DelayModel;
/// use protocol::wire::{Order, Report};
///
/// /// Fills at most 100 at a time, the more slowly the more is asked for.
/// struct Shallow;
///
/// impl DelayModel for Shallow {
///     fn delay_ns(&mut self, order: &Order) -> u64 {
///         1_000 * order.quantity
///     }
///
///     fn execute(&mut self, order: &Order) -> Report {
///         Report { filled: order.quantity.min(100), ..gateway::in_full(order) }
///     }
/// }
/// ```
pub trait DelayModel: Send {
    /// How long it takes for an order, in nanoseconds from its arrival. Unless it is written: what
    /// the order says.
    fn delay_ns(&mut self, order: &Order) -> u64 {
        order.delay_ns
    }

    /// The report of an order whose time has come. Its id stays the order's, and it is the only
    /// one. Orders come here in the order of their times, not of their arrival.
    fn execute(&mut self, order: &Order) -> Report;

    /// The report of an order that is cancelled at once, because its strategy is dead.
    fn cancel(&mut self, order: &Order) -> Report {
        Report { status: OrderStatus::Cancelled, filled: 0, cumulative: 0, ..in_full(order) }
    }
}

/// Executes every new order in full at its price and acknowledges every cancel. Each order's delay
/// comes with the order: it is part of the schedule, so that every technique and isolation level
/// meets the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFull;

impl DelayModel for InFull {
    #[inline]
    fn execute(&mut self, order: &Order) -> Report {
        in_full(order)
    }
}

/// The report of an order that was executed in full, or of a cancel or a replace that was
/// acknowledged.
#[inline]
pub const fn in_full(order: &Order) -> Report {
    let (status, filled) = match order.operation {
        Operation::New => (OrderStatus::Filled, order.quantity),
        Operation::Cancel | Operation::Replace | Operation::MassCancel => (OrderStatus::Done, 0),
    };
    Report {
        id: order.id,
        venue: order.venue,
        instrument: order.instrument,
        status,
        reason: 0,
        side: order.side,
        price: order.price,
        filled,
        leaves: 0,
        cumulative: filled,
        number: 0,
        is_last: true,
    }
}

/// The venue of a [`DelayModel`].
pub struct DelayVenue<M = InFull> {
    model: M,
    /// As they were on the wire: that is one cache line each.
    held: TimerWheel<Message>,
}

impl<M: DelayModel> DelayVenue<M> {
    /// Holds as many orders as the context says; past that it takes no more.
    pub fn new(model: M, context: &VenueContext) -> Self {
        Self::holding(model, context.max_held)
    }

    /// Holds at most so many orders.
    pub fn holding(model: M, max_held: usize) -> Self {
        Self { model, held: TimerWheel::with_capacity(max_held) }
    }
}

/// The one report of an order, whatever the model says.
#[inline]
fn only(report: Report, order: &Order) -> Report {
    Report { id: order.id, number: 0, is_last: true, ..report }
}

impl<M: DelayModel> Venue for DelayVenue<M> {
    const RECORD: VenueInfo = VenueInfo::ONE_REPORT;

    #[inline]
    fn has_room(&self) -> bool {
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
        // Nearly always one: its way is the straight one.
        while let Some(message) = self.held.pop_due(now) {
            // It was an order when it came.
            if let Ok(order) = Order::from_message(message) {
                // There is room.
                let _ = reports.send(only(self.model.execute(&order), &order));
            }
            if self.held.next_release() > now || !reports.has_room() {
                break;
            }
        }
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        self.held.next_release()
    }

    fn keep_warm(&self) {
        self.held.keep_warm();
    }

    fn cancel_all(&mut self, sweep: &mut Sweep, reports: &mut impl Reports) -> bool {
        while reports.has_room() {
            let key_of = |message: &Message| {
                let order = Order::from_message(*message).ok();
                order.map_or((OrderId::from_word(message[0]), 0), |order| (order.id, order.instrument))
            };
            let Some(message) = self.held.cancel(sweep, key_of) else { break };
            if let Ok(order) = Order::from_message(message) {
                let _ = reports.send(only(self.model.cancel(&order), &order));
            }
        }
        self.held.is_swept(sweep)
    }
}
