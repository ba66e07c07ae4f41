//! Every reject reason: the command is rejected with it and changes nothing.

use crate::naive::Naive;
use RejectReason::*;
use exchange::{
    Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, RejectReason, SelfTrade, Side,
    TimeInForce,
};

fn limit(id: u64, side: Side, price: i64, quantity: u64) -> NewOrder {
    NewOrder { id, owner: id as u32, side, price, quantity, ..NewOrder::default() }
}

/// One with ticks of 5 and lots of 10; one with prices of which four times does not fit 64 bits.
fn instruments() -> [Instrument; 2] {
    let coarse = Instrument {
        tick: 5,
        lot: 10,
        price_low: 10,
        price_high: 1000,
        max_quantity: 100,
        reference_price: 10,
    };
    let expensive = Instrument {
        tick: 1,
        lot: 1,
        price_low: 1 << 61,
        price_high: 1 << 62,
        max_quantity: 100,
        reference_price: 1 << 62,
    };
    [coarse, expensive]
}

fn setup_commands() -> Vec<Command> {
    let stop = NewOrder { order_type: OrderType::Stop, stop_price: 500, ..limit(2, Side::Buy, 0, 10) };
    vec![
        Command::New(limit(1, Side::Sell, 50, 20)),
        Command::New(stop),
        Command::Time(100),
        Command::New(NewOrder { post_only: true, ..limit(3, Side::Buy, 40, 10) }),
    ]
}

fn new(change: impl Fn(&mut NewOrder)) -> Command {
    let mut order = limit(9, Side::Buy, 20, 20);
    change(&mut order);
    Command::New(order)
}

fn rejected_commands() -> Vec<(Command, RejectReason)> {
    let replace = |id, owner, price, quantity| Command::Replace { id, owner, price, quantity };
    let mut all = vec![
        (new(|order| order.instrument = 2), UnknownInstrument),
        (Command::MassCancel { owner: 1, instrument: Some(2) }, UnknownInstrument),
        (Command::Auction { instrument: u16::MAX }, UnknownInstrument),
        (Command::Uncross { instrument: 2 }, UnknownInstrument),
        (Command::Uncross { instrument: 0 }, WrongPhase),
        (new(|order| order.id = 1), DuplicateId),
        (new(|order| order.id = 2), DuplicateId),
        (Command::Cancel { id: 9, owner: 9 }, UnknownOrder),
        (Command::Cancel { id: 1, owner: 2 }, UnknownOrder),
        (Command::Cancel { id: u64::MAX, owner: 0 }, UnknownOrder),
        (replace(9, 9, 50, 10), UnknownOrder),
        (replace(1, 9, 50, 10), UnknownOrder),
        (replace(2, 2, 50, 10), BadCombination),
        (replace(1, 1, 50, 0), BadQuantity),
        (replace(1, 1, 50, 15), BadQuantity),
        (replace(1, 1, 50, 110), BadQuantity),
        (replace(1, 1, 0, 10), BadPrice),
        (replace(1, 1, -5, 10), BadPrice),
        (replace(1, 1, 51, 10), BadPrice),
        (replace(3, 3, 50, 10), WouldTrade),
        (new(|order| order.quantity = 0), BadQuantity),
        (new(|order| order.quantity = 15), BadQuantity),
        (new(|order| order.quantity = 110), BadQuantity),
        (new(|order| order.quantity = u64::MAX), BadQuantity),
        (new(|order| order.display = 5), BadQuantity),
        (new(|order| order.display = 30), BadQuantity),
        (new(|order| order.minimum = 30), BadQuantity),
        (new(|order| order.price = 0), BadPrice),
        (new(|order| order.price = -20), BadPrice),
        (new(|order| order.price = 5), BadPrice),
        (new(|order| order.price = 22), BadPrice),
        (new(|order| order.price = 1005), BadPrice),
        (new(|order| order.price = i64::MAX), BadPrice),
        (new(|order| order.price = i64::MIN), BadPrice),
        (new(|order| order.order_type = OrderType::StopLimit), BadPrice),
        (new(|order| (order.instrument, order.price, order.quantity) = (1, 1 << 62, 4)), NotionalOverflow),
        (new(|order| (order.instrument, order.price, order.quantity) = (1, 1 << 61, 8)), NotionalOverflow),
        (new(|order| (order.post_only, order.price) = (true, 50)), WouldTrade),
        (new(|order| (order.time_in_force, order.expires_at) = (TimeInForce::GoodTillTime, 100)), Expired),
        (new(|order| (order.time_in_force, order.expires_at) = (TimeInForce::GoodTillTime, 0)), Expired),
        (new(|order| (order.post_only, order.minimum) = (true, 10)), BadCombination),
    ];
    for (order_type, time_in_force, post_only, display, minimum) in [
        (OrderType::Market, TimeInForce::GoodTillTime, false, 0, 0),
        (OrderType::Market, TimeInForce::GoodTillCancel, true, 0, 0),
        (OrderType::Market, TimeInForce::GoodTillCancel, false, 10, 0),
        (OrderType::Stop, TimeInForce::GoodTillCancel, true, 0, 0),
        (OrderType::Stop, TimeInForce::GoodTillCancel, false, 10, 0),
        (OrderType::Stop, TimeInForce::GoodTillCancel, false, 0, 10),
        (OrderType::StopLimit, TimeInForce::GoodTillCancel, true, 0, 0),
        (OrderType::StopLimit, TimeInForce::GoodTillCancel, false, 0, 10),
        (OrderType::Limit, TimeInForce::ImmediateOrCancel, true, 0, 0),
        (OrderType::Limit, TimeInForce::ImmediateOrCancel, false, 10, 0),
        (OrderType::Limit, TimeInForce::FillOrKill, true, 0, 0),
        (OrderType::Limit, TimeInForce::FillOrKill, false, 10, 0),
        (OrderType::Limit, TimeInForce::FillOrKill, false, 0, 10),
    ] {
        let order = NewOrder {
            order_type,
            time_in_force,
            post_only,
            display,
            minimum,
            stop_price: 20,
            expires_at: 200,
            self_trade: SelfTrade::Decrement,
            ..limit(9, Side::Buy, 20, 20)
        };
        all.push((Command::New(order), BadCombination));
    }
    all
}

#[test]
fn rejected_command_reports_reason_and_changes_nothing() {
    let mut engine = Exchange::new(&instruments(), Capacity::for_orders(8)).unwrap();
    let mut naive = Naive::new(&instruments(), Capacity::for_orders(8));
    let mut events = Vec::new();
    for command in setup_commands() {
        engine.apply(command, &mut events);
        naive.apply(command);
    }
    assert_eq!(engine.open_orders(), 3, "{events:?}");
    let digest = engine.digest();
    for (command, reason) in rejected_commands() {
        let id = match command {
            Command::New(order) => order.id,
            Command::Cancel { id, .. } | Command::Replace { id, .. } => id,
            _ => 0,
        };
        let expected = vec![Event::Rejected { id, reason }];
        events.clear();
        engine.apply(command, &mut events);
        assert_eq!(events, expected, "{command:?}");
        assert_eq!(naive.apply(command), expected, "{command:?}, of the naive engine");
        assert_eq!(engine.digest(), digest, "{command:?} changed something");
        engine.check().unwrap();
    }
}
