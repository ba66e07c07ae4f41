//! A book under test: its commands, and what came of them.

use super::super::harness::subject::Counts;
use exchange::{Capacity, Command, Event, Events, Exchange, Instrument, NewOrder, Side};

/// Quantity of every order of the benchmark but the one that sweeps the book.
pub const QUANTITY: u64 = 10;

/// Sums of the matching engine's events, so that none is optimized away and tests can compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub accepted: u64,
    pub rejected: u64,
    pub trades: u64,
    pub traded: u64,
    pub cancelled: u64,
    pub cancelled_quantity: u64,
}

impl Events for Sums {
    #[inline]
    fn on(&mut self, event: Event) {
        match event {
            Event::Accepted { .. } => self.accepted += 1,
            Event::Rejected { .. } => self.rejected += 1,
            Event::Trade { quantity, .. } => {
                self.trades += 1;
                self.traded += quantity;
            }
            Event::Cancelled { leaves, .. } => {
                self.cancelled += 1;
                self.cancelled_quantity += leaves;
            }
            _ => {}
        }
    }
}

/// An order book with the sums of its events.
pub struct Book {
    pub exchange: Exchange,
    pub sums: Sums,
    /// Quantity of all orders that were sent.
    pub sent_quantity: u64,
}

impl Book {
    /// Creates an order book for `orders` open orders at any prices up to 2^40.
    pub fn new(orders: u64) -> Self {
        let capacity = Capacity::for_orders(orders as usize);
        let exchange = Exchange::new(&[Instrument::default()], capacity).expect("a valid configuration");
        Book { exchange, sums: Sums::default(), sent_quantity: 0 }
    }

    /// Adds a limit order to the book.
    #[inline]
    pub fn add(&mut self, id: u64, side: Side, price: i64, quantity: u64) {
        self.sent_quantity += quantity;
        self.exchange.apply(order(id, side, price, quantity), &mut self.sums);
    }

    /// Cancels the order with this id in the book.
    #[inline]
    pub fn cancel(&mut self, id: u64) {
        self.exchange.apply(cancel(id), &mut self.sums);
    }

    /// Returns the numbers of the book's events, by name.
    pub fn counts(&self) -> Counts {
        let open: Vec<_> =
            [Side::Buy, Side::Sell].iter().flat_map(|&side| self.exchange.orders(0, side)).collect();
        let Sums { accepted, rejected, trades, traded, cancelled, cancelled_quantity } = self.sums;
        Counts::from([
            ("accepted", accepted),
            ("rejected", rejected),
            ("trades", trades),
            ("traded", traded),
            ("cancelled", cancelled),
            ("cancelled quantity", cancelled_quantity),
            ("open", open.len() as u64),
            ("open quantity", open.iter().map(|order| order.leaves).sum()),
            ("sent quantity", self.sent_quantity),
        ])
    }
}

/// Returns the command that adds a limit order.
#[inline]
pub fn order(id: u64, side: Side, price: i64, quantity: u64) -> Command {
    Command::New(NewOrder { id, owner: id as u32, side, price, quantity, ..NewOrder::default() })
}

/// Returns the command that cancels the order with this id.
#[inline]
pub fn cancel(id: u64) -> Command {
    Command::Cancel { id, owner: id as u32 }
}

/// Returns the `n`-th command of the mixed load: of ten, six rest on both sides, two cancel the
/// newest of those, and two bids trade.
#[inline]
pub fn mixed(n: u64, resting: &mut Vec<u64>, next_id: &mut u64) -> Option<Command> {
    let (side, price) = match n % 10 {
        0..=5 if n.is_multiple_of(2) => (Side::Buy, 100),
        0..=5 => (Side::Sell, 200),
        6 | 7 => return resting.pop().map(cancel),
        _ => (Side::Buy, 200),
    };
    let id = *next_id;
    *next_id += 1;
    if n % 10 <= 5 {
        resting.push(id);
    }
    Some(order(id, side, price, QUANTITY))
}
