use super::*;
use protocol::market::TopOfBook;
use protocol::wire::{OrderId, OrderRequest, OrderStatus};

#[test]
fn zeroed_order_has_default_terms() {
    assert_eq!(Order::default().parse(), Ok(OrderRequest::to_venue(0)));
}

#[test]
fn codes_match_wire_messages() {
    let new = |order: Order| order.parse().unwrap();
    for (code, expected) in [(BH_NEW, Operation::New), (BH_MASS_CANCEL, Operation::MassCancel)] {
        assert_eq!(new(Order { operation: code, ..Order::default() }).operation, expected);
    }
    for (code, expected) in [(BH_CANCEL, Operation::Cancel), (BH_REPLACE, Operation::Replace)] {
        let order = new(Order { operation: code, target: 7, ..Order::default() });
        assert_eq!((order.operation, order.target), (expected, 7));
    }
    assert_eq!(new(Order { side: BH_SELL, ..Order::default() }).side, Side::Sell);
    let terms = |order: Order| new(order).terms;
    let types = [BH_LIMIT, BH_MARKET, BH_STOP, BH_STOP_LIMIT];
    assert_eq!(
        types.map(|order_type| terms(Order { order_type, ..Order::default() }).order_type),
        [OrderType::Limit, OrderType::Market, OrderType::Stop, OrderType::StopLimit]
    );
    let times = [BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL, BH_GOOD_TILL_TIME];
    assert_eq!(
        times.map(|time_in_force| terms(Order { time_in_force, ..Order::default() }).time_in_force),
        [
            TimeInForce::GoodTillCancel,
            TimeInForce::ImmediateOrCancel,
            TimeInForce::FillOrKill,
            TimeInForce::GoodTillTime
        ]
    );
    let trades = [BH_ALLOW, BH_CANCEL_NEWEST, BH_CANCEL_OLDEST, BH_CANCEL_BOTH, BH_DECREMENT];
    assert_eq!(
        trades.map(|self_trade| terms(Order { self_trade, ..Order::default() }).self_trade),
        SelfTrade::ALL
    );
    let conditions = [BH_STOP_PRICE, BH_DISPLAY, BH_MINIMUM, BH_LIFE];
    assert_eq!(
        conditions
            .map(|condition| terms(Order { condition, condition_value: 9, ..Order::default() }).condition),
        [
            OrderCondition::StopPrice(9),
            OrderCondition::Display(9),
            OrderCondition::Minimum(9),
            OrderCondition::Lifetime(9)
        ]
    );
    assert!(terms(Order { post_only: 1, ..Order::default() }).post_only);
}

#[test]
fn first_invalid_field_is_named() {
    let default_order = Order::default();
    for (order, field) in [
        (Order { operation: 4, ..default_order }, "operation"),
        (Order { side: 2, ..default_order }, "side"),
        (Order { order_type: 4, ..default_order }, "order_type"),
        (Order { time_in_force: 4, ..default_order }, "time_in_force"),
        (Order { post_only: 2, ..default_order }, "post_only"),
        (Order { self_trade: 5, ..default_order }, "self_trade"),
        (Order { condition: 5, ..default_order }, "condition"),
        (Order { condition_value: 1, ..default_order }, "condition_value"),
        (Order { target: 1, ..default_order }, "target"),
        (Order { operation: BH_CANCEL, post_only: 1, ..default_order }, "order_type"),
        (Order { reserved: [0, 0, 1, 0, 0], ..default_order }, "reserved"),
    ] {
        let message = order.parse().unwrap_err().to_str().unwrap();
        assert!(message.starts_with(field), "{field}: {message}");
    }
}

#[test]
fn reports_and_ticks_keep_their_values() {
    let statuses = [
        BH_FILLED,
        BH_REJECTED,
        BH_CANCELLED,
        BH_ACCEPTED,
        BH_PARTIALLY_FILLED,
        BH_REFUSED,
        BH_REPLACED,
        BH_EXPIRED,
        BH_TRIGGERED,
        BH_RESTATED,
        BH_DONE,
    ];
    for (status, code) in OrderStatus::ALL.into_iter().zip(statuses) {
        let report = wire::Report {
            id: OrderId::new(3, 2, 41),
            venue: 1,
            instrument: 5,
            status,
            reason: 6,
            side: Side::Sell,
            price: -7,
            filled: 8,
            leaves: 9,
            cumulative: 10,
            number: 11,
            is_last: true,
        };
        let expected = Report {
            sequence: 41,
            price: -7,
            filled: 8,
            leaves: 9,
            cumulative: 10,
            venue: 1,
            instrument: 5,
            status: code,
            reason: 6,
            side: BH_SELL,
            number: 11,
            is_last: 1,
            reserved: [0; 7],
        };
        assert_eq!(Report::from(&report), expected);
    }
    let quote = |price, quantity| Some(Quote { price, quantity });
    let touch = TopOfBook { bid: quote(1, 2), offer: None, last: quote(3, 4), trades: 5, auction: true };
    let tick = MarketTick { venue: 6, instrument: 7, version: 8, written: 0, missed: 9, top: touch };
    let expected = Tick {
        version: 8,
        written_ns: 10,
        missed: 9,
        trades: 5,
        bid_price: 1,
        bid_quantity: 2,
        last_price: 3,
        last_quantity: 4,
        venue: 6,
        instrument: 7,
        auction: 1,
        ..Tick::default()
    };
    assert_eq!(Tick::from_tick(&tick, 10), expected);
}
