//! The exchange: it takes commands, one after the other, and says what they did.

use crate::admit;
use crate::arena::{NONE, Node, Part};
use crate::book::{Book, Phase, keys};
use crate::command::{Command, NewOrder, OrderType, TimeInForce};
use crate::event::{CancelReason, Event, Events, RejectReason};
use crate::instrument::{Capacity, ConfigError, Instrument};
use crate::levels::Levels;
use crate::matching::{Taker, any_price};
use crate::store::Store;

/// A matching engine: an order book for each instrument.
///
/// The same commands give the same events and the same state. No command panics, and none
/// allocates.
#[derive(Debug)]
pub struct Exchange<L: Levels = crate::levels::Trie> {
    pub(crate) books: Vec<Book<L>>,
    pub(crate) store: Store<L>,
}

/// What becomes of an order that may trade now.
struct Terms {
    /// It must trade at least that much, or it is cancelled for that reason.
    needed: u64,
    shortage: CancelReason,
    /// Why what is left does not rest; `None`: it does.
    rest: Option<CancelReason>,
}

impl Terms {
    fn new(order_type: OrderType, time_in_force: TimeInForce, quantity: u64, minimum: u64) -> Self {
        let all = time_in_force == TimeInForce::FillOrKill;
        Terms {
            needed: if all { quantity } else { minimum },
            shortage: if all { CancelReason::FillOrKill } else { CancelReason::Minimum },
            rest: match time_in_force {
                _ if order_type == OrderType::Market => Some(CancelReason::NoLiquidity),
                TimeInForce::ImmediateOrCancel => Some(CancelReason::Immediate),
                TimeInForce::FillOrKill => Some(CancelReason::FillOrKill),
                TimeInForce::GoodTillCancel | TimeInForce::GoodTillTime => None,
            },
        }
    }
}

impl<L: Levels> Exchange<L> {
    /// An exchange for these instruments, which commands name by their place. All memory that it
    /// will ever use is set aside and touched here.
    ///
    /// # Errors
    /// What contradicts itself or cannot be.
    pub fn new(instruments: &[Instrument], capacity: Capacity) -> Result<Self, ConfigError> {
        if instruments.is_empty() || instruments.len() > usize::from(u16::MAX) {
            return Err(ConfigError::Instruments(instruments.len()));
        }
        for (index, instrument) in instruments.iter().enumerate() {
            instrument.check().map_err(|problem| ConfigError::Instrument { index, problem })?;
            if instrument.max_quantity.checked_mul(capacity.orders as u64).is_none() {
                return Err(ConfigError::QuantityOverflow { index, orders: capacity.orders });
            }
        }
        for room in [capacity.orders, capacity.levels] {
            if room == 0 || room > 1 << 30 {
                return Err(ConfigError::Capacity(room));
            }
        }
        let keys = instruments.iter().map(keys).max().unwrap_or(1);
        let numbered = instruments.iter().zip(0..);
        Ok(Exchange {
            books: numbered.map(|(one, number)| Book::new(number, *one, capacity.levels)).collect(),
            store: Store::new(4 * instruments.len(), capacity, keys),
        })
    }

    /// Carries out a command. What it does goes to `out` in the order in which it happens.
    #[inline]
    pub fn apply(&mut self, command: Command, out: &mut impl Events) {
        let done = match command {
            Command::New(ref order) => self.new_order(order, out).map_err(|reason| (order.id, reason)),
            Command::Cancel { id, owner } => self.cancel(id, owner, out).map_err(|reason| (id, reason)),
            Command::Replace { id, owner, price, quantity } => {
                self.replace(id, owner, price, quantity, out).map_err(|reason| (id, reason))
            }
            Command::MassCancel { owner, instrument } => {
                self.mass_cancel(owner, instrument, out).map_err(|reason| (0, reason))
            }
            Command::Time(now) => {
                self.expire(now, out);
                Ok(())
            }
            Command::Auction { instrument } => self.auction(instrument).map_err(|reason| (0, reason)),
            Command::Uncross { instrument } => self.uncross(instrument, out).map_err(|reason| (0, reason)),
        };
        if let Err((id, reason)) = done {
            out.on(Event::Rejected { id, reason });
        }
    }

