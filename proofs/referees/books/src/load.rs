//! Loads: lists of operations with the same meaning in every book.

use crate::btree_book::BTreeBook;
pub use crate::op::{Op, Random};
use std::collections::HashMap;

/// A measured load, a row of a table: the preparing operations, and the measured ones.
#[derive(Clone)]
pub struct Load {
    pub name: String,
    pub before: Vec<Op>,
    pub timed: Vec<Op>,
}

const MID: u64 = 100_000;

/// Returns the price of a level on a side of the middle, 0 for the nearest.
fn price_at_level(buy: bool, level: u64) -> u64 {
    if buy { MID - 1 - level } else { MID + 1 + level }
}

/// Returns orders on both sides that do not cross, over `levels` levels a side.
pub fn resting(orders: u64, levels: u64, first: u64) -> Vec<Op> {
    let one = |at: u64| {
        let buy = at.is_multiple_of(2);
        Op::Add { id: first + at, buy, price: price_at_level(buy, at / 2 % levels), quantity: 10 }
    };
    (0..orders).map(one).collect()
}

fn shuffled(mut ids: Vec<u64>) -> Vec<u64> {
    let mut random = Random(7);
    for at in (1..ids.len()).rev() {
        ids.swap(at, random.below(at as u64 + 1) as usize);
    }
    ids
}

fn cancels(ids: impl IntoIterator<Item = u64>) -> Vec<Op> {
    ids.into_iter().map(|id| Op::Cancel { id }).collect()
}

fn load(name: impl Into<String>, before: Vec<Op>, timed: Vec<Op>) -> Load {
    Load { name: name.into(), before, timed }
}

/// Returns cancels of the newest orders of `orders`, as most cancels are in practice.
pub fn cancel_newest(orders: u64) -> Load {
    let newest = shuffled((orders - (orders / 2).min(1_000) + 1..=orders).collect());
    load(
        format!("cancel of the last, {orders} orders"),
        resting(orders, 1_000.min(orders / 4), 1),
        cancels(newest),
    )
}

/// Returns 10,000 orders that do not cross, over 100 levels a side.
pub fn add() -> Load {
    load("add", Vec::new(), resting(10_000, 100, 1))
}

/// Returns 1,000 cancels, each from the middle of a level of 50 orders or of its remainder.
pub fn cancel_middle() -> Load {
    let middle = (0..1_000).map(|at| 1 + 4_400 + at);
    load("cancel in the middle", resting(10_000, 100, 1), cancels(middle))
}

/// Returns 1,000 cancels, each of the first order at the best bid.
pub fn cancel_touch() -> Load {
    let id = |at: u64| 1 + 2 * (at / 50 + at % 50 * 100);
    load("cancel at the touch", resting(10_000, 100, 1), cancels((0..1_000).map(id)))
}

/// Returns twenty orders that each trade with 100 levels of one order.
pub fn sweep() -> Load {
    let level = |at: u64| Op::Add { id: 1 + at, buy: false, price: MID + 1 + at, quantity: 10 };
    let take =
        |at: u64| Op::Take { id: 10_000 + at, buy: true, price: MID + 100 * (at + 1), quantity: 1_000 };
    load("sweep of 100 levels", (0..2_000).map(level).collect(), (0..20).map(take).collect())
}

/// Returns cancels of random orders in a book of `orders` orders.
pub fn cancel_any(orders: u64) -> Load {
    let all = shuffled((1..=orders).collect());
    let some = all.into_iter().take((orders / 2).min(1_000) as usize);
    load(format!("cancel, {orders} orders"), resting(orders, 1_000.min(orders / 4), 1), cancels(some))
}

