//! Saved states: a restored exchange continues as the saved one, and invalid states are refused.

use crate::drawn::{CommandSource, Setting};
use crate::pair::Engine;
use exchange::{
    Capacity, Command, Exchange, Instrument, NewOrder, OrderType, SelfTrade, Side, State, StateError,
    TimeInForce,
};
use serde_json::{Value, json};
use shm::random::SplitMix64;

#[test]
fn restored_exchange_continues_as_the_saved_one() {
    for seed in 0..12 {
        let setting = Setting::of_history(seed);
        let (mut numbers, mut source) = (SplitMix64(seed), CommandSource::new(&setting));
        let mut saved = Exchange::start(&setting);
        let mut restored = Exchange::start(&setting);
        for step in 0..1500 {
            if step % 50 == 49 {
                let text = serde_json::to_string(&saved.state()).expect("a state as text");
                let state: State = serde_json::from_str(&text).expect("a state from its text");
                assert_eq!(state, saved.state());
                // In turn a new exchange, and one that has orders.
                if step % 100 == 49 {
                    restored = Exchange::start(&setting);
                }
                restored.restore(&state).unwrap_or_else(|error| panic!("seed {seed}, {step}: {error}"));
                assert_eq!(restored.state(), state, "seed {seed}, step {step}");
                assert_eq!(restored.digest(), saved.digest(), "seed {seed}, step {step}");
            }
            let command = source.command(&mut numbers);
            let (mut expected, mut events) = (Vec::new(), Vec::new());
            saved.apply(command, &mut expected);
            restored.apply(command, &mut events);
            assert_eq!(events, expected, "seed {seed}, step {step}: {command:?}");
        }
    }
}

fn exchange(capacity: Capacity) -> Exchange {
    let instrument = Instrument {
        tick: 5,
        price_low: 10,
        price_high: 200,
        max_quantity: 100,
        reference_price: 100,
        ..Instrument::default()
    };
    Exchange::new(&[instrument, instrument], capacity).expect("a valid configuration")
}

/// Returns a state with a bid, an iceberg offer that expires, and a stop-limit order.
fn state() -> Value {
    let mut exchange = exchange(Capacity::for_orders(8));
    let bid = NewOrder { id: 1, owner: 3, price: 90, quantity: 100, ..NewOrder::default() };
    let iceberg = NewOrder {
        id: 2,
        side: Side::Sell,
        price: 110,
        display: 20,
        time_in_force: TimeInForce::GoodTillTime,
        expires_at: 9,
        self_trade: SelfTrade::Decrement,
        ..bid
    };
    let stop = NewOrder { id: 3, order_type: OrderType::StopLimit, stop_price: 150, price: 200, ..bid };
    for order in [bid, iceberg, stop] {
        exchange.apply(Command::New(order), &mut Vec::new());
    }
    assert_eq!(exchange.open_orders(), 3);
    serde_json::to_value(exchange.state()).expect("a state as a value")
}

fn restore(value: &Value, capacity: Capacity) -> Result<(), StateError> {
    exchange(capacity).restore(&serde_json::from_value(value.clone()).expect("a state"))
}

/// Restores the state of [`state`] with a field of an order changed.
fn restore_with(list: usize, field: &str, value: impl Into<Value>) -> Result<(), StateError> {
    let mut state = state();
    let order = &mut state["books"][0]["lists"][list][0];
    assert!(order[field].is_number(), "{order}");
    order[field] = value.into();
    restore(&state, Capacity::for_orders(8))
}

const BIDS: usize = 0;
const OFFERS: usize = 1;
const BUY_STOPS: usize = 2;

/// Types in the lowest bits of a kind.
const LIMIT: u16 = 0;
const MARKET: u16 = 1;
const STOP: u16 = 2;
const STOP_LIMIT: u16 = 3;

