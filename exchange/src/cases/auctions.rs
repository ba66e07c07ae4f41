//! Call auctions: price, time priority, icebergs, and stop orders.

use super::{exchange, last, step};

#[test]
fn auction_price_has_largest_volume() {
    let orders = "auction, B1 5@103, B2 5@101, S3 6@100, S4 6@102";
    // 100: 6, 101: 6, 102: 5. Of 100 to 101 all have volume 6 and surplus 4.
    assert_eq!(last(&format!("{orders}\nuncross")), "uncrossed 6@100, 1>3 5@100, 2>3 1@100");
}

#[test]
fn ties_use_surplus_then_reference_then_higher_price() {
    assert_eq!(last("auction, B1 5@110, S2 5@105, S3 5@108\nuncross"), "uncrossed 5@105, 1>2 5@105");
    assert_eq!(
        last("auction, B1 5@110, S2 5@90\nuncross"),
        "uncrossed 5@100, 1>2 5@100",
        "the reference price"
    );
    assert_eq!(last("auction, B1 5@99, S2 5@90\nuncross"), "uncrossed 5@99, 1>2 5@99", "nearest below it");
    assert_eq!(
        last("auction, B1 5@110, S2 5@107\nuncross"),
        "uncrossed 5@107, 1>2 5@107",
        "nearest above it"
    );
    // 99 and 101 would both be nearest if 100 had more surplus: a bid at 99 more than at 100, and
    // so on.
    assert_eq!(
        last("auction, B1 5@101, S2 5@99, B3 2@100, S4 2@100\nuncross"),
        "uncrossed 7@100, 1>2 5@100, 3>4 2@100"
    );
}

#[test]
fn uncross_without_cross_resumes_continuous_trading() {
    assert_eq!(last("auction, B1 5@99, S2 5@100\nuncross, B3 5@100"), "uncrossed 0@0, 3+, 3>2 5@100");
    assert_eq!(
        last("auction\nuncross, uncross, auction, auction"),
        "uncrossed 0@0, 0! WrongPhase, 0! WrongPhase"
    );
}

#[test]
fn auction_respects_time_priority_and_keeps_remainder() {
    let mut exchange = exchange();
    step(&mut exchange, "auction, B1 4@100, B2 4@100, S3 5@100");
    assert_eq!(step(&mut exchange, "uncross"), "uncrossed 5@100, 1>3 4@100, 2>3 1@100");
    assert_eq!(step(&mut exchange, "S4 9@100 ioc"), "4+, 4>2 3@100, 4- 6 Immediate");
}

#[test]
fn iceberg_trades_fully_in_auction_and_keeps_priority() {
    let orders = "auction, B1 9@100 show=2, B2 1@100, S3 4@100";
    assert_eq!(
        last(&format!("{orders}\nuncross, S4 9@100")),
        "uncrossed 4@100, 1>3 4@100, 4+, 4>1 2@100, 4>2 1@100, 4>1 2@100, 4>1 1@100"
    );
}

#[test]
fn auction_accepts_only_resting_orders() {
    assert_eq!(
        last(
            "auction\nB1 5, B1 5@9 ioc, B1 5@9 fok, B1 5@9 post, B1 5@9 min=1, B1 5@9 until=3, B2 5@9 show=1"
        ),
        "1! WrongPhase, 1! WrongPhase, 1! WrongPhase, 1! WrongPhase, 1! WrongPhase, 1+, 2+"
    );
    assert_eq!(
        last("auction, B1 5@100, S2 5@101\nr1 5@102, uncross"),
        "1= 5@102, uncrossed 5@101, 1>2 5@101"
    );
}

#[test]
fn stop_orders_wait_for_auction_end() {
    let orders = "S8 1@100, B9 1@100, auction, B1 1@105, S2 1@95, S3 9@120, B4 1 stop=99, B5 1 stop=130";
    assert_eq!(last(&format!("{orders}\nuncross")), "uncrossed 1@100, 1>2 1@100, 4*, 4>3 1@120");
    assert_eq!(
        last("S8 1@100, B9 1@100, auction, B4 1 stop=99, S3 9@120\nuncross"),
        "uncrossed 0@0, 4*, 4>3 1@120"
    );
}

#[test]
fn auction_price_between_orders_is_on_tick() {
    use crate::{Capacity, Exchange, Instrument};
    let uncross = |reference_price: i64| {
        let instrument =
            Instrument { tick: 5, price_low: 3, price_high: 999, reference_price, ..Instrument::default() };
        let mut exchange =
            Exchange::new(&[instrument], Capacity::for_orders(16)).expect("a valid configuration");
        step(&mut exchange, "auction, B1 1@120, S2 1@80");
        step(&mut exchange, "uncross")
    };
    assert_eq!(uncross(102), "uncrossed 1@100, 1>2 1@100");
    assert_eq!(uncross(103), "uncrossed 1@105, 1>2 1@105");
    assert_eq!(uncross(3), "uncrossed 1@80, 1>2 1@80");
    assert_eq!(uncross(119), "uncrossed 1@120, 1>2 1@120");
}