/// Returns exchange-core's mix of operations in a book of 1,000 orders: 9 % good till cancel, 3 %
/// immediate or cancel, which cross one to three orders each, 6 % cancels, 82 % moves.
pub fn mixed(operations: usize, seed: u64) -> Load {
    let mut random = Random(seed);
    let before = resting(1_000, 100, 1);
    let mut book = BTreeBook::new();
    before.iter().for_each(|op| drop(book.apply(*op)));
    let mut open: Vec<u64> = (1..=1_000).collect();
    let mut place: HashMap<u64, usize> = open.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut timed = Vec::with_capacity(operations);
    let mut next = 1_001;
    while timed.len() < operations {
        let buy = random.below(2) == 0;
        let kind = random.below(100);
        let (id, level) = (next, random.below(100));
        let any = open.get(random.below(open.len().max(1) as u64) as usize).copied();
        let op = match (kind, any) {
            (0..9, _) | (12.., None) => {
                Op::Add { id, buy, price: price_at_level(buy, level), quantity: 1 + random.below(20) }
            }
            (9..12, _) => {
                Op::Take { id, buy, price: price_at_level(!buy, 99), quantity: 1 + random.below(19) }
            }
            (12..18, Some(id)) => Op::Cancel { id },
            (_, Some(id)) => {
                let (buy, at, quantity) = book.open(id).expect("an open order");
                let price = price_at_level(buy, level);
                Op::Move {
                    id,
                    price: if price == at { price_at_level(buy, (level + 1) % 100) } else { price },
                    quantity,
                }
            }
        };
        next += 1;
        let before = book.open_orders();
        let filled: Vec<u64> = book
            .apply(op)
            .iter()
            .filter(|trade| book.open(trade.maker).is_none())
            .map(|trade| trade.maker)
            .collect();
        let gone = filled.into_iter().chain(if let Op::Cancel { id } = op { Some(id) } else { None });
        for id in gone {
            let at = place.remove(&id).expect("it was open");
            open.swap_remove(at);
            if let Some(moved) = open.get(at) {
                place.insert(*moved, at);
            }
        }
        if matches!(op, Op::Add { .. }) && book.open_orders() > before {
            place.insert(id, open.len());
            open.push(id);
        }
        timed.push(op);
    }
    load("mixed load", before, timed)
}

/// Returns the loads of a published table, by its names. `cancel_best_level/N` cancels N orders at
/// N prices, the best first, and `insert/non_crossing/N` uses two prices.
pub fn published() -> Vec<Load> {
    let mut all = Vec::new();
    for orders in [100, 1_000, 10_000] {
        all.push(load(format!("insert/non_crossing/{orders}"), Vec::new(), resting(orders, 1, 1)));
    }
    for orders in [100, 1_000, 5_000] {
        all.push(load(format!("cancel_all/{orders}"), resting(orders, 100, 1), cancels(1..=orders)));
    }
    let at_one_price = |orders: u64| -> Vec<Op> {
        (1..=orders).map(|id| Op::Add { id, buy: true, price: MID - 1, quantity: 10 }).collect()
    };
    all.push(load("cancel_middle_of_1k", at_one_price(1_000), cancels([500])));
    for levels in [100, 500, 1_000] {
        let one = |at: u64| Op::Add { id: 1 + at, buy: true, price: MID - 1 - at, quantity: 10 };
        let before = (0..levels).map(one).collect();
        all.push(load(format!("cancel_best_level/{levels}"), before, cancels(1..=levels)));
    }
    let take = |id, quantity| vec![Op::Take { id, buy: false, price: MID - 2_000, quantity }];
    all.push(load("match/full_fill_1k", at_one_price(1_000), take(5_000, 10_000)));
    all.push(load("match/multi_level_sweep", resting(1_000, 100, 1), take(5_000, 5_000)));
    all.push(load("mixed_workload_10k", Vec::new(), half_crossing(10_000)));
    for thousands in [1, 10] {
        let orders = crossing(thousands * 1_000);
        all.push(load(format!("e2e/crossing_orders/{thousands}k"), Vec::new(), orders));
    }
    all.push(load("e2e/mixed_100k", Vec::new(), half_crossing(100_000)));
    all
}

/// Returns pairs of an offer and a bid that fills it: every second order trades.
fn crossing(orders: u64) -> Vec<Op> {
    let one = |at: u64| Op::Add { id: 1 + at, buy: at % 2 == 1, price: MID + at / 2 % 50, quantity: 10 };
    (0..orders).map(one).collect()
}

/// Returns 60 % resting orders, 20 % cancels, and 20 % orders that trade with the best price.
fn half_crossing(operations: u64) -> Vec<Op> {
    let mut random = Random(11);
    let mut book = BTreeBook::new();
    let mut all = Vec::new();
    for id in 1..=operations {
        let buy = random.below(2) == 0;
        let kind = random.below(10);
        let op = match (kind, book.best(!buy), book.any(&mut random)) {
            (6..8, _, Some(id)) => Op::Cancel { id },
            (8.., Some(price), _) => Op::Add { id, buy, price, quantity: 1 },
            _ => Op::Add {
                id,
                buy,
                price: price_at_level(buy, random.below(100)),
                quantity: 1 + random.below(20),
            },
        };
        book.apply(op);
        all.push(op);
    }
    all
}

/// Returns the percentage of a load's timed operations that trade.
pub fn crossing_rate(load: &Load) -> f64 {
    let mut book = BTreeBook::new();
    load.before.iter().for_each(|op| drop(book.apply(*op)));
    let trading = load.timed.iter().filter(|op| !book.apply(**op).is_empty()).count();
    100.0 * trading as f64 / load.timed.len() as f64
}
