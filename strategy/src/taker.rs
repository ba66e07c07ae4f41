//! A taker: takes what others have put into the book, at the times of its schedule.
//!
//! Each new order of the schedule becomes an immediate-or-cancel order of the same side and quantity, whose limit is [`REACH`] worse
//! than the scheduled price: it pays for being served at once. A scheduled cancel is left out, as nothing of it ever rests.

use crate::player::{Player, Shape};
use crate::{NewOrder, Orders, Strategy};
use protocol::wire::{Operation, OrderId, OrderType, SelfTrade, Side, Terms, TimeInForce};

/// How much worse than the scheduled price it takes, in cents.
pub const REACH: i64 = 100;

/// See the module.
pub struct Taker {
    player: Player,
}

impl Taker {
    /// A taker that follows these times.
    pub const fn new(player: Player) -> Self {
        Self { player }
    }
}

/// Takes at once, or not at all.
struct AtOnce;

impl Shape for AtOnce {
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        if scheduled.operation != Operation::New || scheduled.quantity == 0 {
            return None;
        }
        let terms = Terms {
            time_in_force: TimeInForce::ImmediateOrCancel,
            self_trade: SelfTrade::CancelNewest,
            ..scheduled.terms
        };
        let price = match scheduled.side {
            // A recorded market order has no price.
            _ if scheduled.price == 0 || scheduled.terms.order_type == OrderType::Market => scheduled.price,
            Side::Buy => scheduled.price.saturating_add(REACH),
            Side::Sell => scheduled.price.saturating_sub(REACH).max(1),
        };
        Some(NewOrder { price, terms, ..*scheduled })
    }

    fn sent(&mut self, _: &NewOrder, _: OrderId) {}
}

impl Strategy for Taker {
    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() { 0 } else { self.player.send_due(orders, &mut AtOnce) }
    }

    fn next_due(&self) -> u64 {
        self.player.next_due()
    }

    fn finished(&self) -> bool {
        self.player.finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_at_once_at_a_worse_price_than_was_scheduled() {
        let scheduled = NewOrder { price: 1_000, quantity: 3, ..NewOrder::to_venue(0) };
        let taken = AtOnce.shape(&scheduled).unwrap();
        assert_eq!((taken.price, taken.quantity), (1_000 + REACH, 3));
        assert_eq!(taken.terms.time_in_force, TimeInForce::ImmediateOrCancel);
        let sold = AtOnce.shape(&NewOrder { side: Side::Sell, ..scheduled }).unwrap();
        assert_eq!(sold.price, 1_000 - REACH);
        assert_eq!(AtOnce.shape(&NewOrder { side: Side::Sell, price: 50, ..scheduled }).unwrap().price, 1);
        assert_eq!(AtOnce.shape(&NewOrder { price: 0, ..scheduled }).unwrap().price, 0, "at any price");
        assert_eq!(AtOnce.shape(&NewOrder { price: i64::MAX, ..scheduled }).unwrap().price, i64::MAX);
    }

    #[test]
    fn nothing_of_it_rests_so_it_cancels_nothing() {
        let cancel = NewOrder { operation: Operation::Cancel, quantity: 0, ..NewOrder::to_venue(0) };
        assert_eq!(AtOnce.shape(&cancel), None);
    }
}
