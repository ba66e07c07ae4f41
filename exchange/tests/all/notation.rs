//! Unit tests of the documented rules, in a short notation for commands and events.
//!
//! Commands: `B1 5@101` buys 5 at 101 as order 1, `S2 5` sells 5 at any price; then `ioc`, `fok`,
//! `post`, `min=3`, `show=2`, `own=7`, `stop=105`, `until=9`, `newest`, `oldest`, `both`,
//! `decrement`. `x1` cancels, `r1 5@102` replaces, `mass 7`, `time 9`, `auction`, `uncross`.
//! Events: `1+` accepted, `2>1 3@101` order 2 took 3 from order 1 at 101, `1- 3 Immediate`
//! cancelled with 3 open, `1! WouldTrade` rejected, `1= 5@102` replaced, `1~ 5` reduced to 5, `1* `
//! triggered, `1t 5` expired, `uncrossed 5@101`.

mod allocations;
mod auctions;
mod inconsistent;
mod orders;
mod rejects;
mod self_trade;
mod stopped;

use crate::{
    Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, SelfTrade, Side, TimeInForce,
};

/// An exchange whose instrument has a tick of 1, a lot of 1, a band from 1 to 1000 and a capacity
/// of 16 orders.
fn exchange() -> Exchange {
    let instrument = Instrument {
        price_high: 1_000,
        max_quantity: 1 << 59,
        reference_price: 100,
        ..Instrument::default()
    };
    Exchange::new(&[instrument], Capacity::for_orders(16)).expect("a valid configuration")
}

/// Applies lines of comma-separated commands to an empty exchange. Returns the last line's events.
fn last(lines: &str) -> String {
    let mut exchange = exchange();
    lines.lines().map(|line| step(&mut exchange, line)).last().expect("a line")
}

/// Applies the commands of a line, and checks the exchange after each. Returns their events.
fn step(exchange: &mut Exchange, line: &str) -> String {
    let mut said = Vec::new();
    for text in line.split(',') {
        let mut events = Vec::new();
        exchange.apply(command(text.trim()), &mut events);
        exchange.check().unwrap_or_else(|found| panic!("{text}: {found}"));
        said.extend(events.iter().map(show));
    }
    said.join(", ")
}

fn command(text: &str) -> Command {
    let mut words = text.split_whitespace();
    let first = words.next().expect("a word");
    let mut number = || words.next().map_or(0, |word| word.parse().expect("a number"));
    match first {
        "auction" => return Command::Auction { instrument: 0 },
        "uncross" => return Command::Uncross { instrument: 0 },
        "time" => return Command::Time(number()),
        "mass" => return Command::MassCancel { owner: number() as u32, instrument: None },
        _ => {}
    }
    let (letter, id) = first.split_at(1);
    let id = id.parse().expect("an id");
    if letter == "x" {
        return Command::Cancel { id, owner: number() as u32 };
    }
    let amount = words.next().expect("a quantity");
    let (quantity, price) = amount.split_once('@').unwrap_or((amount, ""));
    let quantity = quantity.parse().expect("a quantity");
    let limit = price.parse().ok();
    if letter == "r" {
        let owner =
            words.next().map_or(0, |word| word.strip_prefix("own=").expect("own").parse().expect("one"));
        return Command::Replace { id, owner, price: limit.expect("a price"), quantity };
    }
    let mut order = NewOrder { id, quantity, price: limit.unwrap_or(0), ..NewOrder::default() };
    order.side = if letter == "B" { Side::Buy } else { Side::Sell };
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, "0"));
        let value: u64 = value.parse().expect("a number");
        match name {
            "ioc" => order.time_in_force = TimeInForce::ImmediateOrCancel,
            "fok" => order.time_in_force = TimeInForce::FillOrKill,
            "until" => {
                order.time_in_force = TimeInForce::GoodTillTime;
                order.expires_at = value;
            }
            "post" => order.post_only = true,
            "min" => order.minimum = value,
            "show" => order.display = value,
            "own" => order.owner = value as u32,
            "stop" => order.stop_price = value as i64,
            "newest" => order.self_trade = SelfTrade::CancelNewest,
            "oldest" => order.self_trade = SelfTrade::CancelOldest,
            "both" => order.self_trade = SelfTrade::CancelBoth,
            "decrement" => order.self_trade = SelfTrade::Decrement,
            _ => panic!("{word}?"),
        }
    }
    order.order_type = match (limit.is_some(), text.contains("stop=")) {
        (true, false) => OrderType::Limit,
        (false, false) => OrderType::Market,
        (false, true) => OrderType::Stop,
        (true, true) => OrderType::StopLimit,
    };
    Command::New(order)
}

fn show(event: &Event) -> String {
    match *event {
        Event::Accepted { id, .. } => format!("{id}+"),
        Event::Rejected { id, reason } => format!("{id}! {reason:?}"),
        Event::Trade { maker, taker, price, quantity, .. } => format!("{taker}>{maker} {quantity}@{price}"),
        Event::Cancelled { id, leaves, reason, .. } => format!("{id}- {leaves} {reason:?}"),
        Event::Expired { id, leaves, .. } => format!("{id}t {leaves}"),
        Event::Replaced { id, price, leaves, .. } => format!("{id}= {leaves}@{price}"),
        Event::Reduced { id, leaves } => format!("{id}~ {leaves}"),
        Event::Triggered { id } => format!("{id}*"),
        Event::Uncrossed { price, volume, .. } => format!("uncrossed {volume}@{price}"),
    }
}
