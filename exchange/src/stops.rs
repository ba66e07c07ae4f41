//! Stop orders: they wait by stop price until a trade triggers them, and then execute in order.

use crate::arena::{BookPart, NONE};
use crate::book::Book;
use crate::command::OrderType;
use crate::store::OrderStore;

impl Book {
    /// Returns `true` if a trade at `price` triggers a stop order with the stop price `stop`.
    pub(crate) fn is_stop_reached(&self, part: BookPart, stop: i64, price: i64) -> bool {
        match part {
            BookPart::BuyStops => price >= stop,
            _ => price <= stop,
        }
    }

    /// Triggers the stops that a trade at `price` reaches: buys from the lowest, then sells.
    #[cold]
    pub(crate) fn trigger(&mut self, store: &mut OrderStore, price: i64) {
        for part in [BookPart::BuyStops, BookPart::SellStops] {
            while let Some(stop) = self.best(part)
                && self.is_stop_reached(part, stop, price)
            {
                let queue = self.first[part as usize];
                let slot = store.arena.node(queue).head();
                self.leave(store, slot);
                self.queue_triggered(store, slot);
            }
        }
    }

    /// Appends a stop order to those that a trade has triggered.
    pub(crate) fn queue_triggered(&mut self, store: &mut OrderStore, slot: u32) {
        store.arena.node_mut(slot).next = NONE;
        match self.triggered.1 {
            NONE => self.triggered.0 = slot,
            last => store.arena.node_mut(last).next = slot,
        }
        self.triggered.1 = slot;
    }

    /// Takes the next triggered stop order, now a limit or market order.
    pub(crate) fn next_triggered(&mut self, store: &mut OrderStore) -> Option<u32> {
        let slot = self.triggered.0;
        if slot == NONE {
            return None;
        }
        let node = store.arena.node(slot);
        let (next, limit) = (node.next, node.order_type == OrderType::StopLimit);
        self.triggered.0 = next;
        if next == NONE {
            self.triggered.1 = NONE;
        }
        let price = store.arena.details(slot).limit;
        let node = store.arena.node_mut(slot);
        node.order_type = if limit { OrderType::Limit } else { OrderType::Market };
        node.price = if limit { price } else { 0 };
        Some(slot)
    }
}
