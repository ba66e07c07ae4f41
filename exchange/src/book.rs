//! The order book of one instrument: its price levels, its best prices, and its orders.

use crate::arena::{BookPart, NONE};
use crate::command::{OrderType, Side};
use crate::instrument::Instrument;
use crate::levels::PriceLevels;
use crate::store::OrderStore;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Orders that cross trade at once.
    Continuous,
    /// Orders rest without trading, also if they cross.
    Auction,
}

#[derive(Debug)]
pub(crate) struct Book {
    pub number: u16,
    pub instrument: Instrument,
    pub phase: Phase,
    /// Price of the last trade; 0 if there was none.
    pub last: i64,
    /// Levels by [`BookPart`].
    pub lists: [PriceLevels; 4],
    /// The best queue of each list.
    pub first: [u32; 4],
    /// The price of each best queue, or a price that no order reaches.
    pub edge: [i64; 4],
    /// The best end of the price band for each list, by exclusive or with its price mask.
    best_bounds: [i64; 4],
    /// The price mask of each list.
    pub masks: [i64; 4],
    /// First and last of the stop orders that were triggered and have not acted yet.
    pub triggered: (u32, u32),
}

impl Book {
    pub(crate) fn new(number: u16, instrument: Instrument) -> Self {
        let keys = keys(&instrument);
        Book {
            number,
            instrument,
            phase: Phase::Continuous,
            last: 0,
            lists: BookPart::ALL.map(|part| PriceLevels::new(4 * u32::from(number) + part as u32, keys)),
            first: [NONE; 4],
            edge: BookPart::ALL.map(unreachable_price),
            best_bounds: BookPart::ALL.map(|part| match part.price_mask() {
                0 => instrument.price_low,
                mask => instrument.price_high ^ mask,
            }),
            masks: BookPart::ALL.map(BookPart::price_mask),
            triggered: (NONE, NONE),
        }
    }

    /// Returns the key of a price in the instrument's price band; the price may be off the tick.
    #[inline]
    pub(crate) fn key(&self, part: BookPart, price: i64) -> u64 {
        let from_end = (price ^ self.masks[part as usize]) - self.best_bounds[part as usize];
        if self.instrument.tick == 1 { from_end as u64 } else { (from_end / self.instrument.tick) as u64 }
    }

    /// Returns the best price of a list of the book; `None` if it is empty.
    #[inline]
    pub(crate) fn best(&self, part: BookPart) -> Option<i64> {
        (self.first[part as usize] != NONE).then_some(self.edge[part as usize])
    }

    /// Returns `true` if an order of a list of the book has this price, which is valid.
    #[cfg(feature = "serde")]
    pub(crate) fn has_level(&self, store: &OrderStore, part: BookPart, price: i64) -> bool {
        self.lists[part as usize].get(&store.pool, self.key(part, price)).is_some()
    }

    /// Returns the queue of the next worse price in a list of the book.
    #[inline]
    pub(crate) fn next(&self, store: &OrderStore, part: BookPart, queue: u32) -> u32 {
        let key = store.arena.node(queue).key();
        self.lists[part as usize].at_or_after(&store.pool, key + 1).unwrap_or(NONE)
    }

    /// Returns `true` if an order of this side and price would trade now.
    #[inline]
    pub(crate) fn is_crossed_by(&self, side: Side, price: i64) -> bool {
        let opposite = BookPart::for_side(side.opposite()) as usize;
        self.edge[opposite] ^ self.masks[opposite] <= price ^ self.masks[opposite]
    }

    /// Appends an open order to the queue of its price, which is created if needed.
    #[inline]
    pub(crate) fn join(&mut self, store: &mut OrderStore, part: BookPart, slot: u32) {
        let node = store.arena.node_mut(slot);
        node.part = part;
        let price = node.price;
        let queue = if self.edge[part as usize] == price {
            self.first[part as usize]
        } else {
            let key = self.key(part, price);
            let is_empty = self.first[part as usize] == NONE;
            let existing = if is_empty { None } else { self.lists[part as usize].get(&store.pool, key) };
            existing.unwrap_or_else(|| self.add_queue(store, part, key, price))
        };
        let rank = store.next_rank();
        store.arena.append(queue, slot, rank);
    }

    fn add_queue(&mut self, store: &mut OrderStore, part: BookPart, key: u64, price: i64) -> u32 {
        let queue = store.queues.allocate(&mut store.arena, key, price);
        store.arena.node_mut(queue).owner = self.lists[part as usize].insert(&mut store.pool, key, queue);
        let mask = self.masks[part as usize];
        if price ^ mask < self.edge[part as usize] ^ mask {
            self.first[part as usize] = queue;
            self.edge[part as usize] = price;
        }
        queue
    }

    /// Removes an order from the queue of its price, and the queue once it is empty.
    #[inline(always)]
    pub(crate) fn leave(&mut self, store: &mut OrderStore, slot: u32) {
        let node = store.arena.node_mut(slot);
        let (part, queue) = (node.part, node.queue);
        node.part = BookPart::Unlisted;
        if node.order_type == OrderType::StopLimit && matches!(part, BookPart::BuyStops | BookPart::SellStops)
        {
            store.reserved -= 1;
        }
        if store.arena.unlink(slot) == 0 {
            self.drop_queue(store, part, queue);
        }
    }

    pub(crate) fn drop_queue(&mut self, store: &mut OrderStore, part: BookPart, queue: u32) {
        let (key, leaf) = (store.arena.node(queue).key(), store.arena.node(queue).leaf());
        let list = &mut self.lists[part as usize];
        let lowest = list.remove(&mut store.pool, leaf, key);
        store.queues.release(&mut store.arena, queue);
        if self.first[part as usize] == queue {
            let first = list.next_from(&store.pool, lowest, key);
            self.first[part as usize] = first.unwrap_or(NONE);
            self.edge[part as usize] =
                first.map_or(i64::MAX ^ self.masks[part as usize], |queue| store.arena.node(queue).price);
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, store: &mut OrderStore, slot: u32) {
        self.leave(store, slot);
        store.close(slot);
    }
}

/// Returns a price for an empty list that no order and no trade reaches.
pub(crate) fn unreachable_price(part: BookPart) -> i64 {
    i64::MAX ^ part.price_mask()
}

/// Returns the number of prices in an instrument's band, which is the number of keys.
pub(crate) fn keys(instrument: &Instrument) -> u64 {
    ((instrument.price_high - instrument.price_low) / instrument.tick) as u64 + 1
}
