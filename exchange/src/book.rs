//! The book of one instrument: its lists of queues, its best prices, and how orders enter and leave them.

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
    /// A trade at or above it triggers a buy stop.
    pub buy_trigger: i64,
    /// A trade at or below it triggers a sell stop.
    pub sell_trigger: i64,
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
            buy_trigger: i64::MAX,
            sell_trigger: i64::MIN,
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
    pub(crate) fn best(&self, store: &Store<L>, part: Part) -> Option<i64> {
        let queue = self.first[part as usize];
        (queue != NONE).then(|| store.queues.get(queue).price)
    }

    /// The queue behind this one.
    #[inline]
    pub(crate) fn next(&self, store: &Store<L>, part: Part, queue: u32) -> u32 {
        let key = store.queues.get(queue).key;
        self.lists[part as usize].from(&store.pool, key + 1).unwrap_or(NONE)
    }

    /// Whether an order of that side and price would trade now.
    #[inline]
    pub(crate) fn crosses(&self, store: &Store<L>, side: Side, price: i64) -> bool {
        let best = |part| self.best(store, part);
        match side {
            Side::Buy => best(Part::Offers).is_some_and(|offer| offer <= price),
            Side::Sell => best(Part::Bids).is_some_and(|bid| bid >= price),
        }
    }

    /// Puts an open order, which knows its price, at the end of its queue.
    #[inline]
    pub(crate) fn join(&mut self, store: &mut Store<L>, part: Part, slot: u32) {
        let node = store.arena.node_mut(slot);
        node.part = part;
        let price = node.price;
        let key = self.key(part, price);
        let first = self.first[part as usize];
        let list = &mut self.lists[part as usize];
        let queue = if first != NONE && store.queues.get(first).price == price {
            first
        } else if let Some(queue) = list.get(&store.pool, key) {
            queue
        } else {
            let queue = store.queues.allocate(key, price);
            list.insert(&mut store.pool, key, queue);
            if first == NONE || key < store.queues.get(first).key {
                self.first[part as usize] = queue;
                self.stop_changed(part, price);
            }
            queue
        };
        let rank = store.arrive();
        store.queues.append(&mut store.arena, queue, slot, rank);
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
        if store.queues.unlink(&mut store.arena, slot) == 0 {
            self.drop_queue(store, part, queue);
        }
    }

    /// Takes an empty queue out of its list.
    pub(crate) fn drop_queue(&mut self, store: &mut Store<L>, part: Part, queue: u32) {
        let key = store.queues.get(queue).key;
        let list = &mut self.lists[part as usize];
        list.remove(&mut store.pool, key);
        store.queues.release(queue);
        if self.first[part as usize] == queue {
            let first = list.from(&store.pool, key).unwrap_or(NONE);
            self.first[part as usize] = first;
            if matches!(part, Part::BuyStops | Part::SellStops) {
                let none = if part == Part::BuyStops { i64::MAX } else { i64::MIN };
                self.stop_changed(part, self.best(store, part).unwrap_or(none));
            }
        }
    }

    fn stop_changed(&mut self, part: Part, price: i64) {
        match part {
            Part::BuyStops => self.buy_trigger = price,
            Part::SellStops => self.sell_trigger = price,
            _ => {}
        }
    }

    /// Takes an order out of the book for good.
    #[inline]
    pub(crate) fn remove(&mut self, store: &mut Store<L>, slot: u32) {
        self.leave(store, slot);
        store.close(slot);
    }
}

/// How many keys an instrument's prices have.
pub(crate) fn keys(instrument: &Instrument) -> u64 {
    ((instrument.price_high - instrument.price_low) / instrument.tick) as u64 + 1
}