#[test]
fn order_invalid_in_its_part_is_refused() {
    restore(&state(), Capacity::for_orders(8)).expect("a valid state");
    let invalid: [(usize, &str, Value); 19] = [
        (BIDS, "leaves", json!(0)),
        (BIDS, "leaves", json!(101)),
        (BIDS, "shown", json!(0)),
        (BIDS, "shown", json!(101)),
        (BIDS, "price", json!(5)),
        (BIDS, "price", json!(91)),
        (BIDS, "price", json!(205)),
        (BIDS, "rank", json!(0)),
        (BIDS, "rank", json!(100)),
        (BIDS, "kind", json!(MARKET)),
        (BIDS, "kind", json!(STOP)),
        (BIDS, "kind", json!(STOP_LIMIT)),
        (BUY_STOPS, "kind", json!(LIMIT)),
        (BUY_STOPS, "kind", json!(MARKET)),
        (BIDS, "kind", json!(LIMIT | 7 << 2)),
        (BIDS, "kind", json!(LIMIT | 1 << 9)),
        (BUY_STOPS, "limit", json!(201)),
        (BUY_STOPS, "limit", json!(0)),
        (OFFERS, "display", json!(0)),
    ];
    for (list, field, value) in invalid {
        let id = list as u64 + 1;
        let restored = restore_with(list, field, value.clone());
        assert_eq!(restored, Err(StateError::Order(id)), "{field} of order {id}: {value}");
    }
    assert_eq!(restore_with(OFFERS, "id", 1), Err(StateError::Order(1)), "an id twice");
}

#[test]
fn orders_inconsistent_together_are_refused() {
    let refused = |restored: Result<(), StateError>| matches!(restored, Err(StateError::Inconsistent(_)));
    assert!(refused(restore_with(OFFERS, "price", 90)), "the book is crossed");
    let mut state = state();
    state["now"] = json!(9);
    assert!(refused(restore(&state, Capacity::for_orders(8))), "an order expired before");
    state["now"] = json!(8);
    restore(&state, Capacity::for_orders(8)).expect("the order expires later");
    state["books"][0]["last"] = json!(150);
    assert!(refused(restore(&state, Capacity::for_orders(8))), "the stop price was reached");
}

#[test]
fn state_of_an_exchange_without_free_levels_is_restored() {
    let capacity = Capacity { orders: 4, levels: 3 };
    let mut saved = exchange(capacity);
    let buy = |id, price| NewOrder { id, price, quantity: 5, ..NewOrder::default() };
    let stop_limit = NewOrder { order_type: OrderType::StopLimit, stop_price: 150, ..buy(3, 200) };
    for order in [buy(1, 90), buy(2, 90), stop_limit] {
        saved.apply(Command::New(order), &mut Vec::new());
    }
    assert_eq!(saved.open_orders(), 3);
    let mut restored = exchange(capacity);
    restored.restore(&saved.state()).expect("a state of this exchange");
    assert_eq!(restored.digest(), saved.digest());
    // Three prices, of which the last has two orders.
    let mut saved = exchange(capacity);
    for order in [buy(1, 80), buy(2, 80), buy(3, 90), buy(4, 100)] {
        saved.apply(Command::New(order), &mut Vec::new());
    }
    assert_eq!(saved.open_orders(), 4);
    restored.restore(&saved.state()).expect("a state of this exchange");
    assert_eq!(restored.digest(), saved.digest());
}

#[test]
fn state_too_large_for_an_exchange_is_refused() {
    let state = state();
    restore(&state, Capacity { orders: 3, levels: 4 }).expect("a level for each order and limit price");
    let full = Err(StateError::Full(3));
    assert_eq!(restore(&state, Capacity { orders: 2, levels: 8 }), full, "one order more");
    assert_eq!(restore(&state, Capacity { orders: 3, levels: 3 }), full, "no level for the limit price");
    let mut one_book = state;
    one_book["books"].as_array_mut().expect("books").pop();
    let restored = restore(&one_book, Capacity::for_orders(8));
    assert_eq!(restored, Err(StateError::Instruments { found: 1, here: 2 }));
}
