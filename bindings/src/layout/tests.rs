use super::*;
use protocol::market::TopOfBook;
use protocol::wire::{OrderId, OrderRequest, OrderStatus};

#[test]
fn an_order_of_zeros_is_a_plain_one() {
    assert_eq!(Order::default().parse(), Ok(OrderRequest::to_venue(0)));
}

#[test]
fn the_codes_are_those_of_the_messages() {
    let new = |order: Order| order.parse().unwrap();
    for (code, wanted) in [(BH_NEW, Operation::New), (BH_MASS_CANCEL, Operation::MassCancel)] {
        assert_eq!(new(Order { operation: code, ..Order::default() }).operation, wanted);
    }
    for (code, wanted) in [(BH_CANCEL, Operation::Cancel), (BH_REPLACE, Operation::Replace)] {
        let order = new(Order { operation: code, target: 7, ..Order::default() });
        assert_eq!((order.operation, order.target), (wanted, 7));
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
fn the_first_field_that_is_wrong_is_named() {
    let plain = Order::default();
    for (order, field) in [
        (Order { operation: 4, ..plain }, "operation"),
        (Order { side: 2, ..plain }, "side"),
        (Order { order_type: 4, ..plain }, "order_type"),
        (Order { time_in_force: 4, ..plain }, "time_in_force"),
        (Order { post_only: 2, ..plain }, "post_only"),
        (Order { self_trade: 5, ..plain }, "self_trade"),
        (Order { condition: 5, ..plain }, "condition"),
        (Order { condition_value: 1, ..plain }, "condition_value"),
        (Order { target: 1, ..plain }, "target"),
        (Order { operation: BH_CANCEL, post_only: 1, ..plain }, "order_type"),
        (Order { reserved: [0, 0, 1, 0, 0], ..plain }, "reserved"),
    ] {
        let said = order.parse().unwrap_err().to_str().unwrap();
        assert!(said.starts_with(field), "{field}: {said}");
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
        let wanted = Report {
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
        assert_eq!(Report::from(&report), wanted);
    }
    let quote = |price, quantity| Some(Quote { price, quantity });
    let touch = TopOfBook { bid: quote(1, 2), offer: None, last: quote(3, 4), trades: 5, auction: true };
    let tick = MarketTick { venue: 6, instrument: 7, version: 8, written: 0, missed: 9, top: touch };
    let wanted = Tick {
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
    assert_eq!(Tick::from_tick(&tick, 10), wanted);
}
