//! A short notation for commands and events.
//!
//! Commands: `B1 5@101` buys 5 at 101 as order 1, `S2 5` sells 5 at any price; then `ioc`, `fok`,
//! `post`, `min=3`, `show=2`, `own=7`, `stop=105`, `until=9`, `newest`, `oldest`, `both`,
//! `decrement`. `x1` cancels, `r1 5@102` replaces, `mass 7`, `time 9`, `auction`, `uncross`.
//! Events: `1+` accepted, `2>1 3@101` order 2 took 3 from order 1 at 101, `1- 3 Immediate`
//! cancelled with 3 open, `1! WouldTrade` rejected, `1= 5@102` replaced, `1~ 5` reduced to 5, `1* `
//! triggered, `1t 5` expired, `uncrossed 5@101`.

use exchange::{Command, Event, NewOrder, OrderType, SelfTrade, Side, TimeInForce};

/// Returns the commands of a line, which are separated by commas.
pub fn commands(line: &str) -> Vec<Command> {
    line.split(',').map(str::trim).filter(|text| !text.is_empty()).map(command).collect()
}

/// Returns events in the notation, separated by commas.
pub fn describe(events: &[Event]) -> String {
    events.iter().map(show).collect::<Vec<_>>().join(", ")
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