    fn new_order(&mut self, order: &NewOrder, out: &mut impl Events) -> Result<(), RejectReason> {
        let book =
            self.books.get_mut(usize::from(order.instrument)).ok_or(RejectReason::UnknownInstrument)?;
        let store = &mut self.store;
        admit::new_order(book, store, order)?;
        let arrival = store.arrive();
        out.on(Event::Accepted { id: order.id });
        if matches!(order.order_type, OrderType::Stop | OrderType::StopLimit) {
            let part = Part::stops(order.side);
            let slot = store.open(order, arrival, order.quantity);
            if book.phase == Phase::Continuous
                && book.last != 0
                && book.reached(part, order.stop_price, book.last)
            {
                book.queue_triggered(store, slot);
                book.run_triggered(store, out);
            } else {
                store.reserved += usize::from(order.order_type == OrderType::StopLimit);
                book.join(store, part, slot);
            }
            return Ok(());
        }
        let market = order.order_type == OrderType::Market;
        let limit = if market { any_price(order.side) } else { order.price };
        let mut leaves = order.quantity;
        if book.phase == Phase::Continuous {
            let terms = Terms::new(order.order_type, order.time_in_force, order.quantity, order.minimum);
            leaves = book.execute(store, Taker::new(order, limit), &terms, out);
        }
        if leaves > 0 {
            let slot = store.open(order, arrival, leaves);
            book.join(store, Part::of(order.side), slot);
        }
        book.run_triggered(store, out);
        Ok(())
    }

    fn cancel(&mut self, id: u64, owner: u32, out: &mut impl Events) -> Result<(), RejectReason> {
        let slot = self.store.find_of(id, owner).ok_or(RejectReason::UnknownOrder)?;
        let node = self.store.arena.node(slot);
        let (book, leaves) = (&mut self.books[usize::from(node.instrument)], node.leaves);
        book.remove(&mut self.store, slot);
        out.on(Event::Cancelled { id, leaves, reason: CancelReason::Requested });
        Ok(())
    }

    fn replace(
        &mut self,
        id: u64,
        owner: u32,
        price: i64,
        quantity: u64,
        out: &mut impl Events,
    ) -> Result<(), RejectReason> {
        let store = &mut self.store;
        let slot = store.find_of(id, owner).ok_or(RejectReason::UnknownOrder)?;
        let node = *store.arena.node(slot);
        let book = &mut self.books[usize::from(node.instrument)];
        let keeps_priority = price == node.price && quantity <= node.leaves;
        let crosses = admit::replace(book, store, &node, price, quantity, keeps_priority)?;
        out.on(Event::Replaced { id, price, leaves: quantity });
        if keeps_priority {
            book.shrink(store, slot, quantity);
            return Ok(());
        }
        book.leave(store, slot);
        store.arena.node_mut(slot).price = price;
        let mut leaves = quantity;
        if crosses {
            let Node { owner, side, self_trade, .. } = node;
            let taker = Taker { id, owner, side, self_trade, limit: price, leaves };
            let terms = Terms::new(OrderType::Limit, TimeInForce::GoodTillCancel, quantity, 0);
            leaves = book.execute(store, taker, &terms, out);
        }
        book.rest(store, slot, leaves);
        book.run_triggered(store, out);
        Ok(())
    }

    fn mass_cancel(
        &mut self,
        owner: u32,
        instrument: Option<u16>,
        out: &mut impl Events,
    ) -> Result<(), RejectReason> {
        let books = match instrument.map(usize::from) {
            None => &mut self.books[..],
            Some(one) => self.books.get_mut(one..=one).ok_or(RejectReason::UnknownInstrument)?,
        };
        for book in books {
            Part::ALL.iter().for_each(|&part| book.cancel_all(&mut self.store, part, owner, out));
        }
        Ok(())
    }

