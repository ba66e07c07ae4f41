//! How long the engine's orchestrator takes to recover, from opening its journal to the state in
//! which it takes the next order.
//!
//! `cargo bench -p benches --bench recovery-engine`.

#[path = "../recovery_table.rs"]
mod recovery_table;

use journal::Writer;
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Input, OutputWatermarks, Outputs, Replica};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::sender::Sender;
use protocol::stamps::Stamps;
use protocol::wire::{Order, OrderId, OrderRequest, Report, Side};
use recovery_table::{RecoveryCase, options, table};
use shm::memory::Region;
use shm::ring::spsc;
use std::time::{Duration, Instant};
use system::work::TimedWork;

const STRATEGIES: u64 = 8;

const fn max_open(open: u64) -> u64 {
    open / STRATEGIES + 64
}

fn replica(open: u64) -> Replica {
    let setup = RiskSetup::open_orders(STRATEGIES as usize, 1, max_open(open));
    Replica::new(Core::new(&setup).expect("no limits"), Stamps::All)
}

/// Returns the row of the order that a record reports on; `None` for a new order. After the first
/// `open` orders, reports of the eight oldest orders and eight new ones take turns, one of each
/// strategy.
fn reported(number: u64, open: u64) -> Option<u64> {
    let turn = number.checked_sub(open)? / STRATEGIES;
    turn.is_multiple_of(2).then_some(turn / 2)
}

fn input(number: u64, open: u64) -> Input {
    let strategy = (number % STRATEGIES) as u16;
    let side = if strategy.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let order = |row| {
        let order = Order::new(OrderId::new(strategy, 0, row), 0);
        OrderRequest { side, price: 100, quantity: 10, ..order.request }.with_id(order.id)
    };
    if let Some(row) = reported(number, open) {
        return Input::Report {
            gateway: Some(GatewayIndex(0)),
            message: Report::full_fill(&order(row)).to_message(),
        };
    }
    let new = number.checked_sub(open).map(|later| later / STRATEGIES / 2);
    let row = new.map_or(number / STRATEGIES, |new| open / STRATEGIES + new);
    Input::Order { from: Some(StrategyIndex(strategy)), message: order(row).to_message() }
}

/// Returns the watermarks of an orchestrator whose outputs are all sent.
fn watermarks(records: u64, open: u64) -> OutputWatermarks {
    let reports = (0..records).filter(|number| reported(*number, open).is_some()).count() as u64;
    let orders = records - reports;
    let returned = |strategy| {
        let of = (strategy..records).step_by(STRATEGIES as usize);
        of.filter(|number| reported(*number, open).is_some()).count() as u64
    };
    OutputWatermarks {
        returns_stamped: reports,
        others_logged: 2 * orders + reports,
        sent: vec![orders].into(),
        returned: (0..STRATEGIES).map(returned).collect(),
    }
}

/// Returns the rings through which all outputs went.
fn outputs(watermarks: &OutputWatermarks, open: u64) -> Outputs {
    let ring = |messages: u64| {
        let words = Region::heap(spsc::ring_words(64, 7)).words();
        spsc::write_header::<7>(&words, 64);
        let mut producer = spsc::Producer::<7>::attach(&words).expect("a ring");
        let mut consumer = spsc::Consumer::<7>::attach(&words).expect("a ring");
        for _ in 0..messages {
            producer.try_push(&[0; 7]).expect("room");
            consumer.try_pop().expect("no fault");
        }
        spsc::Producer::resume(&words).expect("a ring")
    };
    let path = |messages: &u64| Sender::bounded(ring(*messages), None, max_open(open) as usize);
    let returns = watermarks.returned.iter().map(path).collect();
    Outputs::new(vec![Sender::new(ring(0), None, 64)], returns, TimedWork::new(0))
}

fn comes_back(case: RecoveryCase<'_>) -> (Duration, u64) {
    write(&case);
    let watermarks = watermarks(case.records, case.open);
    let outputs = outputs(&watermarks, case.open);
    let follower = case.followed(|| replica(case.open)).map(|mut follower| {
        follower.state.confirm(&watermarks);
        follower
    });
    let begun = Instant::now();
    let (replica, reader) = match follower {
        Some(follower) => {
            let (replica, reader) = follower.into_parts();
            (replica, Some(reader))
        }
        None => (self::replica(case.open), None),
    };
    let promoted = replica.promote(reader, (case.folder, &options()), watermarks, outputs, 1);
    let (successor, _) = promoted.expect("it is promoted");
    let took = begun.elapsed();
    (took, successor.open_orders())
}

/// Writes the log, with the snapshot in it.
fn write(case: &RecoveryCase<'_>) {
    let mut writer = Writer::open(case.folder, &options(), |_| {}).expect("a folder");
    for number in 0..case.records {
        input(number, case.open).encode(number, |payload| writer.append(payload)).expect("room");
        if case.snapshot == Some(number + 1) {
            let gone = watermarks(number + 1, case.open);
            case.snapshot(replica(case.open), |state| state.confirm(&gone));
        }
    }
    writer.close().expect("written");
}

fn main() {
    table(comes_back);
}
