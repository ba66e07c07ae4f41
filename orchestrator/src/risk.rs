//! The checks that every order must pass before it reaches a venue.

use crate::Position;
pub use protocol::reject::Reject;
use protocol::wire::{Operation, Order};

/// The limits of every strategy.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most orders that a strategy may have at its venues.
    pub max_open: u64,
    /// The largest quantity of one order, in 1e-8 units.
    pub max_quantity: u64,
    /// The kill switch: on, every new order is refused and cancels still pass.
    pub killed: bool,
}

impl Limits {
    /// Limits that an honest schedule never meets.
    pub const fn open_orders(max_open: u64) -> Self {
        Self { max_open, max_quantity: u64::MAX / 2, killed: false }
    }

    /// Checks an order of a strategy with this position, with `venues` venues there.
    ///
    /// # Errors
    /// The first limit that it breaks.
    #[inline]
    pub fn check(&self, order: &Order, position: Position, venues: usize) -> Result<(), Reject> {
        if usize::from(order.venue) >= venues {
            return Err(Reject::UnknownVenue);
        }
        if position.open >= self.max_open {
            return Err(Reject::TooManyOpen);
        }
        if order.operation == Operation::New {
            if self.killed {
                return Err(Reject::Killed);
            }
            if order.quantity > self.max_quantity {
                return Err(Reject::TooLarge);
            }
            if order.price < 0 {
                return Err(Reject::BadPrice);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    pub use protocol::reject::Reject;
    use protocol::wire::OrderId;

    #[test]
    fn each_limit_has_its_reason() {
        let good = Order { price: 1, quantity: 10, ..Order::new(OrderId::new(0, 0, 0), 1) };
        let limits = Limits { max_open: 2, max_quantity: 10, killed: false };
        let idle = Position::default();
        assert_eq!(limits.check(&good, idle, 2), Ok(()));
        assert_eq!(limits.check(&Order { venue: 2, ..good }, idle, 2), Err(Reject::UnknownVenue));
        assert_eq!(limits.check(&good, Position { open: 2, net: 0 }, 2), Err(Reject::TooManyOpen));
        assert_eq!(limits.check(&Order { quantity: 11, ..good }, idle, 2), Err(Reject::TooLarge));
        assert_eq!(limits.check(&Order { price: -1, ..good }, idle, 2), Err(Reject::BadPrice));
        let killed = Limits { killed: true, ..limits };
        assert_eq!(killed.check(&good, idle, 2), Err(Reject::Killed));
        let cancel = Order { operation: Operation::Cancel, ..good };
        assert_eq!(killed.check(&cancel, idle, 2), Ok(()), "open orders can still be cancelled");
    }

    #[test]
    fn codes_round_trip() {
        for code in 0..=u8::MAX {
            assert!(Reject::from_code(code).is_none_or(|reason| reason as u8 == code));
        }
    }
}
