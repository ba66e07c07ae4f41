//! The invariants of an exchange's state, and the check of all of them.

use crate::arena::{BookPart, NONE, Node};
use crate::book::{Book, Phase, unreachable_price};
use crate::command::{OrderType, TimeInForce};
use crate::exchange::Exchange;
use thiserror::Error;

/// An invariant of an exchange's state that is violated, which no command can cause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Inconsistency {
    /// In continuous trading a bid is at or above an offer.
    #[error("instrument {instrument}: bid {bid} and offer {offer} should have traded")]
    Crossed {
        /// Index of the instrument.
        instrument: u16,
        /// The best bid.
        bid: i64,
        /// The best offer.
        offer: i64,
    },
    /// The totals of a level differ from the sums of its orders.
    #[error(
        "price {price}: the level records {level:?} (shown, open, orders), its orders add up to {orders:?}"
    )]
    Totals {
        /// Price of the level.
        price: i64,
        /// Shown quantity, open quantity and number of orders as recorded.
        level: (u64, u64, u32),
        /// Shown quantity, open quantity and number of orders as added up.
        orders: (u64, u64, u32),
    },
    /// An order has nothing open or shown, or more shown than open.
    #[error("order {id}: {leaves} open, {shown} shown")]
    Quantity {
        /// Id of the order.
        id: u64,
        /// Open quantity.
        leaves: u64,
        /// Displayed quantity.
        shown: u64,
    },
    /// Two orders of a level are not in time priority.
    #[error("order {id} arrived before the order that precedes it")]
    Fifo {
        /// Id of the second order.
        id: u64,
    },
    /// An order's links or fields do not match its position in the book.
    #[error("order {id} has fields of another position in the book")]
    Misplaced {
        /// Id of the order.
        id: u64,
    },
    /// The index of order ids does not find an order.
    #[error("order {id} is not in the index")]
    Index {
        /// Id of the order.
        id: u64,
    },
    /// Price levels are out of order, or the cached best price is not the best.
    #[error("price {price}: the levels are out of order, or the best price is wrong")]
    Levels {
        /// Price of the level.
        price: i64,
    },
    /// The number of nodes, price levels or index entries differs from the recorded number.
    #[error("{counted} {what} counted, {recorded} recorded")]
    Leak {
        /// Description of what was counted.
        what: &'static str,
        /// Number that was counted.
        counted: usize,
        /// Number that the book states.
        recorded: usize,
    },
    /// A stop order was not triggered, or was triggered and did not act.
    #[error("instrument {instrument}: a stop order was not triggered")]
    Stop {
        /// Index of the instrument.
        instrument: u16,
    },
    /// The expiry heap is out of order or misses an order.
    #[error("order {id} is missing from the expiry heap, or out of order")]
    Expiry {
        /// Id of the order.
        id: u64,
    },
}

#[derive(Default)]
struct CheckCounts {
    nodes: usize,
    queues: usize,
    expiring: usize,
    reserved: usize,
}

