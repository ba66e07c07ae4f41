//! What a venue does with an order.

use protocol::wire::{Operation, Order, OrderStatus, Report};

/// What a user writes to have a venue of its own. Its methods run on the gateway's thread and must not block; each order gets
/// one report.
///
/// ```
/// use gateway::Venue;
/// use protocol::wire::{Order, Report};
///
/// /// Fills at most 100 at a time, the more slowly the more is asked for.
/// struct Shallow;
///
/// impl Venue for Shallow {
///     fn delay_ns(&mut self, order: &Order) -> u64 {
///         1_000 * order.quantity
///     }
///
///     fn execute(&mut self, order: &Order) -> Report {
///         Report { filled: order.quantity.min(100), ..gateway::in_full(order) }
///     }
/// }
/// ```
pub trait Venue: Send {
    /// How long it takes for an order, in nanoseconds from its arrival. Unless it is written: what the order says.
    fn delay_ns(&mut self, order: &Order) -> u64 {
        order.delay_ns
    }

    /// The report of an order whose time has come. Its id must stay the order's. Orders come here in the order of their times,
    /// not of their arrival.
    fn execute(&mut self, order: &Order) -> Report;

    /// The report of an order that is cancelled at once, because its strategy is dead.
    fn cancel(&mut self, order: &Order) -> Report {
        Report { status: OrderStatus::Cancelled, filled: 0, ..in_full(order) }
    }
}

/// What a user's venue is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueContext {
    /// Which venue it is, from 0.
    pub venue: u16,
    /// How many there are.
    pub venues: u16,
    /// How many strategies trade there.
    pub strategies: u16,
}

/// A venue that executes every new order in full at its price and acknowledges every cancel. Each order's delay comes
/// with the order: it is part of the schedule, so that every technique and isolation level meets the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct DelayVenue;

impl Venue for DelayVenue {
    #[inline]
    fn execute(&mut self, order: &Order) -> Report {
        in_full(order)
    }
}

/// The report of an order that was executed in full, or of a cancel that was acknowledged.
#[inline]
pub const fn in_full(order: &Order) -> Report {
    Report {
        id: order.id,
        venue: order.venue,
        status: OrderStatus::Done,
        reason: 0,
        side: order.side,
        price: order.price,
        filled: match order.operation {
            Operation::New => order.quantity,
            Operation::Cancel => 0,
        },
        number: 0,
        is_last: true,
    }
}
