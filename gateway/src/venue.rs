//! What a venue does with an order once its delay has passed.

use protocol::wire::{Operation, Order, Report, Status};

/// A venue that executes every new order in full at its price and acknowledges every cancel. Each order's delay comes
/// with the order: it is part of the schedule, so that every technique and isolation level meets the same one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Venue;

impl Venue {
    /// The report for an order that is cancelled because its strategy is dead.
    pub fn cancel(&self, order: &Order) -> Report {
        Report { status: Status::Cancelled, filled: 0, ..self.execute(order) }
    }

    /// The report for an order whose delay has passed.
    #[inline]
    pub fn execute(&self, order: &Order) -> Report {
        Report {
            id: order.id,
            venue: order.venue,
            status: Status::Done,
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
}
