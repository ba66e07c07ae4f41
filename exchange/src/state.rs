//! The state of an exchange as plain values, to be written down, and an exchange that goes on from
//! there.
//!
//! Only what decides what later commands do is in it: which node an order has, or where the index
//! keeps it, does not. What is read back is not believed: each order must fit its instrument and
//! its list, and [`Exchange::check`] looks at the whole.

use crate::arena::{Details, ICEBERG, NONE, Node, POST_ONLY, Part};
use crate::book::Phase;
use crate::command::{OrderType, SelfTrade, Side, TimeInForce};
use crate::exchange::Exchange;
use crate::levels::Levels;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The state of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The time that the last [`Command::Time`](crate::Command::Time) gave.
    now: u64,
    /// Arrivals so far.
    sequence: u64,
    /// Trades so far.
    trades: u64,
    books: Vec<BookState>,
}

/// One instrument's book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct BookState {
    auction: bool,
    last: i64,
    /// Bids, offers, buy stops, sell stops; the best price first, first come first served.
    lists: [Vec<OrderState>; 4],
}

/// An open order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OrderState {
    id: u64,
    owner: u32,
    rank: u64,
    price: i64,
    leaves: u64,
    shown: u64,
    /// Bits 0 and 1 the type, 2 to 4 self-trade prevention, 5 and 6 how long it lives, 7 post-only,
    /// 8 iceberg.
    kind: u16,
    display: u64,
    limit: i64,
    expires_at: u64,
    arrival: u64,
}

/// Why an exchange cannot go on from a state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// Of other instruments.
    #[error("a state with {found} instruments, here are {here}")]
    Instruments {
        /// In the state.
        found: usize,
        /// In the exchange.
        here: usize,
    },
    /// More orders than there is room for.
    #[error("no room for order {0}")]
    Full(u64),
    /// An order that cannot be where it is.
    #[error("order {0} cannot be where it is")]
    Order(u64),
    /// Orders that cannot be together.
    #[error("the orders do not go together: {0}")]
    Broken(#[from] crate::check::Broken),
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

fn place<T: PartialEq>(all: &[T], one: T) -> u16 {
    all.iter().position(|other| *other == one).unwrap_or(0) as u16
}

impl OrderState {
    fn of(node: &Node, details: &Details) -> Self {
        let (iceberg, good_till_time) = (node.iceberg(), node.time_in_force == TimeInForce::GoodTillTime);
        let kind = place(&TYPES, node.order_type)
            | place(&SELF_TRADES, node.self_trade) << 2
            | place(&TIMES, node.time_in_force) << 5
            | u16::from(node.post_only()) << 7
            | u16::from(iceberg) << 8;
        // The details of others mean nothing.
        let if_any = |is: bool, value: u64| if is { value } else { 0 };
        Self {
            id: node.id,
            owner: node.owner,
            rank: node.rank,
            price: node.price,
            leaves: node.leaves,
            shown: node.shown,
            kind,
            display: if_any(iceberg, details.display),
            limit: if node.order_type == OrderType::StopLimit { details.limit } else { 0 },
            expires_at: if_any(good_till_time, details.expires_at),
            arrival: if_any(good_till_time, details.arrival),
        }
    }
}

impl<L: Levels> Exchange<L> {
    /// Its state between two commands.
    pub fn state(&self) -> State {
        let store = &self.store;
        let list = |number: u16, part: Part| -> Vec<OrderState> {
            let mut orders = Vec::new();
            for queue in self.queues(number, part) {
                let mut slot = queue.head();
                while let Some(node) = store.arena.order(slot) {
                    orders.push(OrderState::of(node, store.arena.details(slot)));
                    slot = node.next;
                }
            }
            orders
        };
        let books = self.books.iter().map(|book| BookState {
            auction: book.phase == Phase::Auction,
            last: book.last,
            lists: Part::ALL.map(|part| list(book.number, part)),
        });
        State { now: store.now, sequence: store.sequence, trades: store.trades, books: books.collect() }
    }

    /// Forgets its own orders and goes on from a state of an exchange with the same instruments.
    ///
    /// # Errors
    /// What cannot be; the exchange is of no use then.
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
            for (part, orders) in Part::ALL.into_iter().zip(&book.lists) {
                for order in orders {
                    self.admit(number, part, order, state.sequence)?;
                }
            }
        }
        self.store.sequence = state.sequence;
        Ok(self.check()?)
    }

    fn clear(&mut self) {
        for book in &mut self.books {
            for part in Part::ALL {
                while book.first[part as usize] != NONE {
                    let slot = self.store.arena.node(book.first[part as usize]).head();
                    book.remove(&mut self.store, slot);
                }
            }
        }
    }

    /// Puts an order of a state at the end of its list.
    fn admit(
        &mut self,
        number: usize,
        part: Part,
        order: &OrderState,
        sequence: u64,
    ) -> Result<(), StateError> {
        let (book, store) = (&mut self.books[number], &mut self.store);
        let waits = matches!(part, Part::BuyStops | Part::SellStops);
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
            && instrument.price_fits(order.price)
            && order.rank > 0
            && order.rank <= sequence
            && order_type != OrderType::Market
            && order_type.waits() == waits
            && order.kind >> 9 == 0
            && (!stop_limit || instrument.price_fits(order.limit))
            && (!iceberg || order.display > 0)
            && store.find(order.id).is_none();
        let (Some(self_trade), true) = (self_trade, fits) else { return Err(StateError::Order(order.id)) };
        if store.arena.is_full() || !store.has_queues(if stop_limit { 2 } else { 1 }) {
            return Err(StateError::Full(order.id));
        }
        let buys = matches!(part, Part::Bids | Part::BuyStops);
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
        store.index.insert(order.id, slot);
        let OrderState { display, limit, expires_at, arrival, .. } = *order;
        *store.arena.details_mut(slot) = Details { display, limit, expires_at, arrival, heap: NONE };
        if time_in_force == TimeInForce::GoodTillTime {
            store.expiry.insert(&mut store.arena, slot);
        }
        store.reserved += usize::from(stop_limit);
        // It gets the rank that it had.
        store.sequence = order.rank - 1;
        book.join(store, part, slot);
        Ok(())
    }
}
