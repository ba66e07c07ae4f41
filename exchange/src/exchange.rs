//! The matching engine: applies commands in order and emits their events.

use crate::admit;
use crate::arena::{BookPart, NONE, Node};
use crate::book::{Book, Phase, keys};
use crate::command::{Command, NewOrder, OrderType, TimeInForce};
use crate::event::{CancelReason, Event, Events, RejectReason};
use crate::index::HomeBucket;
use crate::instrument::{Capacity, ConfigError, Instrument};
use crate::matching::{MatchEnd, Taker, any_price};
use crate::store::OrderStore;

/// A matching engine with an order book for each instrument.
///
/// Deterministic: the same commands give the same events and the same state. No command panics or
/// allocates.
#[derive(Debug)]
pub struct Exchange {
    pub(crate) books: Vec<Book>,
    pub(crate) store: OrderStore,
}

/// The terms on which an order trades on arrival.
struct ExecutionTerms {
    /// Quantity that must be available, or the order is cancelled for the reason `shortage`.
    needed: u64,
    shortage: CancelReason,
    /// Reason for which the remainder is cancelled; `None` if it rests.
    remainder: Option<CancelReason>,
}

impl ExecutionTerms {
    fn new(order_type: OrderType, time_in_force: TimeInForce, quantity: u64, minimum: u64) -> Self {
        let is_fill_or_kill = time_in_force == TimeInForce::FillOrKill;
        ExecutionTerms {
            needed: if is_fill_or_kill { quantity } else { minimum },
            shortage: if is_fill_or_kill { CancelReason::FillOrKill } else { CancelReason::Minimum },
            remainder: match time_in_force {
                _ if order_type == OrderType::Market => Some(CancelReason::NoLiquidity),
                TimeInForce::ImmediateOrCancel => Some(CancelReason::Immediate),
                TimeInForce::FillOrKill => Some(CancelReason::FillOrKill),
                TimeInForce::GoodTillCancel | TimeInForce::GoodTillTime => None,
            },
        }
    }
}

