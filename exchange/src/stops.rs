//! Stop orders: they wait by stop price, a trade triggers them, and they act one after the other.

use crate::arena::{NONE, Part};
use crate::book::Book;
use crate::command::OrderType;
use crate::levels::Levels;
use crate::store::Store;

impl<L: Levels> Book<L> {
    /// Whether a stop order would be triggered by a trade at that price.
    pub(crate) fn reached(&self, part: Part, stop: i64, price: i64) -> bool {
        match part {
            Part::BuyStops => price >= stop,
            _ => price <= stop,
        }
    }

    /// Queues all stop orders that a trade at that price triggers: buy stops from the lowest, then
    /// sell stops from the highest.
    #[cold]
    pub(crate) fn trigger(&mut self, store: &mut Store<L>, price: i64) {
        for part in [Part::BuyStops, Part::SellStops] {
            while let Some(stop) = self.best(part)
                && self.reached(part, stop, price)
            {
                let queue = self.first[part as usize];
                let slot = store.arena.node(queue).head();
                self.leave(store, slot);
                self.queue_triggered(store, slot);
            }
        }
    }

    /// Appends a stop order to those that act next.
    pub(crate) fn queue_triggered(&mut self, store: &mut Store<L>, slot: u32) {
        store.arena.node_mut(slot).next = NONE;
        match self.triggered.1 {
            NONE => self.triggered.0 = slot,
            last => store.arena.node_mut(last).next = slot,
        }
        self.triggered.1 = slot;
    }

    /// The next stop order that acts. It is a limit or market order from now on.
    pub(crate) fn next_triggered(&mut self, store: &mut Store<L>) -> Option<u32> {
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
