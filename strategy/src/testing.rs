//! Tests a strategy without an engine: an echo answers each order, on a virtual clock, in one
//! thread.

use crate::{Session, Strategy, StrategyAgent};
use protocol::agent::{Agent, Cycle};
use protocol::stamps::{RECORD_WORDS, StampLog};
use protocol::status::LOG_OFFSET;
use protocol::wire::{MESSAGE_WORDS, Operation, Order, OrderId, Report};
use shm::memory::Region;
use shm::ring::spsc;
use shm::ring::spsc_mux::SpscMuxProducer;
use system::clock::{Timebase, VirtualClock};

/// An order or a report in a test run of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The strategy sent this order.
    Sent(Order),
    /// The echo reported this order as done.
    Reported(OrderId),
}

/// Runs a strategy for at most `cycles` duty cycles against an echo that executes each order in
/// full, and returns what was sent and reported. A cycle takes one microsecond (a tick is a
/// nanosecond); an order is executed in the cycle after it was sent. Ends early when the strategy
/// has finished and has all its reports.
pub fn play_against_echo(strategy: impl Strategy, cycles: u64) -> Vec<Event> {
    let (submit, mut submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(1024);
    let (mut returns, returns_end) = spsc::heap_ring::<MESSAGE_WORDS>(1024);
    let session = Session::new(0, 1024, SpscMuxProducer(submit), None, returns_end);
    let mut agent = StrategyAgent::new(strategy, session);
    // A log without capacity: dropped records are only counted.
    let log = StampLog::new(&Region::heap(LOG_OFFSET + RECORD_WORDS).words());
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    let mut cycle = Cycle { clock: VirtualClock::default(), now: 0, time, draining: false, log };
    let mut events = Vec::new();
    for n in 0..cycles {
        cycle.clock.set(n * 1000);
        cycle.now = n * 1000;
        agent.duty_cycle(&mut cycle);
        while let Some(message) = submit_end.try_pop().expect("our own cursor") {
            let order = Order::from_message(message).expect("a session sends orders");
            events.push(Event::Sent(order));
            let report = Report {
                filled: if order.request.operation == Operation::New { order.request.quantity } else { 0 },
                ..Report::full_fill(&order)
            };
            returns.try_push(&report.to_message()).expect("as large as the submit ring");
            events.push(Event::Reported(order.id));
        }
        if Agent::<VirtualClock>::finished(&agent, false) {
            break;
        }
    }
    events
}
