//! How long the engine's orchestrator takes to come back, from the first look at its journal to the state in which it takes the next
//! order.
//!
//! `cargo bench -p orchestrator --bench recovery`.

#[path = "../../journal/benches/comebacks.rs"]
mod comebacks;

use comebacks::{Case, options, table};
use journal::Writer;
use orchestrator::risk::RiskSetup;
use orchestrator::work::Work;
use orchestrator::{Ends, Estate, Event, Inbox, Mute, Orchestrator, ReturnPath, Shadow};
use protocol::stamps::Stamps;
use protocol::wire::{Order, OrderId, OrderStatus, Report, Side};
use shm::clock::Timebase;
use shm::memory::Region;
use shm::ring::spsc;
use std::time::{Duration, Instant};

const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
const STRATEGIES: u64 = 8;

fn orchestrator(open: u64) -> Orchestrator<Mute> {
    let heap = || spsc::heap_ring::<7>(64).0;
    let most = open / STRATEGIES + 64;
    let returns = (0..STRATEGIES).map(|_| ReturnPath::new(heap(), None, most as usize)).collect();
    let setup = RiskSetup::open_orders(STRATEGIES as usize, 1, most);
    Orchestrator::new(Mute, Mute, vec![Inbox::new(heap(), None)], returns, &setup, Work::new(0))
        .expect("a plain orchestrator")
}

fn shadow(open: u64) -> Shadow {
    Shadow::new(orchestrator(open), TIME, Stamps::All).0
}

/// Of a record behind the first `open` orders: reports of the eight oldest orders and eight new ones take turns. Each of eight
/// strategies has one of the eight. A report's order, by its row.
fn reported(number: u64, open: u64) -> Option<u64> {
    let turn = number.checked_sub(open)? / STRATEGIES;
    turn.is_multiple_of(2).then_some(turn / 2)
}

fn event(number: u64, open: u64) -> Event {
    let strategy = (number % STRATEGIES) as u16;
    let side = if strategy.is_multiple_of(2) { Side::Buy } else { Side::Sell };
    let Some(row) = reported(number, open) else {
        let new = number.checked_sub(open).map(|behind| behind / STRATEGIES / 2);
        let row = new.map_or(number / STRATEGIES, |new| open / STRATEGIES + new);
        let mut order = Order::new(OrderId::new(strategy, 0, row), 0);
        (order.side, order.price, order.quantity) = (side, 100, 10);
        return Event::Submitted { from: Some(strategy), has_room: true, message: order.to_message() };
    };
    let report = Report {
        id: OrderId::new(strategy, 0, row),
        venue: 0,
        instrument: 0,
        status: OrderStatus::Filled,
        reason: 0,
        side,
        price: 100,
        filled: 10,
        leaves: 0,
        cumulative: 10,
        number: 0,
        is_last: true,
    };
    Event::Reported { gateway: Some(0), message: report.to_message() }
}

/// Everything that the orchestrator gave has gone out.
fn estate(records: u64, open: u64) -> Estate {
    let reports = (0..records).filter(|number| reported(*number, open).is_some()).count() as u64;
    let orders = records - reports;
    Estate {
        returns_stamped: reports,
        others_logged: 2 * orders + reports,
        sent: vec![orders],
        returned: (0..STRATEGIES)
            .map(|strategy| {
                let of = (strategy..records).step_by(STRATEGIES as usize);
                of.filter(|number| reported(*number, open).is_some()).count() as u64
            })
            .collect(),
        log_is_partial: false,
    }
}

/// The rings, through which all of that went.
fn ends(estate: &Estate) -> Ends {
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
    let returns = estate.returned.iter().map(|messages| ring(*messages)).collect();
    Ends { inboxes: vec![ring(0)], returns, desk: None }
}

fn comes_back(case: Case<'_>) -> (Duration, u64) {
    write(&case);
    let estate = estate(case.records, case.open);
    let ends = ends(&estate);
    let follower = case.followed(|| shadow(case.open)).map(|mut follower| {
        follower.state.has_gone(&estate);
        follower
    });
    let begun = Instant::now();
    let (shadow, reader) = match follower {
        Some(follower) => {
            let (shadow, reader) = follower.into_parts();
            (shadow, Some(reader))
        }
        None => (shadow(case.open), None),
    };
    let back = shadow.come_back(reader, (case.folder, &options()), estate, ends, 1);
    let (orchestrator, _) = back.expect("it comes back");
    let took = begun.elapsed();
    (took, orchestrator.open_orders())
}

/// Writes the log, with the snapshot in it.
fn write(case: &Case<'_>) {
    let mut writer = Writer::open(case.folder, &options(), |_| {}).expect("a folder");
    for number in 0..case.records {
        event(number, case.open).append(&mut writer, number).expect("room");
        if case.snapshot == Some(number + 1) {
            let gone = estate(number + 1, case.open);
            case.snapshot(shadow(case.open), |state| state.has_gone(&gone));
        }
    }
    writer.close().expect("written");
}

fn main() {
    table(comes_back);
}
