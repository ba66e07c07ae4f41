//! Engines that are broken in one way each: the check finds every one.

use super::{exchange, step};
use crate::arena::Part;
use crate::{Broken, Exchange};

/// A book with something of everything.
fn book() -> Exchange {
    let mut exchange = exchange();
    step(
        &mut exchange,
        "B1 5@99, B2 5@99, B3 9@98 show=2, S4 5@101, S5 5@102 until=9, S6 5@102 until=8, B7 5@200 stop=150",
    );
    exchange
}

#[track_caller]
fn finds(breaks: impl Fn(&mut Exchange), is: impl Fn(&Broken) -> bool) {
    let mut exchange = book();
    breaks(&mut exchange);
    let broken = exchange.check().expect_err("it is broken");
    assert!(is(&broken), "{broken:?}");
}

fn slot(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.find(id).expect("open")
}

fn queue(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.arena.node(slot(exchange, id)).queue
}

#[test]
fn a_fill_that_only_the_order_or_only_the_level_has_seen() {
    let of_order = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves -= 1;
        exchange.store.arena.node_mut(slot).shown -= 1;
    };
    finds(of_order, |broken| matches!(broken, Broken::Sums { price: 99, .. }));
    let of_level = |exchange: &mut Exchange| {
        let queue = queue(exchange, 3);
        exchange.store.arena.node_mut(queue).leaves -= 1;
    };
    finds(of_level, |broken| matches!(broken, Broken::Sums { price: 98, .. }));
}

#[test]
fn a_crossed_book() {
    let rests_without_trading = |exchange: &mut Exchange| {
        let slot = slot(exchange, 4);
        exchange.books[0].leave(&mut exchange.store, slot);
        exchange.store.arena.node_mut(slot).price = 99;
        exchange.books[0].join(&mut exchange.store, Part::Offers, slot);
    };
    finds(rests_without_trading, |broken| matches!(broken, Broken::Crossed { bid: 99, offer: 99, .. }));
}

#[test]
fn an_order_that_jumps_its_queue() {
    let jumps = |exchange: &mut Exchange| {
        let slot = slot(exchange, 2);
        let rank = exchange.store.arena.node(slot).rank;
        let queue = queue(exchange, 1);
        let first = exchange.store.arena.node(queue).head();
        exchange.store.arena.unlink(first);
        exchange.store.arena.append(queue, first, rank - 1);
    };
    finds(jumps, |broken| matches!(broken, Broken::Fifo { id: 1 }));
}

#[test]
fn an_order_that_leaves_the_book_but_not_the_arena_and_the_other_way_round() {
    let leaks = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.books[0].leave(&mut exchange.store, slot);
    };
    finds(leaks, |broken| matches!(broken, Broken::Leak { what: "open orders", counted: 6, said: 7 }));
    let freed_twice = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.release(slot);
    };
    finds(freed_twice, |broken| matches!(broken, Broken::Misplaced { id: 1 }));
    let level_leaks = |exchange: &mut Exchange| {
        exchange.store.queues.allocate(&mut exchange.store.arena, 5, 5);
    };
    finds(level_leaks, |broken| matches!(broken, Broken::Leak { what: "levels", .. }));
}

#[test]
fn an_index_that_forgot_an_order_or_knows_one_too_many() {
    let forgets = |exchange: &mut Exchange| {
        let slot = slot(exchange, 4);
        exchange.store.index.remove(4, slot);
    };
    finds(forgets, |broken| matches!(broken, Broken::Index { id: 4 }));
    let knows = |exchange: &mut Exchange| exchange.store.index.insert(77, 3);
    finds(knows, |broken| matches!(broken, Broken::Leak { what: "index entries", .. }));
}

#[test]
fn a_best_price_that_is_not_the_best_and_a_stop_that_nobody_looks_at() {
    let best = |exchange: &mut Exchange| exchange.books[0].first[Part::Bids as usize] = queue(exchange, 3);
    finds(best, |broken| matches!(broken, Broken::Levels { .. }));
    for part in Part::ALL {
        let edge = |exchange: &mut Exchange| exchange.books[0].edge[part as usize] = 7;
        finds(edge, |broken| matches!(broken, Broken::Levels { .. }));
    }
    finds(|exchange| exchange.books[0].last = 150, |broken| matches!(broken, Broken::Stop { .. }));
    finds(|exchange| exchange.store.reserved = 0, |broken| matches!(broken, Broken::Leak { .. }));
}

#[test]
fn an_order_that_never_expires_and_one_with_nothing_open() {
    finds(|exchange| exchange.store.now = 8, |broken| matches!(broken, Broken::Expiry { .. }));
    let late = |exchange: &mut Exchange| {
        let slot = slot(exchange, 6);
        exchange.store.arena.details_mut(slot).expires_at = 10;
    };
    finds(late, |broken| matches!(broken, Broken::Expiry { .. }));
    let empty = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves = 0;
    };
    finds(empty, |broken| matches!(broken, Broken::Quantity { id: 1, .. }));
}
