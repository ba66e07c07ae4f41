//! The loads: the commands that fill the book, and those that are timed.

use exchange::book_file;
use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, Side, TimeInForce};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// A load of the matching engine: the commands that it processes.
pub struct Load {
    pub instrument: Instrument,
    pub capacity: Capacity,
    /// Commands that prepare the book; not timed.
    pub before: Vec<Command>,
    /// Commands that are timed.
    pub timed: Vec<Command>,
    /// Number of operations that the timed commands count as.
    pub operations: usize,
    /// Number of rounds in which the load is measured.
    pub rounds: usize,
}

type Make = fn() -> Load;

/// All loads of the matching engine's benchmark, by name.
pub const ALL: &[(&str, Make)] = &[
    ("mixed_1k", || mixed(1_000, 300)),
    ("mixed_10k_wide", || mixed(10_000, 20_000)),
    ("mixed_100k", || mixed(100_000, 3_000)),
    ("recorded_flow", recorded),
    ("add_10k", add),
    ("sweep_100_levels", sweep),
    ("new_best_far_away", new_best_far_away),
    ("cancel_newest_of_100", || cancel(100, false)),
    ("cancel_newest_of_1k", || cancel(1_000, false)),
    ("cancel_newest_of_10k", || cancel(10_000, false)),
    ("cancel_newest_of_100k", || cancel(100_000, false)),
    ("cancel_newest_of_1m", || cancel(1_000_000, false)),
    ("cancel_any_of_100", || cancel(100, true)),
    ("cancel_any_of_10k", || cancel(10_000, true)),
    ("cancel_any_of_1m", || cancel(1_000_000, true)),
];

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Around 0, most within a third of `spread`, all within it.
    fn around(&mut self, spread: u64) -> i64 {
        (0..4).map(|_| self.below(spread / 2 + 1) as i64).sum::<i64>() - spread as i64
    }
}

const MIDDLE: i64 = 1_000_000;

fn limit(id: u64, side: Side, price: i64, quantity: u64) -> NewOrder {
    NewOrder { id, side, price, quantity, ..NewOrder::default() }
}

fn instrument() -> Instrument {
    Instrument {
        price_high: 1 << 22,
        max_quantity: 1 << 30,
        reference_price: MIDDLE,
        ..Instrument::default()
    }
}

