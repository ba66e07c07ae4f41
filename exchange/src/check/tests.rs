//! Exchanges with one violated invariant each, which the check must detect.

use super::*;
use crate::{Command, NewOrder, Side};

/// Creates a book with orders of every kind.
fn book() -> Exchange {
    let buy = |id, quantity, price| NewOrder { id, quantity, price, ..NewOrder::default() };
    let sell = |id, quantity, price| NewOrder { side: Side::Sell, ..buy(id, quantity, price) };
    let good_till =
        |expires_at, order| NewOrder { time_in_force: TimeInForce::GoodTillTime, expires_at, ..order };
    let stop = NewOrder { order_type: OrderType::StopLimit, stop_price: 150, ..buy(7, 5, 200) };
    let iceberg = NewOrder { display: 2, ..buy(3, 9, 98) };
    let mut exchange = crate::tests::exchange();
    for order in [
        buy(1, 5, 99),
        buy(2, 5, 99),
        iceberg,
        sell(4, 5, 101),
        good_till(9, sell(5, 5, 102)),
        good_till(8, sell(6, 5, 102)),
        stop,
    ] {
        exchange.apply(Command::New(order), &mut Vec::new());
    }
    exchange.check().expect("consistent");
    exchange
}

#[track_caller]
fn assert_violation(corrupt: impl Fn(&mut Exchange), is_expected: impl Fn(&Inconsistency) -> bool) {
    let mut exchange = book();
    corrupt(&mut exchange);
    let violation = exchange.check().expect_err("an invariant is violated");
    assert!(is_expected(&violation), "{violation:?}");
}

fn slot(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.find(id).expect("open")
}

fn queue(exchange: &Exchange, id: u64) -> u32 {
    exchange.store.arena.node(slot(exchange, id)).queue
}

#[test]
fn fill_missing_in_order_or_level_is_found() {
    let fill_order_only = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves -= 1;
        exchange.store.arena.node_mut(slot).shown -= 1;
    };
    assert_violation(fill_order_only, |violation| {
        matches!(violation, Inconsistency::Totals { price: 99, .. })
    });
    let fill_level_only = |exchange: &mut Exchange| {
        let queue = queue(exchange, 3);
        exchange.store.arena.node_mut(queue).leaves -= 1;
    };
    assert_violation(fill_level_only, |violation| {
        matches!(violation, Inconsistency::Totals { price: 98, .. })
    });
}

#[test]
fn crossed_book_is_found() {
    let rest_crossing_order = |exchange: &mut Exchange| {
        let slot = slot(exchange, 4);
        exchange.books[0].leave(&mut exchange.store, slot);
        exchange.store.arena.node_mut(slot).price = 99;
        exchange.books[0].join(&mut exchange.store, BookPart::Offers, slot);
    };
    assert_violation(rest_crossing_order, |violation| {
        matches!(violation, Inconsistency::Crossed { bid: 99, offer: 99, .. })
    });
}

#[test]
fn order_out_of_time_priority_is_found() {
    let move_first_to_end = |exchange: &mut Exchange| {
        let slot = slot(exchange, 2);
        let rank = exchange.store.arena.node(slot).rank;
        let queue = queue(exchange, 1);
        let first = exchange.store.arena.node(queue).head();
        exchange.store.arena.unlink(first);
        exchange.store.arena.append(queue, first, rank - 1);
    };
    assert_violation(move_first_to_end, |violation| matches!(violation, Inconsistency::Fifo { id: 1 }));
}

#[test]
fn leaked_and_doubly_freed_nodes_are_found() {
    let leak_order = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.books[0].leave(&mut exchange.store, slot);
    };
    assert_violation(leak_order, |violation| {
        matches!(violation, Inconsistency::Leak { what: "open orders", counted: 6, recorded: 7 })
    });
    let free_twice = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.release(slot);
    };
    assert_violation(free_twice, |violation| matches!(violation, Inconsistency::Misplaced { id: 1 }));
    let leak_level = |exchange: &mut Exchange| {
        exchange.store.queues.allocate(&mut exchange.store.arena, 5, 5);
    };
    assert_violation(leak_level, |violation| matches!(violation, Inconsistency::Leak { what: "levels", .. }));
}

#[test]
fn missing_or_surplus_index_entry_is_found() {
    let remove_index_entry = |exchange: &mut Exchange| {
        let index = &mut exchange.store.index;
        let entry = index.find(4, index.home(4), |_| true).expect("order 4 is open");
        index.remove(entry);
    };
    assert_violation(remove_index_entry, |violation| matches!(violation, Inconsistency::Index { id: 4 }));
    let add_index_entry = |exchange: &mut Exchange| {
        let index = &mut exchange.store.index;
        index.insert(index.home(77), 3, u64::from);
    };
    assert_violation(add_index_entry, |violation| {
        matches!(violation, Inconsistency::Leak { what: "index entries", .. })
    });
}

#[test]
fn wrong_best_price_and_missed_stop_are_found() {
    let set_wrong_best =
        |exchange: &mut Exchange| exchange.books[0].first[BookPart::Bids as usize] = queue(exchange, 3);
    assert_violation(set_wrong_best, |violation| matches!(violation, Inconsistency::Levels { .. }));
    for part in BookPart::ALL {
        let set_wrong_edge = |exchange: &mut Exchange| exchange.books[0].edge[part as usize] = 7;
        assert_violation(set_wrong_edge, |violation| matches!(violation, Inconsistency::Levels { .. }));
    }
    assert_violation(
        |exchange| exchange.books[0].last = 150,
        |violation| matches!(violation, Inconsistency::Stop { .. }),
    );
    assert_violation(
        |exchange| exchange.store.reserved = 0,
        |violation| matches!(violation, Inconsistency::Leak { .. }),
    );
}

#[test]
fn missed_expiry_and_empty_order_are_found() {
    assert_violation(
        |exchange| exchange.store.now = 8,
        |violation| matches!(violation, Inconsistency::Expiry { .. }),
    );
    let postpone_expiry = |exchange: &mut Exchange| {
        let slot = slot(exchange, 6);
        exchange.store.arena.details_mut(slot).expires_at = 10;
    };
    assert_violation(postpone_expiry, |violation| matches!(violation, Inconsistency::Expiry { .. }));
    let empty_order = |exchange: &mut Exchange| {
        let slot = slot(exchange, 1);
        exchange.store.arena.node_mut(slot).leaves = 0;
    };
    assert_violation(empty_order, |violation| matches!(violation, Inconsistency::Quantity { id: 1, .. }));
}
