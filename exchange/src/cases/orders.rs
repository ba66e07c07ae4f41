//! Price-time priority, times in force, icebergs, minimum quantity, replace and mass cancel.

use super::{exchange, last, step};
use crate::{Command, Event, Side};

#[test]
fn orders_trade_in_price_time_priority() {
    assert_eq!(last("S1 5@102, S2 5@101, S3 5@101\nB4 12@102"), "4+, 4>2 5@101, 4>3 5@101, 4>1 2@102");
    assert_eq!(last("B1 5@98, B2 5@99, B3 5@99\nS4 12@98"), "4+, 4>2 5@99, 4>3 5@99, 4>1 2@98");
    assert_eq!(last("S1 5@102\nB2 5@101, B3 7@103, S4 9@103"), "2+, 3+, 3>1 5@102, 4+, 4>3 2@103");
}

#[test]
fn market_order_takes_every_price_and_cancels_remainder() {
    assert_eq!(last("S1 5@102, S2 5@900\nB3 12"), "3+, 3>1 5@102, 3>2 5@900, 3- 2 NoLiquidity");
    assert_eq!(last("B1 5@1\nS2 3, S3 3 fok"), "2+, 2>1 3@1, 3+, 3- 3 FillOrKill");
    assert_eq!(last("S1 5"), "1+, 1- 5 NoLiquidity");
}

#[test]
fn immediate_or_cancel_remainder_is_cancelled() {
    assert_eq!(last("S1 5@101, S2 5@102\nB3 7@101 ioc"), "3+, 3>1 5@101, 3- 2 Immediate");
    assert_eq!(last("S1 5@101\nB3 5@101 ioc, B4 1@100 ioc"), "3+, 3>1 5@101, 4+, 4- 1 Immediate");
}

#[test]
fn fill_or_kill_fills_fully_and_counts_hidden_quantity() {
    assert_eq!(last("S1 5@101, S2 5@102\nB3 10@101 fok"), "3+, 3- 10 FillOrKill");
    assert_eq!(last("S1 5@101, S2 5@102\nB3 10@102 fok"), "3+, 3>1 5@101, 3>2 5@102");
    assert_eq!(last("S1 9@101 show=4\nB3 9@101 fok"), "3+, 3>1 4@101, 3>1 4@101, 3>1 1@101");
    assert_eq!(last("S1 9@101 show=4\nB3 10@101 fok"), "3+, 3- 10 FillOrKill");
}

#[test]
fn minimum_fills_at_once_then_order_is_ordinary() {
    assert_eq!(last("S1 5@101\nB3 9@101 min=6"), "3+, 3- 9 Minimum");
    assert_eq!(last("S1 5@101\nB3 9@101 min=5, S4 9@101"), "3+, 3>1 5@101, 4+, 4>3 4@101");
    assert_eq!(last("S1 5@101\nB3 9@101 min=5 ioc"), "3+, 3>1 5@101, 3- 4 Immediate");
    assert_eq!(last("S1 5@101\nB3 9 min=6"), "3+, 3- 9 Minimum");
}

#[test]
fn post_only_never_takes() {
    assert_eq!(
        last("S1 5@101\nB2 5@101 post, B2 5@100 post, S3 1@100 post"),
        "2! WouldTrade, 2+, 3! WouldTrade"
    );
    assert_eq!(
        last("S1 5@101, B2 5@100 post\nr2 5@101, r2 4@99, S3 9@99"),
        "2! WouldTrade, 2= 4@99, 3+, 3>2 4@99"
    );
}

#[test]
fn iceberg_displays_next_part_at_queue_end() {
    let mut exchange = exchange();
    assert_eq!(step(&mut exchange, "S1 10@101 show=4, S2 3@101"), "1+, 2+");
    let level = exchange.depth(0, Side::Sell, 9).next().expect("a level");
    assert_eq!((level.quantity, level.orders), (7, 2), "the rest is hidden");
    assert_eq!(step(&mut exchange, "B3 5@101"), "3+, 3>1 4@101, 3>2 1@101");
    assert_eq!(step(&mut exchange, "B4 8@101"), "4+, 4>2 2@101, 4>1 4@101, 4>1 2@101");
    assert!(exchange.depth(0, Side::Sell, 9).next().is_none());
    assert_eq!(step(&mut exchange, "x4"), "4! UnknownOrder");
}

