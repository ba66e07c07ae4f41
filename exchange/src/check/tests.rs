//! Exchanges with one violated invariant each, which the check must find.

use super::*;
use crate::{Command, NewOrder, Side};

/// Creates a book with orders of every kind.
fn book() -> Exchange {
    let buy = |id, quantity, price| NewOrder { id, quantity, price, ..NewOrder::default() };
    let sell = |id, quantity, price| NewOrder { side: Side::Sell, ..buy(id, quantity, price) };
    let until =
        |expires_at, order| NewOrder { time_in_force: TimeInForce::GoodTillTime, expires_at, ..order };
    let stop = NewOrder { order_type: OrderType::StopLimit, stop_price: 150, ..buy(7, 5, 200) };
    let iceberg = NewOrder { display: 2, ..buy(3, 9, 98) };
    let mut exchange = crate::tests::exchange();
    for order in [
        buy(1, 5, 99),
        buy(2, 5, 99),
        iceberg,
        sell(4, 5, 101),
        until(9, sell(5, 5, 102)),
        until(8, sell(6, 5, 102)),
        stop,
    ] {
        exchange.apply(Command::New(order), &mut Vec::new());
    }
    exchange.check().expect("sound");
    exchange
}

#[track_caller]
fn finds(breaks: impl Fn(&mut Exchange), is: impl Fn(&Inconsistency) -> bool) {
    let mut exchange = book();
    breaks(&mut exchange);
    let found = exchange.check().expect_err("an invariant is violated");
    assert!(is(&found), "{found:?}");
}

fn slot(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.find(id).expect("open")
}

fn queue(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.arena.node(slot(exchange, id)).queue
}

#[test]
fn fill_missing_in_order_or_level_is_found() {
    let of_order = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves -= 1;
        exchange.store.arena.node_mut(slot).shown -= 1;
    };
    finds(of_order, |found| matches!(found, Inconsistency::Totals { price: 99, .. }));
    let of_level = |exchange: &mut Exchange| {
        let queue = queue(exchange, 3);
        exchange.store.arena.node_mut(queue).leaves -= 1;
    };
    finds(of_level, |found| matches!(found, Inconsistency::Totals { price: 98, .. }));
}

#[test]
fn crossed_book_is_found() {
    let rests_without_trading = |exchange: &mut Exchange| {
        let slot = slot(exchange, 4);
        exchange.books[0].leave(&mut exchange.store, slot);
        exchange.store.arena.node_mut(slot).price = 99;
        exchange.books[0].join(&mut exchange.store, BookPart::Offers, slot);
    };
    finds(rests_without_trading, |broken| {
        matches!(broken, Inconsistency::Crossed { bid: 99, offer: 99, .. })
    });
}

#[test]
fn order_out_of_time_priority_is_found() {
    let jumps = |exchange: &mut Exchange| {
        let slot = slot(exchange, 2);
        let rank = exchange.store.arena.node(slot).rank;
        let queue = queue(exchange, 1);
        let first = exchange.store.arena.node(queue).head();
        exchange.store.arena.unlink(first);
        exchange.store.arena.append(queue, first, rank - 1);
    };
    finds(jumps, |found| matches!(found, Inconsistency::Fifo { id: 1 }));
}

#[test]
fn leaked_and_doubly_freed_nodes_are_found() {
    let leaks = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.books[0].leave(&mut exchange.store, slot);
    };
    finds(leaks, |broken| {
        matches!(broken, Inconsistency::Leak { what: "open orders", counted: 6, recorded: 7 })
    });
    let freed_twice = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.release(slot);
    };
    finds(freed_twice, |found| matches!(found, Inconsistency::Misplaced { id: 1 }));
    let level_leaks = |exchange: &mut Exchange| {
        exchange.store.queues.allocate(&mut exchange.store.arena, 5, 5);
    };
    finds(level_leaks, |found| matches!(found, Inconsistency::Leak { what: "levels", .. }));
}

#[test]
fn missing_or_surplus_index_entry_is_found() {
    let forgets = |exchange: &mut Exchange| {
        let index = &mut exchange.store.index;
        let entry = index.find(4, index.home(4), |_| true).expect("order 4 is open");
        index.remove(entry);
    };
    finds(forgets, |found| matches!(found, Inconsistency::Index { id: 4 }));
    let knows = |exchange: &mut Exchange| {
        let index = &mut exchange.store.index;
        index.insert(index.home(77), 3, u64::from);
    };
    finds(knows, |found| matches!(found, Inconsistency::Leak { what: "index entries", .. }));
}

#[test]
fn wrong_best_price_and_missed_stop_are_found() {
    let best =
        |exchange: &mut Exchange| exchange.books[0].first[BookPart::Bids as usize] = queue(exchange, 3);
    finds(best, |found| matches!(found, Inconsistency::Levels { .. }));
    for part in BookPart::ALL {
        let edge = |exchange: &mut Exchange| exchange.books[0].edge[part as usize] = 7;
        finds(edge, |found| matches!(found, Inconsistency::Levels { .. }));
    }
    finds(|exchange| exchange.books[0].last = 150, |found| matches!(found, Inconsistency::Stop { .. }));
    finds(|exchange| exchange.store.reserved = 0, |found| matches!(found, Inconsistency::Leak { .. }));
}

#[test]
fn missed_expiry_and_empty_order_are_found() {
    finds(|exchange| exchange.store.now = 8, |found| matches!(found, Inconsistency::Expiry { .. }));
    let late = |exchange: &mut Exchange| {
        let slot = slot(exchange, 6);
        exchange.store.arena.details_mut(slot).expires_at = 10;
    };
    finds(late, |found| matches!(found, Inconsistency::Expiry { .. }));
    let empty = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves = 0;
    };
    finds(empty, |found| matches!(found, Inconsistency::Quantity { id: 1, .. }));
}
