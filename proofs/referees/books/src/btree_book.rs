//! The straightforward order book: for each side a sorted map of queues, and a hash map of ids.

use crate::op::{Op, Random};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A trade of the straightforward order book, the baseline of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    pub maker: u64,
    pub taker: u64,
    pub price: u64,
    pub quantity: u64,
}

struct Order {
    id: u64,
    quantity: u64,
}

#[derive(Default)]
pub struct BTreeBook {
    bids: BTreeMap<u64, VecDeque<Order>>,
    offers: BTreeMap<u64, VecDeque<Order>>,
    prices: HashMap<u64, (bool, u64)>,
}

impl BTreeBook {
    pub fn new() -> BTreeBook {
        BTreeBook::default()
    }

    pub fn open_orders(&self) -> usize {
        self.prices.len()
    }

    /// Returns the number of price levels on both sides.
    pub fn levels(&self) -> usize {
        self.bids.len() + self.offers.len()
    }

    /// Returns the best price of a side.
    pub fn best(&self, buy: bool) -> Option<u64> {
        if buy { self.bids.keys().next_back().copied() } else { self.offers.keys().next().copied() }
    }

    /// Returns an open order's side, price and open quantity.
    pub fn open(&self, id: u64) -> Option<(bool, u64, u64)> {
        let &(buy, price) = self.prices.get(&id)?;
        let side = if buy { &self.bids } else { &self.offers };
        side[&price].iter().find(|order| order.id == id).map(|order| (buy, price, order.quantity))
    }

    /// Returns a random open order of the book.
    pub fn any(&self, random: &mut Random) -> Option<u64> {
        let side = if random.below(2) == 0 { &self.bids } else { &self.offers };
        let level = side.values().nth(random.below(side.len().max(1) as u64) as usize)?;
        level.get(random.below(level.len() as u64) as usize).map(|order| order.id)
    }

    /// Returns price and quantity of every level, the best first.
    pub fn depth(&self, buy: bool) -> Vec<(u64, u64)> {
        let sum = |(price, level): (&u64, &VecDeque<Order>)| {
            (*price, level.iter().map(|order| order.quantity).sum())
        };
        if buy { self.bids.iter().rev().map(sum).collect() } else { self.offers.iter().map(sum).collect() }
    }

    /// Applies an operation to the book. Returns its trades.
    pub fn apply(&mut self, op: Op) -> Vec<Trade> {
        match op {
            Op::Add { id, buy, price, quantity } => {
                let (trades, rest) = self.take(id, buy, price, quantity);
                if rest > 0 {
                    self.rest(id, buy, price, rest);
                }
                trades
            }
            Op::Take { id, buy, price, quantity } => self.take(id, buy, price, quantity).0,
            Op::Market { id, buy, quantity } => {
                self.take(id, buy, if buy { u64::MAX } else { 0 }, quantity).0
            }
            Op::Cancel { id } => {
                self.remove(id);
                Vec::new()
            }
            Op::Move { id, price, .. } => match self.remove(id) {
                Some((buy, quantity)) => self.apply(Op::Add { id, buy, price, quantity }),
                None => Vec::new(),
            },
        }
    }

    fn rest(&mut self, id: u64, buy: bool, price: u64, quantity: u64) {
        let side = if buy { &mut self.bids } else { &mut self.offers };
        side.entry(price).or_default().push_back(Order { id, quantity });
        self.prices.insert(id, (buy, price));
    }

    fn take(&mut self, taker: u64, buy: bool, limit: u64, mut quantity: u64) -> (Vec<Trade>, u64) {
        let mut trades = Vec::new();
        while quantity > 0 {
            let level = if buy { self.offers.first_entry() } else { self.bids.last_entry() };
            let Some(mut level) = level else { break };
            let price = *level.key();
            if if buy { price > limit } else { price < limit } {
                break;
            }
            while quantity > 0
                && let Some(maker) = level.get_mut().front_mut()
            {
                let traded = quantity.min(maker.quantity);
                maker.quantity -= traded;
                quantity -= traded;
                trades.push(Trade { maker: maker.id, taker, price, quantity: traded });
                if maker.quantity == 0 {
                    self.prices.remove(&maker.id);
                    level.get_mut().pop_front();
                }
            }
            if level.get().is_empty() {
                level.remove();
            }
        }
        (trades, quantity)
    }

    fn remove(&mut self, id: u64) -> Option<(bool, u64)> {
        let (buy, price) = self.prices.remove(&id)?;
        let side = if buy { &mut self.bids } else { &mut self.offers };
        let level = side.get_mut(&price)?;
        let at = level.iter().position(|order| order.id == id)?;
        let order = level.remove(at)?;
        if level.is_empty() {
            side.remove(&price);
        }
        Some((buy, order.quantity))
    }
}
