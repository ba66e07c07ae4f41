//! The state of an exchange as a value to save and restore.
//!
//! It holds only what decides the effect of later commands, and so no node or index positions. A
//! restored state is not trusted: each order must be valid for its instrument and its part of the
//! book, and [`Exchange::check`] verifies the whole.

use crate::arena::{BookPart, ICEBERG, NONE, Node, OrderDetails, POST_ONLY};
use crate::book::Phase;
use crate::command::{OrderType, SelfTrade, Side, TimeInForce};
use crate::exchange::Exchange;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The state of an exchange between two commands, to be saved and restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Time of the last [`Command::Time`](crate::Command::Time).
    now: u64,
    sequence: u64,
    trades: u64,
    books: Vec<BookState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BookState {
    auction: bool,
    last: i64,
    /// Bids, offers, buy stops and sell stops, each in priority.
    lists: [Vec<OrderState>; 4],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OrderState {
    id: u64,
    owner: u32,
    rank: u64,
    price: i64,
    leaves: u64,
    shown: u64,
    /// Bits 0–1: type; 2–4: self-trade prevention; 5–6: time in force; 7: post-only; 8: iceberg.
    kind: u16,
    display: u64,
    limit: i64,
    expires_at: u64,
    arrival: u64,
}

/// The error that an exchange cannot be restored from a saved state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StateError {
    /// The state has another number of instruments.
    #[error("a state of {found} instruments, but the exchange has {here}")]
    Instruments {
        /// Number in the state.
        found: usize,
        /// Number in the exchange.
        here: usize,
    },
    /// The state has more orders than the exchange has capacity for.
    #[error("no capacity left for order {0}")]
    Full(u64),
    /// An order with this id is invalid in its part of the book.
    #[error("order {0} is invalid in its part of the book")]
    Order(u64),
    /// The orders violate an invariant together.
    #[error("the orders are inconsistent: {0}")]
    Inconsistent(#[from] crate::check::Inconsistency),
}

const TYPES: [OrderType; 4] = [OrderType::Limit, OrderType::Market, OrderType::Stop, OrderType::StopLimit];
const SELF_TRADES: [SelfTrade; 5] = [
    SelfTrade::Allow,
    SelfTrade::CancelNewest,
    SelfTrade::CancelOldest,
    SelfTrade::CancelBoth,
    SelfTrade::Decrement,
];

const TIMES: [TimeInForce; 4] = [
    TimeInForce::GoodTillCancel,
    TimeInForce::ImmediateOrCancel,
    TimeInForce::FillOrKill,
    TimeInForce::GoodTillTime,
];

fn position<T: PartialEq>(values: &[T], value: T) -> u16 {
    values.iter().position(|candidate| *candidate == value).unwrap_or(0) as u16
}

impl OrderState {
    fn new(node: &Node, details: &OrderDetails) -> Self {
        let (iceberg, good_till_time) = (node.is_iceberg(), node.time_in_force == TimeInForce::GoodTillTime);
        let kind = position(&TYPES, node.order_type)
            | position(&SELF_TRADES, node.self_trade) << 2
            | position(&TIMES, node.time_in_force) << 5
            | u16::from(node.is_post_only()) << 7
            | u16::from(iceberg) << 8;
        // Details that the order does not use have no meaning.
        let if_used = |is_used: bool, value: u64| if is_used { value } else { 0 };
        Self {
            id: node.id,
            owner: node.owner,
            rank: node.rank,
            price: node.price,
            leaves: node.leaves,
            shown: node.shown,
            kind,
            display: if_used(iceberg, details.display),
            limit: if node.order_type == OrderType::StopLimit { details.limit } else { 0 },
            expires_at: if_used(good_till_time, details.expires_at),
            arrival: if_used(good_till_time, details.arrival),
        }
    }
}

impl Exchange {
    /// Returns the state of all order books of the exchange as a value to save.
    pub fn state(&self) -> State {
        let store = &self.store;
        let mut left = self.open_orders();
        let mut list = |number: u16, part: BookPart| -> Vec<OrderState> {
            let mut orders = Vec::new();
            for queue in self.queues(number, part) {
                if orders.is_empty() {
                    // A vector that grows is copied. What the list does not use is never touched.
                    orders.reserve_exact(left);
                }
                let mut slot = queue.head();
                while let Some(node) = store.arena.order(slot) {
                    orders.push(OrderState::new(node, store.arena.details(slot)));
                    slot = node.next;
                }
            }
            left -= orders.len();
            orders.shrink_to_fit();
            orders
        };
        let books = self.books.iter().map(|book| BookState {
            auction: book.phase == Phase::Auction,
            last: book.last,
            lists: BookPart::ALL.map(|part| list(book.number, part)),
        });
        State { now: store.now, sequence: store.sequence, trades: store.trades, books: books.collect() }
    }

    /// Replaces all orders of the exchange with those of a saved state. It is that of an exchange
    /// with the same instruments.
    ///
    /// # Errors
    /// [`StateError`] for the first problem. The exchange must not be used then.
    pub fn restore(&mut self, state: &State) -> Result<(), StateError> {
        if state.books.len() != self.books.len() {
            return Err(StateError::Instruments { found: state.books.len(), here: self.books.len() });
        }
        self.clear();
        self.store.now = state.now;
        self.store.trades = state.trades;
        for (number, book) in state.books.iter().enumerate() {
            self.books[number].phase = if book.auction { Phase::Auction } else { Phase::Continuous };
            self.books[number].last = book.last;
            for (part, orders) in BookPart::ALL.into_iter().zip(&book.lists) {
                for order in orders {
                    self.restore_order(number, part, order, state.sequence)?;
                }
            }
        }
        self.store.sequence = state.sequence;
        Ok(self.check()?)
    }

    fn clear(&mut self) {
        for book in &mut self.books {
            for part in BookPart::ALL {
                while book.first[part as usize] != NONE {
                    let slot = self.store.arena.node(book.first[part as usize]).head();
                    book.remove(&mut self.store, slot);
                }
            }
        }
    }

    /// Appends an order of a state to its part of the book.
    fn restore_order(
        &mut self,
        number: usize,
        part: BookPart,
        order: &OrderState,
        sequence: u64,
    ) -> Result<(), StateError> {
        let (book, store) = (&mut self.books[number], &mut self.store);
        let is_stop = matches!(part, BookPart::BuyStops | BookPart::SellStops);
        let order_type = TYPES[usize::from(order.kind & 3)];
        let self_trade = SELF_TRADES.get(usize::from(order.kind >> 2 & 7)).copied();
        let time_in_force = TIMES[usize::from(order.kind >> 5 & 3)];
        let (post_only, iceberg) = (order.kind >> 7 & 1 != 0, order.kind >> 8 & 1 != 0);
        let instrument = &book.instrument;
        let stop_limit = order_type == OrderType::StopLimit;
        let fits = order.leaves > 0
            && order.leaves <= instrument.max_quantity
            && order.shown > 0
            && order.shown <= order.leaves
            && instrument.is_valid_price(order.price)
            && order.rank > 0
            && order.rank <= sequence
            && order_type != OrderType::Market
            && order_type.is_stop() == is_stop
            && order.kind >> 9 == 0
            && (!stop_limit || instrument.is_valid_price(order.limit))
            && (!iceberg || order.display > 0)
            && store.find(order.id).is_none();
        let (Some(self_trade), true) = (self_trade, fits) else { return Err(StateError::Order(order.id)) };
        let limit_levels = usize::from(stop_limit);
        let has_queues = store.has_queues(1 + limit_levels)
            || store.has_queues(limit_levels) && book.has_level(store, part, order.price);
        if store.arena.is_full() || !has_queues {
            return Err(StateError::Full(order.id));
        }
        let buys = matches!(part, BookPart::Bids | BookPart::BuyStops);
        let slot = store.arena.allocate(Node {
            id: order.id,
            price: order.price,
            leaves: order.leaves,
            shown: order.shown,
            owner: order.owner,
            instrument: book.number,
            side: if buys { Side::Buy } else { Side::Sell },
            order_type,
            time_in_force,
            self_trade,
            flags: if post_only { POST_ONLY } else { 0 } | if iceberg { ICEBERG } else { 0 },
            ..Node::FREE
        });
        store.index.insert(store.index.home(order.id), slot, |slot| store.arena.node(slot).id);
        let OrderState { display, limit, expires_at, arrival, .. } = *order;
        *store.arena.details_mut(slot) = OrderDetails { display, limit, expires_at, arrival, heap: NONE };
        if time_in_force == TimeInForce::GoodTillTime {
            store.expiry.insert(&mut store.arena, slot);
        }
        store.reserved += usize::from(stop_limit);
        // The next rank is the one that the order had.
        store.sequence = order.rank - 1;
        book.join(store, part, slot);
        Ok(())
    }
}