    fn expire(&mut self, now: u64, out: &mut impl Events) {
        let store = &mut self.store;
        store.now = store.now.max(now);
        while let Some(slot) = store.expiry.first()
            && store.arena.details(slot).expires_at <= store.now
        {
            let node = store.arena.node(slot);
            let (id, leaves) = (node.id, node.leaves);
            self.books[usize::from(node.instrument)].remove(store, slot);
            out.on(Event::Expired { id, leaves });
        }
    }

    fn auction(&mut self, instrument: u16) -> Result<(), RejectReason> {
        let book = self.books.get_mut(usize::from(instrument)).ok_or(RejectReason::UnknownInstrument)?;
        match book.phase {
            Phase::Auction => Err(RejectReason::WrongPhase),
            Phase::Continuous => {
                book.phase = Phase::Auction;
                Ok(())
            }
        }
    }

    fn uncross(&mut self, instrument: u16, out: &mut impl Events) -> Result<(), RejectReason> {
        let book = self.books.get_mut(usize::from(instrument)).ok_or(RejectReason::UnknownInstrument)?;
        if book.phase == Phase::Continuous {
            return Err(RejectReason::WrongPhase);
        }
        book.uncross(&mut self.store, out);
        book.phase = Phase::Continuous;
        if book.last != 0 {
            book.trigger(&mut self.store, book.last);
        }
        book.run_triggered(&mut self.store, out);
        Ok(())
    }
}

impl<L: Levels> Book<L> {
    /// Lets an order trade on its terms, and says how much of it is to rest.
    #[inline]
    fn execute(
        &mut self,
        store: &mut Store<L>,
        mut taker: Taker,
        terms: &Terms,
        out: &mut impl Events,
    ) -> u64 {
        let id = taker.id;
        if terms.needed > 0 && !self.would_trade(store, &taker, terms.needed) {
            out.on(Event::Cancelled { id, leaves: taker.leaves, reason: terms.shortage });
            return 0;
        }
        if self.trade(store, &mut taker, out) {
            return 0;
        }
        match terms.rest {
            Some(reason) if taker.leaves > 0 => {
                out.on(Event::Cancelled { id, leaves: taker.leaves, reason });
                0
            }
            _ => taker.leaves,
        }
    }

    /// Lets an order that has a node rest with what is left of it, or ends it.
    fn rest(&mut self, store: &mut Store<L>, slot: u32, leaves: u64) {
        if leaves == 0 {
            return store.close(slot);
        }
        let shown = store.shown_of(slot, leaves);
        let node = store.arena.node_mut(slot);
        node.leaves = leaves;
        node.shown = shown;
        let part = Part::of(node.side);
        self.join(store, part, slot);
    }

    /// Lets the triggered stop orders act, first come first served, and those that they trigger
    /// after them.
    #[inline]
    fn run_triggered(&mut self, store: &mut Store<L>, out: &mut impl Events) {
        if self.triggered.0 != NONE {
            self.run_stops(store, out);
        }
    }

    #[cold]
    fn run_stops(&mut self, store: &mut Store<L>, out: &mut impl Events) {
        while let Some(slot) = self.next_triggered(store) {
            let Node { id, owner, side, self_trade, order_type, time_in_force, leaves, price, .. } =
                *store.arena.node(slot);
            out.on(Event::Triggered { id });
            let limit = if order_type == OrderType::Market { any_price(side) } else { price };
            let taker = Taker { id, owner, side, self_trade, limit, leaves };
            let terms = Terms::new(order_type, time_in_force, leaves, 0);
            let leaves = self.execute(store, taker, &terms, out);
            self.rest(store, slot, leaves);
        }
    }

    /// Cancels every order of an owner in one list.
    fn cancel_all(&mut self, store: &mut Store<L>, part: Part, owner: u32, out: &mut impl Events) {
        let mut queue = self.first[part as usize];
        while queue != NONE {
            let following = self.next(store, part, queue);
            let mut slot = store.arena.node(queue).head();
            while slot != queue {
                let Node { id, leaves, next, owner: whose, .. } = *store.arena.node(slot);
                if whose == owner {
                    self.remove(store, slot);
                    out.on(Event::Cancelled { id, leaves, reason: CancelReason::MassCancel });
                }
                slot = next;
            }
            queue = following;
        }
    }
}
