//! How long an exchange takes to come back, from the first look at its journal to the state in which it takes the next order.
//!
//! `cargo bench -p exchange --bench recovery`. For each number of open orders and each length of the log: from the whole log, from a snapshot
//! with the whole log behind it, from a snapshot of a few thousand records before the end, and from the state of a spare that has followed
//! all but the last few hundred records. In turns, median of the rounds, with the fastest and the slowest.

use exchange::role::{Close, Estate, ExchangeAgent, Follower, MarketSetup, SessionEnd, Trade};
use exchange::{Capacity, Exchange, Instrument};
use journal::{Durability, Options, Writer};
use protocol::session::number_instruction;
use protocol::wire::{Instruction, Operation, Order, OrderId, Side};
use shm::clock::Timebase;
use shm::memory::{Region, Words};
use shm::ring::spsc;
use std::path::Path;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
/// Bytes of a record of a message with its header.
const RECORD: u64 = 88;
/// As in a run.
const SEGMENT: u64 = 4 << 20;
const BEHIND_SNAPSHOT: u64 = 16_384;
const BEHIND_SPARE: u64 = 400;

struct NoTape;

impl Close for NoTape {
    fn trade(&mut self, _: &Trade, _: u64) {}
    fn close(&mut self, _: &Exchange) {}
}

fn setup(open: usize) -> MarketSetup {
    let room = open + 1000;
    let exchange = Exchange::new(&[Instrument::default()], Capacity::orders(room)).expect("a plain exchange");
    MarketSetup { venue: 0, exchange, instruments: 1, sessions: 1, room, script: None }
}

fn options() -> Options {
    Options { durability: Durability::Process, segment_bytes: SEGMENT, ..Options::default() }
}

/// Whether a record is a cancel: behind the first `open` orders, eight cancels of the oldest and eight new ones take turns. Each of eight
/// strategies has one of the eight.
fn is_cancel(number: u64, open: u64) -> bool {
    number >= open && ((number - open) / 8).is_multiple_of(2)
}

fn record(number: u64, open: u64) -> Vec<u8> {
    let (strategy, row, first) = ((number % 8) as u16, number / 8, open / 8);
    let mut order = Order::new(OrderId::new(strategy, 0, row), 0);
    (order.side, order.price) = match number % 2 {
        0 => (Side::Buy, 1000 - (row % 100) as i64),
        _ => (Side::Sell, 1001 + (row % 100) as i64),
    };
    order.quantity = 10;
    if is_cancel(number, open) {
        order.operation = Operation::Cancel;
        let oldest = (row - first) / 2;
        order.target = if oldest < first { oldest } else { first + 1 + 2 * (oldest - first) };
    }
    let mut message = Instruction::Order(order).to_message();
    number_instruction(&mut message, number as u32);
    let words = [2, number].into_iter().chain(message);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The rings of the session. Everything that the log has went through it.
struct World {
    rings: [Words; 2],
}

impl World {
    fn new(records: u64, open: u64) -> Self {
        let ring = || {
            let words = Region::heap(spsc::ring_words(64, 7)).words();
            spsc::write_header::<7>(&words, 64);
            words
        };
        let (orders, reports) = (ring(), ring());
        let mut producer = spsc::Producer::<7>::attach(&reports).expect("a ring");
        let mut consumer = spsc::Consumer::<7>::attach(&reports).expect("a ring");
        // A cancel has a report of its order and one of its own.
        let given = (0..records).map(|number| 1 + u64::from(is_cancel(number, open)));
        for _ in 0..given.sum() {
            producer.try_push(&[0; 7]).expect("room");
            consumer.try_pop().expect("no fault");
        }
        Self { rings: [orders, reports] }
    }

    fn session(&self, open: usize) -> SessionEnd {
        let [orders, reports] = &self.rings;
        let orders = spsc::Consumer::resume(orders).expect("a ring");
        SessionEnd::new(orders, spsc::Producer::resume(reports).expect("a ring"), None, open)
    }
}

/// What it goes on from.
#[derive(Clone, Copy)]
enum From {
    Start,
    Spare,
}

fn comes_back(world: &World, folder: &Path, open: usize, from: From) -> (Duration, u64) {
    let follower = match from {
        From::Start => None,
        From::Spare => {
            let mut follower = Follower::begin(folder, setup(open)).expect("a snapshot or a log");
            let end = journal::recover(folder, |_| {}).expect("a journal").last;
            while follower.last() + BEHIND_SPARE < end {
                let most = (end - BEHIND_SPARE - follower.last()).min(512) as usize;
                follower.follow(most, TIME).expect("records");
            }
            follower.were_sent(&[u64::MAX]);
            Some(follower)
        }
    };
    let begun = Instant::now();
    let agent = match follower {
        Some(follower) => ExchangeAgent::behind(follower, vec![world.session(open)], NoTape),
        None => ExchangeAgent::new(setup(open), vec![world.session(open)], NoTape),
    };
    let estate = Estate { touches: vec![0], ..Estate::default() };
    let agent = agent.journalled(folder, &options(), TIME, &estate).expect("it comes back");
    let took = begun.elapsed();
    let orders = agent.open_orders() as u64;
    drop(agent);
    (took, orders)
}

/// Writes the log; a snapshot behind those records.
fn write(folder: &Path, records: u64, open: usize, snapshot: Option<u64>) {
    let mut writer = Writer::open(folder, &options(), |_| {}).expect("a folder");
    for number in 0..records {
        writer.append(&record(number, open as u64)).expect("room");
        if snapshot == Some(number + 1) {
            let mut follower = Follower::begin(folder, setup(open)).expect("a log");
            while follower.follow(4096, TIME).expect("records") > 0 {}
            follower.were_sent(&[u64::MAX]);
            follower.snapshot().expect("room for it");
        }
    }
    writer.close().expect("written");
}

fn main() {
    println!(
        "open orders  log       from                            median    fastest   slowest   open then"
    );
    for (open, tail) in [(1_000, 64 << 20), (100_000, 64_u64 << 20)] {
        let records = open as u64 + tail / RECORD;
        let cases = [
            ("the whole log", None, From::Start),
            ("a snapshot, 64 MB behind it", Some(open as u64), From::Start),
            ("a snapshot, 16,384 records behind it", Some(records - BEHIND_SNAPSHOT), From::Start),
            ("a spare, 400 records behind", Some(records - BEHIND_SNAPSHOT), From::Spare),
        ];
        let mut times = vec![Vec::new(); cases.len()];
        let mut orders = 0;
        for _ in 0..ROUNDS {
            for (times, (_, snapshot, from)) in times.iter_mut().zip(&cases) {
                let folder = tempfile::tempdir().expect("a folder");
                write(folder.path(), records, open, *snapshot);
                let world = World::new(records, open as u64);
                let (took, then) = comes_back(&world, folder.path(), open, *from);
                times.push(took);
                orders = then;
            }
        }
        for (mut times, (name, ..)) in times.into_iter().zip(cases) {
            times.sort();
            let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            let (median, fastest, slowest) = (times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
            println!(
                "{open:<12} {:<9} {name:<36} {:>9} {:>9} {:>9} {orders:>9}",
                format!("{} MB", (records * RECORD) >> 20),
                ms(median),
                ms(fastest),
                ms(slowest)
            );
        }
    }
}
