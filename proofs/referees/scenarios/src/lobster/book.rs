//! A naive book of limit orders, independent of the exchange: a queue of orders for each price.

use exchange::Side;
use std::collections::BTreeMap;

/// A resting order: its number and its open quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resting {
    pub id: u64,
    pub leaves: u64,
}

/// Queues by price for each side. Each queue is in the order of the orders' numbers.
#[derive(Default)]
pub struct Book {
    sides: [BTreeMap<i64, Vec<Resting>>; 2],
}

impl Book {
    /// Returns the orders at a price in priority.
    pub fn queue(&self, side: Side, price: i64) -> &[Resting] {
        self.sides[side as usize].get(&price).map_or(&[], Vec::as_slice)
    }

    /// Iterates over the prices of a side, the best first, with their orders.
    pub fn queues(&self, side: Side) -> Box<dyn Iterator<Item = (i64, &[Resting])> + '_> {
        let queues = self.sides[side as usize].iter().map(|(&price, queue)| (price, queue.as_slice()));
        if side == Side::Buy { Box::new(queues.rev()) } else { Box::new(queues) }
    }

    /// Returns the price and the number of the order that has priority over its side.
    pub fn first(&self, side: Side) -> Option<(i64, u64)> {
        self.queues(side).next().map(|(price, queue)| (price, queue[0].id))
    }

    pub fn leaves(&self, side: Side, price: i64, id: u64) -> Option<u64> {
        self.queue(side, price).iter().find(|order| order.id == id).map(|order| order.leaves)
    }

    /// Enters an order before those with higher numbers.
    pub fn enter(&mut self, side: Side, price: i64, order: Resting) {
        let queue = self.sides[side as usize].entry(price).or_default();
        let position = queue.iter().position(|other| other.id > order.id).unwrap_or(queue.len());
        queue.insert(position, order);
    }

    /// Takes a quantity from an order, which leaves the book once nothing is open.
    pub fn reduce(&mut self, side: Side, price: i64, id: u64, quantity: u64) {
        let side = &mut self.sides[side as usize];
        let Some(queue) = side.get_mut(&price) else { return };
        for order in queue.iter_mut().filter(|order| order.id == id) {
            order.leaves = order.leaves.saturating_sub(quantity);
        }
        queue.retain(|order| order.leaves > 0);
        if queue.is_empty() {
            side.remove(&price);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Book, Resting};
    use exchange::Side;

    #[test]
    fn orders_rest_by_price_and_number() {
        let mut book = Book::default();
        for (id, price) in [(2, 100), (3, 101), (1, 100)] {
            book.enter(Side::Buy, price, Resting { id, leaves: 5 });
            book.enter(Side::Sell, price + 10, Resting { id: id + 10, leaves: 5 });
        }
        assert_eq!((book.first(Side::Buy), book.first(Side::Sell)), (Some((101, 3)), Some((110, 11))));
        book.reduce(Side::Buy, 101, 3, 5);
        book.reduce(Side::Buy, 100, 1, 2);
        assert_eq!((book.first(Side::Buy), book.leaves(Side::Buy, 100, 1)), (Some((100, 1)), Some(3)));
    }
}
