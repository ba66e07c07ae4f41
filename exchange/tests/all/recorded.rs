//! The recorded flow of data/coinbase-2016-03-12: its trades and its final book.

use crate::naive::Naive;
use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, Side, TimeInForce};
use std::collections::HashMap;

/// Cents and satoshis; the highest offer of the opening book needs 64 bits.
pub fn instrument() -> Instrument {
    Instrument {
        price_high: 1 << 40,
        max_quantity: 1 << 40,
        reference_price: 41_300,
        ..Instrument::default()
    }
}

pub fn capacity() -> Capacity {
    Capacity::for_orders(16_384)
}

fn rows(name: &str) -> Vec<Vec<String>> {
    let path = format!("{}/../data/coinbase-2016-03-12/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn order(id: &str, side: &str, price: &str, quantity: &str) -> NewOrder {
    let market = price.is_empty();
    NewOrder {
        id: number(id),
        owner: 1,
        side: if side == "B" { Side::Buy } else { Side::Sell },
        order_type: if market { OrderType::Market } else { OrderType::Limit },
        time_in_force: if market { TimeInForce::ImmediateOrCancel } else { TimeInForce::GoodTillCancel },
        price: if market { 0 } else { number(price) },
        quantity: number(quantity),
        ..NewOrder::default()
    }
}

/// Returns the opening book's orders, and the flow.
pub fn commands() -> (Vec<Command>, Vec<Command>) {
    let opening = rows("opening_book")
        .iter()
        .map(|row| Command::New(order(&row[0], &row[1], &row[2], &row[3])))
        .collect();
    let command = |row: &Vec<String>| match row[2].as_str() {
        "new" => Command::New(order(&row[3], &row[4], &row[7], &row[8])),
        _ => Command::Cancel { id: number(&row[3]), owner: 1 },
    };
    (opening, rows("flow").iter().map(command).collect())
}

/// Replays the recording through an engine, whose trades and depth of 50 levels must be as
/// recorded.
pub fn replay(mut apply: impl FnMut(Command) -> Vec<Event>, depth: impl Fn(Side) -> Vec<(i64, u64)>) -> u64 {
    let mut check = |commands: Vec<Command>| {
        let mut trades = Vec::new();
        for command in commands {
            for event in apply(command) {
                match event {
                    Event::Trade { taker, maker, price, quantity, .. } => {
                        trades.push((taker, maker, price, quantity))
                    }
                    Event::Accepted { .. } | Event::Cancelled { .. } => {}
                    event => panic!("{event:?} of {command:?}"),
                }
            }
        }
        trades
    };
    let (opening, flow) = commands();
    assert_eq!(check(opening), []);
    let expected: Vec<_> = rows("expected_trades")
        .iter()
        .map(|row| (number(&row[1]), number(&row[2]), number(&row[3]), number(&row[4])))
        .collect();
    assert_eq!(check(flow), expected);
    let mut book: HashMap<&str, Vec<(i64, u64)>> = HashMap::new();
    let last = rows("expected_final_book");
    for row in &last {
        book.entry(&row[0]).or_default().push((number(&row[1]), number(&row[2])));
    }
    for (name, side) in [("B", Side::Buy), ("S", Side::Sell)] {
        assert_eq!(depth(side), book[name], "{side:?}");
    }
    expected.len() as u64
}

#[test]
fn naive_engine_trades_as_recorded() {
    let naive = std::cell::RefCell::new(Naive::new(&[instrument()], capacity()));
    let depth =
        |side| naive.borrow().depth(0, side).iter().take(50).map(|level| (level.0, level.1)).collect();
    assert_eq!(replay(|command| naive.borrow_mut().apply(command), depth), 12);
}

#[test]
fn engine_trades_as_recorded() {
    let engine = std::cell::RefCell::new(Exchange::new(&[instrument()], capacity()).unwrap());
    let depth =
        |side| engine.borrow().depth(0, side, 50).map(|level| (level.price, level.quantity)).collect();
    let apply = |command| {
        let mut events = Vec::new();
        engine.borrow_mut().apply(command, &mut events);
        events
    };
    assert_eq!(replay(apply, depth), 12);
    engine.borrow().check().unwrap();
}
