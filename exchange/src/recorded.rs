//! The recorded morning: the opening book, the flow, and what the real exchange made of them.

use crate::book_file::opening_book;
use crate::levels::{Levels, Sorted, Trie};
use crate::{Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, Side, TimeInForce};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data/coinbase-2016-03-12").join(name)
}

/// The recorded messages, each with the recorded exchange's sequence number. The file is known and
/// trusted.
fn flow(text: &str) -> Vec<(u64, Command)> {
    let message = |line: &str| {
        let values: Vec<&str> = line.split(',').collect();
        let number = |at: usize| values[at].parse::<u64>().expect("a number");
        let id = number(3);
        if values[2] == "cancel" {
            return (number(1), Command::Cancel { id, owner: 0 });
        }
        let side = if values[4] == "B" { Side::Buy } else { Side::Sell };
        let mut order = NewOrder { id, side, quantity: number(8), ..NewOrder::default() };
        if values[5] == "market" {
            (order.order_type, order.time_in_force) = (OrderType::Market, TimeInForce::ImmediateOrCancel);
        } else {
            order.price = number(7) as i64;
        }
        (number(1), Command::New(order))
    };
    text.lines().skip(1).map(message).collect()
}

fn numbers(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path(name)).expect("the data is there");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn trades_and_the_final_book_are_exactly_those_of_the_real_exchange() {
    assert_eq!(morning::<Trie>(), morning::<Sorted>(), "the structure of the levels cannot be seen");
}

/// Plays the morning and says what the state is in the end.
fn morning<L: Levels>() -> u64 {
    let open = |name| BufReader::new(File::open(path(name)).expect("the data is there"));
    let band = Instrument { price_high: 1 << 40, ..Instrument::default() };
    let mut exchange: Exchange<L> = Exchange::new(&[band], Capacity::orders(10_000)).expect("it can be");
    let mut events = Vec::new();
    for order in opening_book(open("opening_book.csv"), 0, 0, 10_000).expect("a book") {
        exchange.apply(Command::New(order), &mut events);
    }
    assert!(events.iter().all(|event| matches!(event, Event::Accepted { .. })), "nothing crosses");
    assert_eq!(exchange.open_orders(), 7_109);

    let mut trades = Vec::new();
    for (number, (sequence, command)) in
        flow(&fs::read_to_string(path("flow.csv")).expect("the data is there")).into_iter().enumerate()
    {
        events.clear();
        exchange.apply(command, &mut events);
        if number % 100 == 0 {
            exchange.check().expect("sound");
        }
        for event in &events {
            match *event {
                Event::Trade { maker, taker, price, quantity, .. } => {
                    trades.push([sequence, taker, maker, price as u64, quantity]);
                }
                Event::Rejected { id, reason } => panic!("{id}: {reason}"),
                _ => {}
            }
        }
    }
    exchange.check().expect("sound");
    let expected = numbers("expected_trades.csv");
    let trades: Vec<Vec<String>> =
        trades.iter().map(|trade| trade.iter().map(u64::to_string).collect()).collect();
    assert_eq!(trades.len(), 12);
    assert_eq!(trades, expected);

    let side = |side, letter: &str| -> Vec<Vec<String>> {
        let levels = exchange.depth(0, side, 50);
        levels
            .map(|level| vec![letter.to_owned(), level.price.to_string(), level.quantity.to_string()])
            .collect()
    };
    let book = [side(Side::Buy, "B"), side(Side::Sell, "S")].concat();
    assert_eq!(book, numbers("expected_final_book.csv"));
    exchange.digest()
}
