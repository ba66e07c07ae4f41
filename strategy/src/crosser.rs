//! A crosser: a strategy that rests an order and trades against it with its next order. Its load
//! can last for any time, because nothing of it stays open at an exchange.
//!
//! At each venue the first scheduled order is sent as it is, and the second one becomes a market
//! order of the other side for the quantity of the first: it takes that order, or another one that
//! is better. So as much is taken as rests, whatever prices and strategies there are.

use crate::player::{OrderShaper, Player};
use crate::{Orders, Strategy};
use protocol::wire::{Operation, OrderId, OrderRequest, OrderTerms, OrderType, Side, TimeInForce};

/// A strategy whose every second order trades against the resting order that it sent before.
pub struct Crosser {
    player: Player,
    state: CrosserState,
}

struct CrosserState {
    /// The resting order that the next order at a venue takes.
    resting: Vec<Option<OrderRequest>>,
}

impl Crosser {
    /// Creates a crosser that trades at the first `venues` venues, when the orders of `player`'s
    /// schedule are due.
    pub fn new(player: Player, venues: u16) -> Self {
        Self { player, state: CrosserState { resting: vec![None; venues.into()] } }
    }
}

/// Returns the market order that takes a resting order.
fn taking_order(resting: &OrderRequest, scheduled: &OrderRequest) -> OrderRequest {
    let side = match resting.side {
        Side::Buy => Side::Sell,
        Side::Sell => Side::Buy,
    };
    let terms = OrderTerms {
        order_type: OrderType::Market,
        time_in_force: TimeInForce::ImmediateOrCancel,
        ..OrderTerms::default()
    };
    let OrderRequest { quantity, instrument, .. } = *resting;
    OrderRequest { side, quantity, instrument, price: 0, terms, ..*scheduled }
}

impl OrderShaper for CrosserState {
    fn shape_order(&mut self, scheduled: &OrderRequest, _: Option<u64>) -> Option<OrderRequest> {
        if scheduled.operation != Operation::New {
            return None;
        }
        let resting = self.resting.get(usize::from(scheduled.venue)).copied().flatten();
        Some(resting.map_or(*scheduled, |resting| taking_order(&resting, scheduled)))
    }

    fn on_sent(&mut self, order: &OrderRequest, _: OrderId) {
        if let Some(resting) = self.resting.get_mut(usize::from(order.venue)) {
            *resting = if resting.is_none() { Some(*order) } else { None };
        }
    }
}

impl Strategy for Crosser {
    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.player.due() > orders.now() { 0 } else { self.player.send_due(orders, &mut self.state) }
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
    fn every_second_order_takes_the_one_before() {
        let mut state = CrosserState { resting: vec![None; 2] };
        let id = OrderId::new(0, 0, 0);
        let scheduled = |quantity, venue| OrderRequest {
            price: 1_000,
            quantity,
            instrument: 3,
            ..OrderRequest::to_venue(venue)
        };
        let mut sent = |quantity, venue| {
            let order = state.shape_order(&scheduled(quantity, venue), None).unwrap();
            // Refused once, and shaped again.
            assert_eq!(state.shape_order(&scheduled(quantity, venue), None), Some(order));
            state.on_sent(&order, id);
            order
        };
        assert_eq!(sent(5, 0), scheduled(5, 0));
        assert_eq!(sent(6, 1), scheduled(6, 1));
        let taking = sent(9, 0);
        assert_eq!((taking.side, taking.quantity, taking.price, taking.instrument), (Side::Sell, 5, 0, 3));
        assert_eq!(taking.terms.order_type, OrderType::Market);
        assert_eq!(sent(7, 0), scheduled(7, 0));
        assert_eq!(sent(8, 1).quantity, 6);
    }

    #[test]
    fn recorded_cancels_are_left_out() {
        let mut state = CrosserState { resting: vec![None] };
        let cancel = OrderRequest { operation: Operation::Cancel, ..OrderRequest::to_venue(0) };
        assert_eq!(state.shape_order(&cancel, None), None);
    }
}
