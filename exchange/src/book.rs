//! The book of one instrument: its lists of queues, its best prices, and how orders enter and leave
//! them.

use crate::arena::{NONE, Part};
use crate::command::{OrderType, Side};
use crate::instrument::Instrument;
use crate::levels::Levels;
use crate::store::Store;

/// What trading does with orders that cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// They trade.
    Continuous,
    /// They gather.
    Auction,
}

/// The book.
#[derive(Debug)]
pub(crate) struct Book<L> {
    pub number: u16,
    pub instrument: Instrument,
    pub phase: Phase,
    /// The last trade's price; 0: there was none.
    pub last: i64,
    /// Levels by [`Part`].
    pub lists: [L; 4],
    /// The best queue of each list.
    pub first: [u32; 4],
    /// Its price, or a price that no order reaches.
    pub edge: [i64; 4],
    /// The stop orders that were triggered and have not acted: the first, and the last.
    pub triggered: (u32, u32),
}

impl<L: Levels> Book<L> {
    pub(crate) fn new(number: u16, instrument: Instrument, levels: usize) -> Self {
        let keys = keys(&instrument);
        Book {
            number,
            instrument,
            phase: Phase::Continuous,
            last: 0,
            lists: [(); 4].map(|()| L::new(levels, keys)),
            first: [NONE; 4],
            edge: Part::ALL.map(unreachable_price),
            triggered: (NONE, NONE),
        }
    }

    /// The key of a price of the band, which may be off the tick.
    #[inline]
    pub(crate) fn key(&self, part: Part, price: i64) -> u64 {
        let from_end =
            if part.falls() { self.instrument.price_high - price } else { price - self.instrument.price_low };
        if self.instrument.tick == 1 { from_end as u64 } else { (from_end / self.instrument.tick) as u64 }
    }

    /// The price of the best queue of a list.
    #[inline]
    pub(crate) fn best(&self, part: Part) -> Option<i64> {
        (self.first[part as usize] != NONE).then_some(self.edge[part as usize])
    }

    /// The queue behind this one.
    #[inline]
    pub(crate) fn next(&self, store: &Store<L>, part: Part, queue: u32) -> u32 {
        let key = store.arena.node(queue).key();
        self.lists[part as usize].from(&store.pool, key + 1).unwrap_or(NONE)
    }

    /// Whether an order of that side and price would trade now.
    #[inline]
    pub(crate) fn crosses(&self, side: Side, price: i64) -> bool {
        match side {
            Side::Buy => self.edge[Part::Offers as usize] <= price,
            Side::Sell => self.edge[Part::Bids as usize] >= price,
        }
    }

    /// Puts an open order, which knows its price, at the end of its queue.
    #[inline]
    pub(crate) fn join(&mut self, store: &mut Store<L>, part: Part, slot: u32) {
        let node = store.arena.node_mut(slot);
        node.part = part;
        let price = node.price;
        let queue = if self.edge[part as usize] == price {
            self.first[part as usize]
        } else {
            let key = self.key(part, price);
            match self.lists[part as usize].get(&store.pool, key) {
                Some(queue) => queue,
                None => self.add_queue(store, part, key, price),
            }
        };
        let rank = store.arrive();
        store.arena.append(queue, slot, rank);
    }

    /// Puts an empty queue into its list.
    fn add_queue(&mut self, store: &mut Store<L>, part: Part, key: u64, price: i64) -> u32 {
        let queue = store.queues.allocate(&mut store.arena, key, price);
        self.lists[part as usize].insert(&mut store.pool, key, queue);
        let first = self.first[part as usize];
        if first == NONE || key < store.arena.node(first).key() {
            self.first[part as usize] = queue;
            self.edge[part as usize] = price;
        }
        queue
    }

    /// Takes an order out of its queue, and the queue out of its list when it is empty.
    #[inline]
    pub(crate) fn leave(&mut self, store: &mut Store<L>, slot: u32) {
        let node = store.arena.node_mut(slot);
        let (part, queue) = (node.part, node.queue);
        node.part = Part::Nowhere;
        if node.order_type == OrderType::StopLimit && matches!(part, Part::BuyStops | Part::SellStops) {
            store.reserved -= 1;
        }
        if store.arena.unlink(slot) == 0 {
            self.drop_queue(store, part, queue);
        }
    }

    /// Takes an empty queue out of its list.
    pub(crate) fn drop_queue(&mut self, store: &mut Store<L>, part: Part, queue: u32) {
        let key = store.arena.node(queue).key();
        let list = &mut self.lists[part as usize];
        list.remove(&mut store.pool, key);
        store.queues.release(&mut store.arena, queue);
        if self.first[part as usize] == queue {
            let first = list.from(&store.pool, key);
            self.first[part as usize] = first.unwrap_or(NONE);
            self.edge[part as usize] =
                first.map_or(unreachable_price(part), |queue| store.arena.node(queue).price);
        }
    }

    /// Takes an order out of the book for good.
    #[inline]
    pub(crate) fn remove(&mut self, store: &mut Store<L>, slot: u32) {
        self.leave(store, slot);
        store.close(slot);
    }
}

/// A price behind all others of a list: no order and no trade reaches it.
pub(crate) fn unreachable_price(part: Part) -> i64 {
    if part.falls() { i64::MIN } else { i64::MAX }
}

/// How many keys an instrument's prices have.
pub(crate) fn keys(instrument: &Instrument) -> u64 {
    ((instrument.price_high - instrument.price_low) / instrument.tick) as u64 + 1
}
