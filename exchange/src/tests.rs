//! Tests of an exchange's configuration and its digest.

use crate::{
    Capacity, Command, ConfigError, Exchange, Instrument, NewOrder, OrderType, SelfTrade, Side, TimeInForce,
};
use std::collections::HashSet;

/// An exchange of 16 orders in an instrument with a band from 1 to 1000.
pub(crate) fn exchange() -> Exchange {
    let instrument = Instrument {
        price_high: 1_000,
        max_quantity: 1 << 59,
        reference_price: 100,
        ..Instrument::default()
    };
    Exchange::new(&[instrument], Capacity::for_orders(16)).expect("a valid configuration")
}

#[test]
fn invalid_configuration_is_explained() {
    let new =
        |instrument: Instrument, orders: usize| Exchange::new(&[instrument], Capacity::for_orders(orders));
    let fine = Instrument::default();
    let problem = |instrument: Instrument| new(instrument, 4).expect_err("invalid").to_string();
    assert_eq!(problem(Instrument { tick: 0, ..fine }), "instrument 0: the tick is not from 1 to 2^62");
    assert_eq!(
        problem(Instrument { price_high: 0, ..fine }),
        "instrument 0: the band's highest price is below its lowest"
    );
    assert_eq!(
        problem(Instrument { reference_price: 0, ..fine }),
        "instrument 0: the reference price is outside of the band"
    );
    let big = new(Instrument { max_quantity: 1 << 62, ..fine }, 4);
    assert_eq!(big.expect_err("too much"), ConfigError::QuantityOverflow { index: 0, orders: 4 });
    assert_eq!(new(fine, 0).expect_err("no capacity"), ConfigError::Capacity(0));
}

#[test]
fn orders_at_both_ends_of_band_keep_their_prices() {
    // A node of the price levels has 64 children.
    for prices in [1, 2, 64, 65, 4096, 4097] {
        let (price_low, price_high) = (10, 9 + prices);
        let instrument = Instrument { price_low, price_high, reference_price: 10, ..Instrument::default() };
        let mut exchange = Exchange::new(&[instrument], Capacity::for_orders(2)).expect("a valid band");
        for (id, price) in [(1, price_high), (2, price_low)] {
            let order = NewOrder { id, price, quantity: 5, ..NewOrder::default() };
            exchange.apply(Command::New(order), &mut Vec::new());
        }
        exchange.check().unwrap_or_else(|violation| panic!("{prices} prices: {violation}"));
        let resting: Vec<_> = exchange.orders(0, Side::Buy).map(|order| (order.id, order.price)).collect();
        assert_eq!(resting, [(1, price_high), (2, price_low)], "{prices} prices");
    }
}

#[test]
fn exchange_is_empty_until_an_order_rests() {
    let mut exchange = exchange();
    assert!(exchange.is_empty());
    let order = NewOrder { id: 1, price: 9, quantity: 5, ..NewOrder::default() };
    exchange.apply(Command::New(order), &mut Vec::new());
    assert!(!exchange.is_empty());
    exchange.apply(Command::Cancel { id: 1, owner: 0 }, &mut Vec::new());
    assert!(exchange.is_empty());
}

#[test]
fn last_price_is_that_of_the_newest_trade() {
    let mut exchange = exchange();
    let mut apply = |id: u64, side: Side, price: i64| {
        let order = NewOrder { id, side, price, quantity: 5, ..NewOrder::default() };
        exchange.apply(Command::New(order), &mut Vec::new());
        (exchange.last_price(0), exchange.last_price(1))
    };
    assert_eq!(apply(1, Side::Buy, 90), (None, None));
    assert_eq!(apply(2, Side::Sell, 90), (Some(90), None), "there is no instrument 1");
    assert_eq!(apply(3, Side::Buy, 80), (Some(90), None));
    assert_eq!(apply(4, Side::Sell, 80), (Some(80), None));
}

#[test]
fn instrument_is_in_auction_until_it_uncrosses() {
    let mut exchange = exchange();
    assert!(!exchange.is_in_auction(0));
    exchange.apply(Command::Auction { instrument: 0 }, &mut Vec::new());
    assert!(exchange.is_in_auction(0) && !exchange.is_in_auction(1), "there is no instrument 1");
    exchange.apply(Command::Uncross { instrument: 0 }, &mut Vec::new());
    assert!(!exchange.is_in_auction(0));
}

#[test]
fn digest_depends_on_every_effective_command() {
    let order = |id, price| Command::New(NewOrder { id, price, quantity: 5, ..NewOrder::default() });
    let digest = |last: Option<Command>| {
        let mut exchange = exchange();
        let commands = [order(1, 9), order(2, 8)].into_iter().chain(last);
        commands.for_each(|command| exchange.apply(command, &mut Vec::new()));
        exchange.digest()
    };
    assert_eq!(digest(None), digest(None));
    assert_eq!(digest(Some(order(3, 0))), digest(None), "a rejected command changes nothing");
    let cancel = Command::Cancel { id: 1, owner: 0 };
    for command in [cancel, Command::Time(3), order(3, 8), Command::Auction { instrument: 0 }] {
        assert_ne!(digest(Some(command)), digest(None), "{command:?}");
    }
}

/// Returns the digest of an exchange with one order, which rests.
fn digest_with(order: NewOrder) -> u64 {
    let mut exchange = exchange();
    exchange.apply(Command::New(order), &mut Vec::new());
    assert_eq!(exchange.open_orders(), 1, "{order:?}");
    exchange.digest()
}

#[test]
fn digest_depends_on_every_field_of_an_order() {
    let limit = NewOrder { id: 1, price: 9, quantity: 5, ..NewOrder::default() };
    let iceberg = NewOrder { display: 2, ..limit };
    let good_till_time = NewOrder { time_in_force: TimeInForce::GoodTillTime, expires_at: 8, ..limit };
    let stop = NewOrder { order_type: OrderType::Stop, stop_price: 150, ..limit };
    let stop_limit = NewOrder { order_type: OrderType::StopLimit, ..stop };
    let orders = [
        limit,
        NewOrder { id: 2, ..limit },
        NewOrder { owner: 1, ..limit },
        NewOrder { side: Side::Sell, ..limit },
        NewOrder { price: 8, ..limit },
        NewOrder { quantity: 6, ..limit },
        NewOrder { post_only: true, ..limit },
        NewOrder { self_trade: SelfTrade::Decrement, ..limit },
        iceberg,
        NewOrder { display: 3, ..iceberg },
        good_till_time,
        NewOrder { expires_at: 9, ..good_till_time },
        stop,
        NewOrder { stop_price: 151, ..stop },
        NewOrder { time_in_force: TimeInForce::FillOrKill, ..stop },
        stop_limit,
        NewOrder { price: 8, ..stop_limit },
    ];
    let digests: HashSet<u64> = orders.into_iter().map(digest_with).collect();
    assert_eq!(digests.len(), orders.len());
}

#[test]
fn digest_ignores_fields_that_an_order_does_not_use() {
    let iceberg = NewOrder { id: 1, price: 9, quantity: 5, display: 2, ..NewOrder::default() };
    assert_eq!(digest_with(NewOrder { expires_at: 8, ..iceberg }), digest_with(iceberg));
    let stop = NewOrder { order_type: OrderType::Stop, stop_price: 150, display: 0, ..iceberg };
    assert_eq!(digest_with(NewOrder { price: 8, ..stop }), digest_with(stop));
}
