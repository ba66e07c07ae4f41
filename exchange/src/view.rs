//! Read access to the books: levels, orders, best prices.

use crate::arena::{NONE, Node, Part};
use crate::book::{Book, Phase};
use crate::command::Side;
use crate::exchange::Exchange;
use crate::levels::Levels;

/// A price level as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: i64,
    /// What its orders show together; icebergs hide more.
    pub quantity: u64,
    /// How many orders there are.
    pub orders: u32,
}

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its name.
    pub id: u64,
    /// Whose it is.
    pub owner: u32,
    /// Its limit price; of a waiting stop order its stop price.
    pub price: i64,
    /// All that is open of it.
    pub leaves: u64,
    /// What is shown of that.
    pub shown: u64,
}

impl<L: Levels> Exchange<L> {
    /// How many orders are open, waiting stop orders too.
    pub fn open_orders(&self) -> usize {
        self.store.arena.used()
    }

    /// Whether no order is open.
    pub fn is_empty(&self) -> bool {
        self.open_orders() == 0
    }

    /// Best bid and best offer.
    pub fn best(&self, instrument: u16) -> (Option<Level>, Option<Level>) {
        let level = |part: Part| {
            let queue = self.books.get(usize::from(instrument))?.first[part as usize];
            (queue != NONE).then(|| shown(self.store.arena.node(queue)))
        };
        (level(Part::Bids), level(Part::Offers))
    }

    /// The best `n` levels of a side, the best first.
    pub fn depth(&self, instrument: u16, side: Side, n: usize) -> impl Iterator<Item = Level> {
        self.queues(instrument, Part::of(side)).take(n).map(shown)
    }

    /// The orders of a side in the order in which they would trade, as far as they are shown.
    pub fn orders(&self, instrument: u16, side: Side) -> impl Iterator<Item = Order> {
        self.queues(instrument, Part::of(side)).flat_map(|queue| self.store.orders(queue)).map(order)
    }

    /// The waiting stop orders of a side in the order in which they would be triggered.
    pub fn stops(&self, instrument: u16, side: Side) -> impl Iterator<Item = Order> {
        self.queues(instrument, Part::stops(side)).flat_map(|queue| self.store.orders(queue)).map(order)
    }

    /// The last trade's price, if there was a trade.
    pub fn last_price(&self, instrument: u16) -> Option<i64> {
        self.books.get(usize::from(instrument)).map(|book| book.last).filter(|&price| price != 0)
    }

    /// Whether an instrument is in a call auction.
    pub fn in_auction(&self, instrument: u16) -> bool {
        self.books.get(usize::from(instrument)).is_some_and(|book| book.phase == Phase::Auction)
    }

    /// The instrument of an open order.
    pub fn instrument_of(&self, id: u64) -> Option<u16> {
        self.store.find(id).map(|slot| self.store.arena.node(slot).instrument)
    }

    /// The time at which the next open order expires; `u64::MAX`: none does.
    #[inline]
    pub fn next_expiry(&self) -> u64 {
        let store = &self.store;
        store.expiry.first().map_or(u64::MAX, |slot| store.arena.details(slot).expires_at)
    }

    /// The queues of a list, the best first.
    pub(crate) fn queues(&self, instrument: u16, part: Part) -> impl Iterator<Item = &Node> {
        let book = self.books.get(usize::from(instrument));
        let is_one = |queue: u32| (queue != NONE).then_some(queue);
        let first = book.and_then(|book: &Book<L>| is_one(book.first[part as usize]));
        let after = move |&queue: &u32| book.and_then(|book| is_one(book.next(&self.store, part, queue)));
        std::iter::successors(first, after).map(|queue| self.store.arena.node(queue))
    }
}

fn shown(queue: &Node) -> Level {
    Level { price: queue.price, quantity: queue.shown, orders: queue.orders() }
}

fn order(node: &Node) -> Order {
    Order { id: node.id, owner: node.owner, price: node.price, leaves: node.leaves, shown: node.shown }
}
