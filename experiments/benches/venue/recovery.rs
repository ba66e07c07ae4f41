//! The time from opening an exchange's journal to taking the next order: `cargo bench -p benches
//! --bench recovery-exchange`.

#[path = "../recovery_table.rs"]
mod recovery_table;

use exchange::{Capacity, Exchange, Instrument};
use journal::{JournalFollower, Writer};
use protocol::session::number_instruction;
use protocol::wire::{Instruction, Operation, Order, OrderId, Side};
use recovery_table::{RecoveryCase, options, table};
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc;
use std::time::{Duration, Instant};
use system::clock::Timebase;
use venue::{ExchangeReplica, MarketSetup, OutputWatermarks, SessionEnd, Trade, TradeTape};

const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
struct NullTape;

impl TradeTape for NullTape {
    fn trade(&mut self, _: &Trade, _: u64) {}
    fn close(&mut self, _: &Exchange) {}
}

fn setup(open: usize) -> MarketSetup {
    let capacity = open + 1000;
    let exchange =
        Exchange::new(&[Instrument::default()], Capacity::for_orders(capacity)).expect("a plain exchange");
    MarketSetup { venue: 0, exchange, instruments: 1, sessions: 1, capacity, sequencer: None }
}

/// After the first `open` orders, eight cancels of the oldest and eight new ones take turns.
fn is_cancel(number: u64, open: u64) -> bool {
    number >= open && ((number - open) / 8).is_multiple_of(2)
}

fn record(number: u64, open: u64) -> Vec<u8> {
    let (strategy, row, first) = ((number % 8) as u16, number / 8, open / 8);
    let mut order = Order::new(OrderId::new(strategy, 0, row), 0);
    (order.request.side, order.request.price) = match number % 2 {
        0 => (Side::Buy, 1000 - (row % 100) as i64),
        _ => (Side::Sell, 1001 + (row % 100) as i64),
    };
    order.request.quantity = 10;
    if is_cancel(number, open) {
        order.request.operation = Operation::Cancel;
        let oldest = (row - first) / 2;
        order.request.target = if oldest < first { oldest } else { first + 1 + 2 * (oldest - first) };
    }
    let mut message = Instruction::Order(order).to_message();
    number_instruction(&mut message, number as u32);
    let words = [2, number].into_iter().chain(message);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The rings of the session. Their cursors are past all records of the log.
struct SessionMemory {
    rings: [AtomicWords; 2],
}

impl SessionMemory {
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
        let report_counts = (0..records).map(|number| 1 + u64::from(is_cancel(number, open)));
        for _ in 0..report_counts.sum() {
            producer.try_push(&[0; 7]).expect("space");
            consumer.try_pop().expect("no fault");
        }
        Self { rings: [orders, reports] }
    }

    fn session(&self, open: usize) -> SessionEnd {
        let [orders, reports] = &self.rings;
        let orders = spsc::Consumer::resume(orders).expect("a ring");
        SessionEnd::new(
            orders,
            spsc::Producer::resume(reports).expect("a ring"),
            None,
            SessionEnd::queue(open),
        )
    }
}

fn replica(open: usize) -> ExchangeReplica {
    ExchangeReplica::new(setup(open), TIME)
}

fn recover(case: RecoveryCase<'_>) -> (Duration, u64) {
    let open = case.open as usize;
    write(&case);
    let session_memory = SessionMemory::new(case.records, case.open);
    let follower = case.followed(|| replica(open)).map(|mut follower| {
        follower.state.confirm_sent(&[u64::MAX]);
        follower
    });
    let started = Instant::now();
    let (replica, reader) = match follower.map(JournalFollower::into_parts) {
        Some((replica, reader)) => (replica, Some(reader)),
        None => (self::replica(open), None),
    };
    let watermarks = OutputWatermarks { touches: vec![0], ..OutputWatermarks::default() };
    let ends = (vec![session_memory.session(open)], NullTape, None);
    let agent =
        replica.promote(reader, (case.folder, &options()), &watermarks, ends).expect("the exchange recovers");
    let elapsed = started.elapsed();
    (elapsed, agent.open_orders() as u64)
}

/// Writes the log, with the snapshot in it.
fn write(case: &RecoveryCase<'_>) {
    let mut writer = Writer::open(case.folder, &options(), |_| {}).expect("a folder");
    for number in 0..case.records {
        writer.append(&record(number, case.open)).expect("space");
        if case.snapshot == Some(number + 1) {
            case.snapshot(replica(case.open as usize), |state| state.confirm_sent(&[u64::MAX]));
        }
    }
    writer.close().expect("written");
}

fn main() {
    table(recover);
}
