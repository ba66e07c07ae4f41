//! Whether the state of an exchange is sound.

use crate::arena::{NONE, Node, Part};
use crate::book::{Book, Phase, unreachable_price};
use crate::command::{OrderType, TimeInForce};
use crate::exchange::Exchange;
use crate::levels::Levels;
use thiserror::Error;

/// What is wrong in an exchange. No command makes one of these true.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Broken {
    /// Continuous trading with a bid at or above an offer.
    #[error("instrument {instrument}: bid {bid} and offer {offer} should have traded")]
    Crossed {
        /// The instrument.
        instrument: u16,
        /// The best bid.
        bid: i64,
        /// The best offer.
        offer: i64,
    },
    /// The sums of a level are not those of its orders.
    #[error("price {price}: the level says {level:?} shown, open, orders, its orders are {orders:?}")]
    Sums {
        /// Its price.
        price: i64,
        /// What it says.
        level: (u64, u64, u32),
        /// What its orders add up to.
        orders: (u64, u64, u32),
    },
    /// An order with nothing open or shown, or more shown than open.
    #[error("order {id}: {leaves} open, {shown} shown")]
    Quantity {
        /// The order.
        id: u64,
        /// What is open.
        leaves: u64,
        /// What is shown.
        shown: u64,
    },
    /// Two orders of a level in the wrong order of time.
    #[error("order {id} came before the one that it is behind")]
    Fifo {
        /// The second of them.
        id: u64,
    },
    /// An order's links or fields are not those of the place where it is.
    #[error("order {id} is not where it says")]
    Misplaced {
        /// The order.
        id: u64,
    },
    /// The index does not lead to an order, or counts are not the same.
    #[error("order {id} is not in the index")]
    Index {
        /// The order.
        id: u64,
    },
    /// Levels out of order, or a best price that is not the best.
    #[error("price {price}: the levels do not lead to it")]
    Levels {
        /// The price.
        price: i64,
    },
    /// Nodes, levels or entries that nobody owns, or that two own.
    #[error("{counted} {what} counted, {said} said to be in use")]
    Leak {
        /// Of what.
        what: &'static str,
        /// How many were found.
        counted: usize,
        /// How many there should be.
        said: usize,
    },
    /// A stop order that should have been triggered, or one that was and did not act.
    #[error("instrument {instrument}: a stop order was not triggered")]
    Stop {
        /// The instrument.
        instrument: u16,
    },
    /// The orders that expire are not in order, or one is missing.
    #[error("order {id} is not in its place among those that expire")]
    Expiry {
        /// The order.
        id: u64,
    },
}

/// What was counted.
#[derive(Default)]
struct Counts {
    nodes: usize,
    queues: usize,
    expiring: usize,
    reserved: usize,
}