impl Exchange {
    /// Creates an exchange for these instruments, which commands refer to by index. All memory that
    /// it will ever use is allocated here.
    ///
    /// # Errors
    /// [`ConfigError`] if an instrument or the capacity is invalid.
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
        for count in [capacity.orders, capacity.levels] {
            if count == 0 || count > 1 << 30 {
                return Err(ConfigError::Capacity(count));
            }
        }
        let keys = instruments.iter().map(keys).max().unwrap_or(1);
        let numbered = instruments.iter().zip(0..);
        Ok(Exchange {
            books: numbered.map(|(instrument, number)| Book::new(number, *instrument)).collect(),
            store: OrderStore::new(4 * instruments.len(), capacity, keys),
        })
    }

    /// Applies a command to the order books. Its events go to `out` in the order in which they
    /// happen.
    #[inline]
    pub fn apply(&mut self, command: Command, out: &mut impl Events) {
        let result = match command {
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
        if let Err((id, reason)) = result {
            out.on(Event::Rejected { id, reason });
        }
    }

    fn new_order(&mut self, order: &NewOrder, out: &mut impl Events) -> Result<(), RejectReason> {
        let book =
            self.books.get_mut(usize::from(order.instrument)).ok_or(RejectReason::UnknownInstrument)?;
        let store = &mut self.store;
        let home = store.index.home(order.id);
        admit::new_order(book, store, order, home)?;
        if order.order_type.is_stop() {
            book.enter_stop(store, order, home, out);
            return Ok(());
        }
        let arrival = store.next_rank();
        let market = order.order_type == OrderType::Market;
        let price = if market { 0 } else { order.price };
        out.on(Event::Accepted { id: order.id, side: order.side, price });
        let limit = if market { any_price(order.side) } else { order.price };
        let mut leaves = order.quantity;
        // Most orders trade with nothing.
        let only_rests = order.time_in_force == TimeInForce::GoodTillCancel
            && !market
            && order.minimum == 0
            && !book.is_crossed_by(order.side, limit);
        if book.phase == Phase::Continuous && !only_rests {
            let terms =
                ExecutionTerms::new(order.order_type, order.time_in_force, order.quantity, order.minimum);
            leaves = book.execute(store, Taker::new(order, limit), &terms, out);
        }
        if leaves > 0 {
            let slot = store.open(order, home, arrival, leaves);
            book.join(store, BookPart::for_side(order.side), slot);
        }
        book.run_triggered(store, out);
        Ok(())
    }

    fn cancel(&mut self, id: u64, owner: u32, out: &mut impl Events) -> Result<(), RejectReason> {
        let (slot, entry) = self.store.find_owned(id, owner).ok_or(RejectReason::UnknownOrder)?;
        let &Node { instrument, side, price, leaves, .. } = self.store.arena.node(slot);
        self.books[usize::from(instrument)].leave(&mut self.store, slot);
        self.store.close_entry(slot, entry);
        out.on(Event::Cancelled { id, side, price, leaves, reason: CancelReason::Requested });
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
        let (slot, _) = store.find_owned(id, owner).ok_or(RejectReason::UnknownOrder)?;
        let node = *store.arena.node(slot);
        let book = &mut self.books[usize::from(node.instrument)];
        let keeps_priority = price == node.price && quantity <= node.leaves;
        let crosses = admit::replace(book, store, &node, price, quantity, keeps_priority)?;
        out.on(Event::Replaced { id, side: node.side, price, leaves: quantity });
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
            let terms = ExecutionTerms::new(OrderType::Limit, TimeInForce::GoodTillCancel, quantity, 0);
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
            Some(index) => self.books.get_mut(index..=index).ok_or(RejectReason::UnknownInstrument)?,
        };
        for book in books {
            BookPart::ALL.iter().for_each(|&part| book.cancel_all(&mut self.store, part, owner, out));
        }
        Ok(())
    }

    fn expire(&mut self, now: u64, out: &mut impl Events) {
        let store = &mut self.store;
        store.now = store.now.max(now);
        while let Some(slot) = store.expiry.first()
            && store.arena.details(slot).expires_at <= store.now
        {
            let &Node { id, instrument, side, price, leaves, .. } = store.arena.node(slot);
            self.books[usize::from(instrument)].remove(store, slot);
            out.on(Event::Expired { id, side, price, leaves });
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

impl Book {
    /// Matches an order on its terms. Returns the quantity that is to rest.
    #[inline]
    fn execute(
        &mut self,
        store: &mut OrderStore,
        mut taker: Taker,
        terms: &ExecutionTerms,
        out: &mut impl Events,
    ) -> u64 {
        let (id, side, price) = (taker.id, taker.side, taker.price());
        if terms.needed > 0 && !self.can_fill(store, &taker, terms.needed) {
            out.on(Event::Cancelled { id, side, price, leaves: taker.leaves, reason: terms.shortage });
            return 0;
        }
        if self.trade(store, &mut taker, out) == MatchEnd::Prevented {
            return 0;
        }
        match terms.remainder {
            Some(reason) if taker.leaves > 0 => {
                out.on(Event::Cancelled { id, side, price, leaves: taker.leaves, reason });
                0
            }
            _ => taker.leaves,
        }
    }

    /// Enters a stop order: it waits, or acts at once if its stop price was already reached.
    #[cold]
    fn enter_stop(
        &mut self,
        store: &mut OrderStore,
        order: &NewOrder,
        home: HomeBucket,
        out: &mut impl Events,
    ) {
        let arrival = store.next_rank();
        out.on(Event::Accepted { id: order.id, side: order.side, price: order.stop_price });
        let part = BookPart::stops_for_side(order.side);
        let slot = store.open(order, home, arrival, order.quantity);
        if self.phase == Phase::Continuous
            && self.last != 0
            && self.is_stop_reached(part, order.stop_price, self.last)
        {
            self.queue_triggered(store, slot);
            self.run_triggered(store, out);
        } else {
            store.reserved += usize::from(order.order_type == OrderType::StopLimit);
            self.join(store, part, slot);
        }
    }

    /// Rests the remainder of an order that has a node, or frees the node if nothing is left.
    fn rest(&mut self, store: &mut OrderStore, slot: u32, leaves: u64) {
        if leaves == 0 {
            return store.close(slot);
        }
        let shown = store.displayed_part(slot, leaves);
        let node = store.arena.node_mut(slot);
        node.leaves = leaves;
        node.shown = shown;
        let part = BookPart::for_side(node.side);
        self.join(store, part, slot);
    }

    /// Executes the triggered stop orders in order, then those that they trigger.
    #[inline]
    fn run_triggered(&mut self, store: &mut OrderStore, out: &mut impl Events) {
        if self.triggered.0 != NONE {
            self.run_stops(store, out);
        }
    }

    #[cold]
    fn run_stops(&mut self, store: &mut OrderStore, out: &mut impl Events) {
        while let Some(slot) = self.next_triggered(store) {
            let Node { id, owner, side, self_trade, order_type, time_in_force, leaves, price, .. } =
                *store.arena.node(slot);
            out.on(Event::Triggered { id });
            let limit = if order_type == OrderType::Market { any_price(side) } else { price };
            let taker = Taker { id, owner, side, self_trade, limit, leaves };
            let terms = ExecutionTerms::new(order_type, time_in_force, leaves, 0);
            let leaves = self.execute(store, taker, &terms, out);
            self.rest(store, slot, leaves);
        }
    }

    fn cancel_all(&mut self, store: &mut OrderStore, part: BookPart, owner: u32, out: &mut impl Events) {
        let mut queue = self.first[part as usize];
        while queue != NONE {
            let following = self.next(store, part, queue);
            let mut slot = store.arena.node(queue).head();
            while slot != queue {
                let Node { id, side, price, leaves, next, owner: order_owner, .. } = *store.arena.node(slot);
                if order_owner == owner {
                    self.remove(store, slot);
                    out.on(Event::Cancelled { id, side, price, leaves, reason: CancelReason::MassCancel });
                }
                slot = next;
            }
            queue = following;
        }
    }
}