#[test]
fn arriving_iceberg_trades_fully_before_resting() {
    assert_eq!(last("S1 5@101\nB2 9@101 show=2, S3 9@101"), "2+, 2>1 5@101, 3+, 3>2 2@101, 3>2 2@101");
}

#[test]
fn replacement_keeps_priority_at_same_price_and_smaller_quantity() {
    assert_eq!(last("B1 5@100, B2 5@100\nr1 4@100, S3 6@100"), "1= 4@100, 3+, 3>1 4@100, 3>2 2@100");
    assert_eq!(last("B1 5@100, B2 5@100\nr1 5@100, S3 6@100"), "1= 5@100, 3+, 3>1 5@100, 3>2 1@100");
    assert_eq!(last("B1 5@100, B2 5@100\nr1 6@100, S3 6@100"), "1= 6@100, 3+, 3>2 5@100, 3>1 1@100");
    assert_eq!(
        last("B1 5@100, B2 5@100\nr1 5@99, r1 5@100, S3 6@100"),
        "1= 5@99, 1= 5@100, 3+, 3>2 5@100, 3>1 1@100"
    );
}

#[test]
fn crossing_replacement_trades() {
    assert_eq!(last("B1 5@100, S2 3@101\nr1 5@101, S3 9@101"), "1= 5@101, 1>2 3@101, 3+, 3>1 2@101");
    assert_eq!(last("B1 5@100, S2 9@101\nr1 5@101, x1"), "1= 5@101, 1>2 5@101, 1! UnknownOrder");
    assert_eq!(last("B1 9@100 show=2\nr1 5@100, S2 9@100"), "1= 5@100, 2+, 2>1 2@100, 2>1 2@100, 2>1 1@100");
}

#[test]
fn orders_expire_by_time_then_arrival() {
    let book = "B1 1@90 until=7, B2 1@91 until=5, S3 1@99 until=7, B4 1 stop=500 until=6, B5 1@80 until=9";
    assert_eq!(last(&format!("{book}\ntime 4, time 5")), "2t 1");
    assert_eq!(
        last(&format!("{book}\nr1 9@95, x5, time 20")),
        "1= 9@95, 5- 1 Requested, 2t 1, 4t 1, 1t 9, 3t 1"
    );
    assert_eq!(last("time 9, time 3\nB1 1@9 until=9, B1 1@9 until=10"), "1! Expired, 1+");
}

#[test]
fn mass_cancel_cancels_one_owner_book_by_book() {
    let book =
        "S1 1@103 own=7, B2 1@90 own=7, B3 2@92 own=7, B4 1@92 own=8, S5 3@101 own=7, B6 4 stop=400 own=7";
    let gone = "3- 2 MassCancel, 2- 1 MassCancel, 5- 3 MassCancel, 1- 1 MassCancel, 6- 4 MassCancel";
    assert_eq!(last(&format!("{book}\nmass 7")), gone);
    assert_eq!(last(&format!("{book}, mass 7\nS9 2@92")), "9+, 9>4 1@92");
}

#[test]
fn trade_reports_open_quantity_of_both_orders() {
    let mut exchange = exchange();
    step(&mut exchange, "S1 10@101 show=4");
    let mut events = Vec::new();
    exchange.apply(super::command("B2 6@101"), &mut events);
    exchange.apply(Command::Cancel { id: 1, owner: 0 }, &mut events);
    let leaves = |event: &Event| match *event {
        Event::Trade { number, maker_leaves, taker_leaves, .. } => Some((number, maker_leaves, taker_leaves)),
        _ => None,
    };
    assert_eq!(events.iter().filter_map(leaves).collect::<Vec<_>>(), [(0, 6, 2), (1, 4, 0)]);
    assert!(exchange.is_empty());
}
