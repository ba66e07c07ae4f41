//! Queries: best prices, depth, and open orders.

use crate::arena::{BookPart, NONE, Node};
use crate::book::{Book, Phase};
use crate::command::Side;
use crate::exchange::Exchange;

/// A price level of an order book: its price, its displayed quantity (without the hidden part of
/// orders) and its number of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Level {
    /// Price of the price level.
    pub price: i64,
    /// Sum of the displayed quantities; icebergs hide more.
    pub quantity: u64,
    /// Number of orders at the price level.
    pub orders: u32,
}

/// An open order of an exchange, as queries return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Order {
    /// Order id.
    pub id: u64,
    /// Owner of the order.
    pub owner: u32,
    /// Index of the instrument.
    pub instrument: u16,
    /// Side of the order.
    pub side: Side,
    /// Limit price; of a waiting stop order, its stop price.
    pub price: i64,
    /// Open quantity, hidden quantity included.
    pub leaves: u64,
    /// Displayed part of the open quantity.
    pub shown: u64,
}

impl Exchange {
    /// Returns the number of open orders, waiting stop orders included.
    pub fn open_orders(&self) -> usize {
        self.store.arena.used()
    }

    /// Returns `true` if the exchange has no open order.
    pub fn is_empty(&self) -> bool {
        self.open_orders() == 0
    }

    /// Returns the best bid and the best offer of an instrument.
    pub fn best(&self, instrument: u16) -> (Option<Level>, Option<Level>) {
        let level = |part: BookPart| {
            let queue = self.books.get(usize::from(instrument))?.first[part as usize];
            (queue != NONE).then(|| shown(self.store.arena.node(queue)))
        };
        (level(BookPart::Bids), level(BookPart::Offers))
    }

    /// Iterates over the best `n` price levels of a side of an order book, the best first.
    pub fn depth(&self, instrument: u16, side: Side, n: usize) -> impl Iterator<Item = Level> {
        self.queues(instrument, BookPart::for_side(side)).take(n).map(shown)
    }

    /// Iterates over the orders of a side of an order book in price-time priority.
    pub fn orders(&self, instrument: u16, side: Side) -> impl Iterator<Item = Order> {
        self.queues(instrument, BookPart::for_side(side))
            .flat_map(|queue| self.store.orders(queue))
            .map(order)
    }

    /// Iterates over the waiting stop orders of a side of an order book, in the order of
    /// triggering.
    pub fn stops(&self, instrument: u16, side: Side) -> impl Iterator<Item = Order> {
        self.queues(instrument, BookPart::stops_for_side(side))
            .flat_map(|queue| self.store.orders(queue))
            .map(order)
    }

    /// Returns the price of an instrument's last trade, if there was one.
    pub fn last_price(&self, instrument: u16) -> Option<i64> {
        self.books.get(usize::from(instrument)).map(|book| book.last).filter(|&price| price != 0)
    }

    /// Returns `true` if an instrument is in a call auction.
    pub fn is_in_auction(&self, instrument: u16) -> bool {
        self.books.get(usize::from(instrument)).is_some_and(|book| book.phase == Phase::Auction)
    }

    /// Returns the open order with this id; `None` if there is none.
    #[inline]
    pub fn order(&self, id: u64) -> Option<Order> {
        self.store.find(id).map(|slot| order(self.store.arena.node(slot)))
    }

    /// Returns the time at which the next open order expires, in the unit of
    /// `NewOrder::expires_at`; `u64::MAX` if no order expires.
    #[inline]
    pub fn next_expiry(&self) -> u64 {
        let store = &self.store;
        store.expiry.first().map_or(u64::MAX, |slot| store.arena.details(slot).expires_at)
    }

    /// Iterates over the price queues of a list of the book, the best first.
    pub(crate) fn queues(&self, instrument: u16, part: BookPart) -> impl Iterator<Item = &Node> {
        let book = self.books.get(usize::from(instrument));
        let some = |queue: u32| (queue != NONE).then_some(queue);
        let first = book.and_then(|book: &Book| some(book.first[part as usize]));
        let after = move |&queue: &u32| book.and_then(|book| some(book.next(&self.store, part, queue)));
        std::iter::successors(first, after).map(|queue| self.store.arena.node(queue))
    }
}

fn shown(queue: &Node) -> Level {
    Level { price: queue.price, quantity: queue.shown, orders: queue.orders() }
}

#[inline]
fn order(node: &Node) -> Order {
    let Node { id, owner, instrument, side, price, leaves, shown, .. } = *node;
    Order { id, owner, instrument, side, price, leaves, shown }
}