/// exchange-core's mix: 9 % new orders, 3 % immediate or cancel, 6 % cancels and 82 % moves of
/// `orders` open orders, with prices up to `spread` ticks from the middle.
fn mixed(orders: usize, spread: u64) -> Load {
    let capacity = Capacity { orders: 4 * orders, levels: 8 * orders };
    let mut exchange = Exchange::new(&[instrument()], capacity).expect("a valid configuration");
    let mut open: Vec<u64> = Vec::new();
    let mut positions: HashMap<u64, usize> = HashMap::new();
    let mut draw = Draw(7);
    let (mut before, mut timed) = (Vec::new(), Vec::new());
    let mut next = 0;
    let mut sides: HashMap<u64, Side> = HashMap::new();
    while timed.len() < 400_000 {
        let filling = timed.is_empty() && open.len() < orders;
        let (percent, buy) = (draw.below(100), draw.below(2) == 0);
        let side = if buy { Side::Buy } else { Side::Sell };
        // Bids mostly below the middle and offers above it, so that some cross.
        let offset = (draw.around(spread).abs() - spread as i64 / 50) * if buy { -1 } else { 1 };
        let quantity = 1 + draw.below(100);
        let chosen = |draw: &mut Draw| open[draw.below(open.len() as u64) as usize];
        let command = if filling || open.len() < orders / 2 || percent < 9 {
            next += 1;
            sides.insert(next, side);
            Command::New(limit(next, side, MIDDLE + offset, quantity))
        } else if percent < 12 {
            next += 1;
            let order = limit(next, side, MIDDLE - offset, quantity);
            Command::New(NewOrder { time_in_force: TimeInForce::ImmediateOrCancel, ..order })
        } else if percent < 18 {
            Command::Cancel { id: chosen(&mut draw), owner: 0 }
        } else {
            let id = chosen(&mut draw);
            let offset = offset.abs() * if sides[&id] == Side::Buy { -1 } else { 1 };
            Command::Replace { id, owner: 0, price: MIDDLE + offset, quantity }
        };
        let mut events = Vec::new();
        exchange.apply(command, &mut events);
        let mut closed = Vec::new();
        for event in &events {
            match *event {
                Event::Trade { maker, taker, maker_leaves, taker_leaves, .. } => {
                    closed.extend((maker_leaves == 0).then_some(maker));
                    closed.extend((taker_leaves == 0).then_some(taker));
                }
                Event::Cancelled { id, .. } => closed.push(id),
                Event::Rejected { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
        if let Command::New(order) = command {
            positions.insert(order.id, open.len());
            open.push(order.id);
        }
        for id in closed {
            if let Some(position) = positions.remove(&id) {
                open.swap_remove(position);
                if let Some(&moved) = open.get(position) {
                    positions.insert(moved, position);
                }
            }
        }
        if filling { before.push(command) } else { timed.push(command) }
    }
    let operations = timed.len();
    Load { instrument: instrument(), capacity, before, timed, operations, rounds: 9 }
}

fn recorded() -> Load {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/coinbase-2016-03-12");
    let open = |name| BufReader::new(File::open(folder.join(name)).expect("the data is there"));
    let before = book_file::opening_book(open("opening_book.csv"), 0, 0, 10_000).expect("a book");
    let text = std::fs::read_to_string(folder.join("flow.csv")).expect("the data is there");
    let timed: Vec<Command> = text.lines().skip(1).map(recorded_command).collect();
    let instrument = Instrument { price_high: 1 << 40, ..Instrument::default() };
    let operations = timed.len();
    let before = before.into_iter().map(Command::New).collect();
    Load { instrument, capacity: Capacity::for_orders(16_384), before, timed, operations, rounds: 41 }
}

/// A line of the recorded flow, which is known and trusted.
fn recorded_command(line: &str) -> Command {
    let values: Vec<&str> = line.split(',').collect();
    let number = |at: usize| values[at].parse::<u64>().expect("a number");
    if values[2] == "cancel" {
        return Command::Cancel { id: number(3), owner: 0 };
    }
    let side = if values[4] == "B" { Side::Buy } else { Side::Sell };
    if values[5] == "limit" {
        return Command::New(limit(number(3), side, number(7) as i64, number(8)));
    }
    let market = limit(number(3), side, 0, number(8));
    let time_in_force = TimeInForce::ImmediateOrCancel;
    Command::New(NewOrder { order_type: OrderType::Market, time_in_force, ..market })
}

fn add() -> Load {
    let mut draw = Draw(5);
    let timed: Vec<Command> = (1..=10_000)
        .map(|id: u64| {
            let side = if id.is_multiple_of(2) { Side::Buy } else { Side::Sell };
            let offset = 1 + draw.below(500) as i64;
            Command::New(limit(id, side, MIDDLE + if id.is_multiple_of(2) { -offset } else { offset }, 10))
        })
        .collect();
    let capacity = Capacity::for_orders(16_384);
    Load { instrument: instrument(), capacity, before: vec![], operations: timed.len(), timed, rounds: 41 }
}

/// Orders that each trade with 100 levels of one order, which are refilled in between.
fn sweep() -> Load {
    let mut timed = Vec::new();
    let mut id = 0;
    for _ in 0..500 {
        for level in 0..100 {
            id += 1;
            timed.push(Command::New(limit(id, Side::Sell, MIDDLE + level, 10)));
        }
        id += 1;
        timed.push(Command::New(limit(id, Side::Buy, MIDDLE + 100, 1_000)));
    }
    let capacity = Capacity::for_orders(1_024);
    Load { instrument: instrument(), capacity, before: vec![], operations: 500, timed, rounds: 21 }
}

/// A book of 4,000 levels; bids far above them come and go.
fn new_best_far_away() -> Load {
    let before = (1..=4_000).map(|n| Command::New(limit(n, Side::Buy, MIDDLE / 2 + n as i64, 10))).collect();
    let mut timed = Vec::new();
    for n in 0..20_000u64 {
        timed.push(Command::New(limit(10_000 + n, Side::Buy, MIDDLE + (n % 7) as i64, 1)));
        timed.push(Command::Cancel { id: 10_000 + n, owner: 0 });
    }
    let capacity = Capacity::for_orders(8_192);
    Load { instrument: instrument(), capacity, before, operations: timed.len(), timed, rounds: 9 }
}

/// Cancels, each followed by a new order, of `orders` orders: of any, or of the newest hundred.
fn cancel(orders: u64, any: bool) -> Load {
    let mut draw = Draw(11);
    let mut order = |id: u64| {
        let side = if id.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        let offset = 1 + draw.below(500) as i64;
        limit(id, side, MIDDLE + if id.is_multiple_of(2) { -offset } else { offset }, 10)
    };
    let before: Vec<Command> = (0..orders).map(|id| Command::New(order(id))).collect();
    let mut open: Vec<u64> = (0..orders).collect();
    let mut timed = Vec::new();
    let mut chooser = Draw(13);
    for next in orders..orders + 100_000 {
        let candidates = if any { orders } else { orders.min(100) };
        let position = orders - 1 - chooser.below(candidates);
        timed.push(Command::Cancel { id: open[position as usize], owner: 0 });
        timed.push(Command::New(order(next)));
        open[position as usize] = next;
    }
    let capacity = Capacity { orders: orders as usize + 1, levels: 2_000 };
    let operations = timed.len();
    Load { instrument: instrument(), capacity, before, timed, operations, rounds: 5 }
}