impl<L: Levels> Exchange<L> {
    /// Looks at everything: no crossed book in continuous trading, the sums of the levels, first
    /// come first served at each level, lists and index agree, best prices, stop orders and expiry,
    /// nothing leaked. It takes time in proportion to the capacity.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), Broken> {
        let mut counts = Counts::default();
        for book in &self.books {
            self.check_book(book, &mut counts)?;
        }
        let store = &self.store;
        let same = |what, counted, said| {
            if counted == said { Ok(()) } else { Err(Broken::Leak { what, counted, said }) }
        };
        same("open orders", counts.nodes, store.arena.used())?;
        same(
            "free order slots",
            store.arena.free_slots().count(),
            store.arena.capacity() - store.arena.used(),
        )?;
        same("levels", counts.queues, store.queues.used())?;
        same(
            "free levels",
            store.queues.free_count(&store.arena),
            store.queues.capacity() - store.queues.used(),
        )?;
        same("index entries", store.index.len(), store.arena.used())?;
        same("stop-limit orders", counts.reserved, store.reserved)?;
        same("expiring orders", counts.expiring, store.expiry.slots().len())?;
        self.check_expiry()
    }

    fn check_book(&self, book: &Book<L>, counts: &mut Counts) -> Result<(), Broken> {
        for part in Part::ALL {
            self.check_list(book, part, counts)?;
        }
        let best = |part| book.best(part);
        if book.phase == Phase::Continuous
            && let (Some(bid), Some(offer)) = (best(Part::Bids), best(Part::Offers))
            && bid >= offer
        {
            return Err(Broken::Crossed { instrument: book.number, bid, offer });
        }
        let (buy, sell) = (best(Part::BuyStops), best(Part::SellStops));
        let untriggered =
            |part, stop: Option<i64>| stop.is_some_and(|stop| book.reached(part, stop, book.last));
        let forgotten = book.phase == Phase::Continuous
            && book.last != 0
            && (untriggered(Part::BuyStops, buy) || untriggered(Part::SellStops, sell));
        if forgotten || book.triggered != (NONE, NONE) {
            return Err(Broken::Stop { instrument: book.number });
        }
        Ok(())
    }

    fn check_list(&self, book: &Book<L>, part: Part, counts: &mut Counts) -> Result<(), Broken> {
        let list = &book.lists[part as usize];
        let store = &self.store;
        let mut number = list.from(&store.pool, 0).unwrap_or(NONE);
        let (first, edge) = (book.first[part as usize], book.edge[part as usize]);
        let expected = if number == NONE { unreachable_price(part) } else { store.arena.node(number).price };
        if (number, expected) != (first, edge) {
            return Err(Broken::Levels { price: edge });
        }
        let mut before: Option<u64> = None;
        while number != NONE {
            let queue = store.arena.node(number);
            let in_order = before.is_none_or(|before| before < queue.key())
                && list.get(&store.pool, queue.key()) == Some(number)
                && list.before(&store.pool, queue.key()).map(|number| store.arena.node(number).key())
                    == before
                && book.key(part, queue.price) == queue.key();
            if !in_order {
                return Err(Broken::Levels { price: queue.price });
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
        book: &Book<L>,
        part: Part,
        number: u32,
        queue: &Node,
        counts: &mut Counts,
    ) -> Result<(), Broken> {
        let mut sums = (0, 0, 0);
        let (mut slot, mut prev, mut rank) = (queue.head(), number, 0);
        // The second condition ends a list that leads back into itself.
        while let (Some(node), true) = (self.store.arena.order(slot), sums.2 <= queue.orders()) {
            let id = node.id;
            if node.leaves == 0 || node.shown == 0 || node.shown > node.leaves {
                return Err(Broken::Quantity { id, leaves: node.leaves, shown: node.shown });
            }
            if node.rank <= rank {
                return Err(Broken::Fifo { id });
            }
            let here = (book.number, part, number, queue.price, prev);
            if (node.instrument, node.part, node.queue, node.price, node.prev) != here || !belongs(node) {
                return Err(Broken::Misplaced { id });
            }
            if self.store.find(id) != Some(slot) {
                return Err(Broken::Index { id });
            }
            if node.time_in_force == TimeInForce::GoodTillTime {
                counts.expiring += 1;
                let place = self.store.arena.details(slot).heap as usize;
                if self.store.expiry.slots().get(place) != Some(&slot) {
                    return Err(Broken::Expiry { id });
                }
            }
            counts.reserved += usize::from(node.order_type == OrderType::StopLimit);
            counts.nodes += 1;
            sums = (sums.0 + node.shown, sums.1 + node.leaves, sums.2 + 1);
            (prev, rank, slot) = (slot, node.rank, node.next);
        }
        let level = (queue.shown, queue.leaves, queue.orders());
        if sums != level || queue.tail() != prev || slot != number || queue.orders() == 0 {
            return Err(Broken::Sums { price: queue.price, level, orders: sums });
        }
        Ok(())
    }

    fn check_expiry(&self) -> Result<(), Broken> {
        let key = |slot: u32| {
            let details = self.store.arena.details(slot);
            (details.expires_at, details.arrival)
        };
        let slots = self.store.expiry.slots();
        for (place, &slot) in slots.iter().enumerate() {
            if key(slots[place.saturating_sub(1) / 2]) > key(slot) || key(slot).0 <= self.store.now {
                return Err(Broken::Expiry { id: self.store.arena.node(slot).id });
            }
        }
        Ok(())
    }
}

/// Whether an order's type and side are those of the list that it is in.
fn belongs(node: &Node) -> bool {
    match node.order_type {
        OrderType::Limit => node.part == Part::of(node.side),
        OrderType::Stop | OrderType::StopLimit => node.part == Part::stops(node.side),
        OrderType::Market => false,
    }
}
