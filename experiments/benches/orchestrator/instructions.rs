//! Instructions between the engine's stamps, of an order that is alone in it: t2 to t3 (checks) and
//! t6 to t7 (the way back).
//!
//! Counted with callgrind, which writes its counters each time the engine reads the clock: run
//! `.ci/instructions.sh --engine`. By itself this only trades a number of orders: `instructions
//! ORDERS`.
#![forbid(unsafe_code)]

use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs};
use protocol::agent::{Agent, Cycle};
use protocol::sender::Sender;
use protocol::stamps::StampLog;
use protocol::status::LOG_OFFSET;
use protocol::wire::{MESSAGE_WORDS, OrderId, OrderRequest, Report};
use shm::memory::Region;
use shm::ring::spsc;
use shm::ring::spsc_mux::Mux;
use std::cell::Cell;
use system::clock::{Clock, Timebase};
use system::work::TimedWork;

const SLOTS: usize = 1_024;

/// A clock whose calls callgrind can see.
#[derive(Clone, Default)]
struct Counted(Cell<u64>);

impl Clock for Counted {
    #[inline(never)]
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }

    fn peek(&self) -> u64 {
        self.0.get()
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let orders: u64 = args.first().map_or(32, |orders| orders.parse().expect("a number of orders"));
    let (mut submit, submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (inbox_end, mut inbox) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (mut completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (return_end, mut returns) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let core = Core::new(&RiskSetup::open_orders(1, 1, 1_000)).expect("no limits");
    let strategies = vec![Sender::bounded(return_end, None, 1_000)];
    let outputs = Outputs::new(vec![Sender::new(inbox_end, None, 1_000)], strategies, TimedWork::new(0));
    let mut engine =
        Orchestrator::new(Mux::new(vec![submit_end]), Mux::new(vec![completion_end]), core, outputs, ());
    let segment = Region::heap(LOG_OFFSET + 16 * orders as usize + 64).words();
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    let log = StampLog::new(&segment);
    let mut cycle = Cycle { clock: Counted::default(), now: 1, time, draining: false, log };
    for sequence in 0..orders {
        let order = OrderRequest { price: 100, quantity: 7, ..OrderRequest::to_venue(0) }
            .with_id(OrderId::new(0, 0, sequence));
        submit.try_push(&order.to_message()).expect("the ring is empty");
        engine.duty_cycle(&mut cycle);
        assert!(inbox.try_pop().expect("a message is whole").is_some(), "it is dispatched");
        completion.try_push(&Report::full_fill(&order).to_message()).expect("the ring is empty");
        engine.duty_cycle(&mut cycle);
        assert!(returns.try_pop().expect("a message is whole").is_some(), "it is returned");
    }
    println!("{orders} orders, {} reads of the clock", cycle.clock.peek());
}