impl Exchange {
    /// Checks all invariants of the exchange's order books. Books not crossed in continuous
    /// trading, totals of the levels, time priority at each level, index, best prices, stop orders,
    /// expiry, and nothing leaked. Takes time proportional to the capacity.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn check(&self) -> Result<(), Inconsistency> {
        let mut counts = CheckCounts::default();
        for book in &self.books {
            self.check_book(book, &mut counts)?;
        }
        let store = &self.store;
        let equal = |what, counted, recorded| {
            if counted == recorded { Ok(()) } else { Err(Inconsistency::Leak { what, counted, recorded }) }
        };
        equal("open orders", counts.nodes, store.arena.used())?;
        equal(
            "free order slots",
            store.arena.free_slots().count(),
            store.arena.capacity() - store.arena.used(),
        )?;
        equal("levels", counts.queues, store.queues.used())?;
        equal(
            "free levels",
            store.queues.free_count(&store.arena),
            store.queues.capacity() - store.queues.used(),
        )?;
        equal("index entries", store.index.len(), store.arena.used())?;
        equal("stop-limit orders", counts.reserved, store.reserved)?;
        equal("expiring orders", counts.expiring, store.expiry.slots().len())?;
        self.check_expiry()
    }

    fn check_book(&self, book: &Book, counts: &mut CheckCounts) -> Result<(), Inconsistency> {
        for part in BookPart::ALL {
            self.check_list(book, part, counts)?;
        }
        let best = |part| book.best(part);
        if book.phase == Phase::Continuous
            && let (Some(bid), Some(offer)) = (best(BookPart::Bids), best(BookPart::Offers))
            && bid >= offer
        {
            return Err(Inconsistency::Crossed { instrument: book.number, bid, offer });
        }
        let (buy, sell) = (best(BookPart::BuyStops), best(BookPart::SellStops));
        let untriggered =
            |part, stop: Option<i64>| stop.is_some_and(|stop| book.is_stop_reached(part, stop, book.last));
        let is_stop_missed = book.phase == Phase::Continuous
            && book.last != 0
            && (untriggered(BookPart::BuyStops, buy) || untriggered(BookPart::SellStops, sell));
        if is_stop_missed || book.triggered != (NONE, NONE) {
            return Err(Inconsistency::Stop { instrument: book.number });
        }
        Ok(())
    }

    fn check_list(&self, book: &Book, part: BookPart, counts: &mut CheckCounts) -> Result<(), Inconsistency> {
        let list = &book.lists[part as usize];
        let store = &self.store;
        let mut number = list.at_or_after(&store.pool, 0).unwrap_or(NONE);
        let (first, edge) = (book.first[part as usize], book.edge[part as usize]);
        let expected = if number == NONE { unreachable_price(part) } else { store.arena.node(number).price };
        if (number, expected) != (first, edge) {
            return Err(Inconsistency::Levels { price: edge });
        }
        let mut before: Option<u64> = None;
        while number != NONE {
            let queue = store.arena.node(number);
            let in_order = before.is_none_or(|before| before < queue.key())
                && list.get(&store.pool, queue.key()) == Some(number)
                && list.last_before(&store.pool, queue.key()).map(|number| store.arena.node(number).key())
                    == before
                && book.key(part, queue.price) == queue.key();
            if !in_order {
                return Err(Inconsistency::Levels { price: queue.price });
            }
            counts.queues += 1;
            self.check_queue(book, part, number, queue, counts)?;
            before = Some(queue.key());
            number = book.next(store, part, number);
        }
        Ok(())
    }

    fn check_queue(
        &self,
        book: &Book,
        part: BookPart,
        number: u32,
        queue: &Node,
        counts: &mut CheckCounts,
    ) -> Result<(), Inconsistency> {
        let mut totals = (0, 0, 0);
        let (mut slot, mut prev, mut rank) = (queue.head(), number, 0);
        // The second condition ends a cyclic list.
        while let (Some(node), true) = (self.store.arena.order(slot), totals.2 <= queue.orders()) {
            let id = node.id;
            if node.leaves == 0 || node.shown == 0 || node.shown > node.leaves {
                return Err(Inconsistency::Quantity { id, leaves: node.leaves, shown: node.shown });
            }
            if node.rank <= rank {
                return Err(Inconsistency::Fifo { id });
            }
            let expected_links = (book.number, part, number, queue.price, prev);
            if (node.instrument, node.part, node.queue, node.price, node.prev) != expected_links
                || !is_in_matching_part(node)
            {
                return Err(Inconsistency::Misplaced { id });
            }
            if self.store.find(id) != Some(slot) {
                return Err(Inconsistency::Index { id });
            }
            if node.time_in_force == TimeInForce::GoodTillTime {
                counts.expiring += 1;
                let index = self.store.arena.details(slot).heap as usize;
                if self.store.expiry.slots().get(index) != Some(&slot) {
                    return Err(Inconsistency::Expiry { id });
                }
            }
            counts.reserved += usize::from(node.order_type == OrderType::StopLimit);
            counts.nodes += 1;
            totals = (totals.0 + node.shown, totals.1 + node.leaves, totals.2 + 1);
            (prev, rank, slot) = (slot, node.rank, node.next);
        }
        let level = (queue.shown, queue.leaves, queue.orders());
        if totals != level || queue.tail() != prev || slot != number || queue.orders() == 0 {
            return Err(Inconsistency::Totals { price: queue.price, level, orders: totals });
        }
        Ok(())
    }

    fn check_expiry(&self) -> Result<(), Inconsistency> {
        let key = |slot: u32| {
            let details = self.store.arena.details(slot);
            (details.expires_at, details.arrival)
        };
        let slots = self.store.expiry.slots();
        for (index, &slot) in slots.iter().enumerate() {
            if key(slots[index.saturating_sub(1) / 2]) > key(slot) || key(slot).0 <= self.store.now {
                return Err(Inconsistency::Expiry { id: self.store.arena.node(slot).id });
            }
        }
        Ok(())
    }
}

/// Returns `true` if an order's type and side belong into the part that it is in.
fn is_in_matching_part(node: &Node) -> bool {
    match node.order_type {
        OrderType::Limit => node.part == BookPart::for_side(node.side),
        OrderType::Stop | OrderType::StopLimit => node.part == BookPart::stops_for_side(node.side),
        OrderType::Market => false,
    }
}

#[cfg(test)]
mod tests;
