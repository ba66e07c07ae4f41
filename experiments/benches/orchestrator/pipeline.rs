//! An order's way through all loops on one thread: strategy, engine and gateway take turns, a batch
//! of orders each. Prints the nanoseconds of each step per order; `.ci/instructions.sh --pipeline`
//! counts its instructions with callgrind.
//!
//! `pipeline [ORDERS [BATCH]]`: 200,000 orders in batches of 16, which is the most that a loop
//! takes in one duty cycle. Rings, stamps, checksums, risk checks, positions and counters are
//! those of a run; only the other core is missing, so no cache line has to travel.
#![forbid(unsafe_code)]

use gateway::{DelayVenue, Gateway, InFull};
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs};
use protocol::agent::{Agent, Cycle, DutyCycle};
use protocol::control::{Control, ControlWriter, PLAN};
use protocol::sender::Sender;
use protocol::stamps::{RECORD_WORDS, StampLog};
use protocol::status::{LOG_OFFSET, StatusWriter};
use protocol::wire::{MESSAGE_WORDS, OrderRequest};
use shm::memory::Region;
use shm::ring::spsc;
use shm::ring::spsc_mux::{Mux, SpscMuxProducer};
use std::time::Instant;
use strategy::{Orders, Session, Strategy, StrategyAgent};
use system::clock::{Timebase, Tsc};
use system::work::TimedWork;

const SLOTS: usize = 1_024;
const MAX_OPEN: u64 = 60_000;
/// Records of an order in the log of the thread that has most of them, and some more.
const RECORDS_AN_ORDER: usize = 10;
/// Rounds at the start that are not measured.
const WARM_UP: u64 = 1_000;

/// Sends a batch of orders in each duty cycle in which it may.
struct BatchSender {
    batch: u64,
    left: u64,
}

impl Strategy for BatchSender {
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        let mut sent = 0;
        while sent < self.left.min(self.batch) as usize {
            let order = OrderRequest { price: 100, quantity: 7, ..OrderRequest::to_venue(0) };
            orders.send(order).expect("few orders are open");
            sent += 1;
        }
        self.left -= sent as u64;
        sent
    }

    fn finished(&self) -> bool {
        self.left == 0
    }
}

/// An agent with its loop, as on a thread of its own.
struct Loop<A> {
    agent: A,
    cycle: Cycle<Tsc>,
    duty_cycle: DutyCycle,
    status: StatusWriter,
    control: Control,
}

impl<A: Agent<Tsc>> Loop<A> {
    fn new(mut agent: A, orders: usize, control: &Control) -> Self {
        let segment = Region::heap(LOG_OFFSET + (orders + 16) * RECORDS_AN_ORDER * RECORD_WORDS).words();
        let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
        let mut cycle = Cycle { clock: Tsc, now: 0, time, draining: false, log: StampLog::new(&segment) };
        let status = StatusWriter::new(&segment);
        let duty_cycle = DutyCycle::begin(&mut agent, &mut cycle, &status);
        Self { agent, cycle, duty_cycle, status, control: control.clone() }
    }

    #[inline(always)]
    fn run_once(&mut self) {
        self.duty_cycle.run_once(&mut self.agent, &mut self.cycle, &self.status, &self.control);
    }
}

/// Steps of a round. Each is a function that callgrind can name.
macro_rules! steps {
    ($($name:ident: $what:literal),*) => {
        const STEPS: &[&str] = &[$($what),*];
        $(#[inline(never)]
        fn $name(one: &mut Loop<impl Agent<Tsc>>) {
            // Without a difference two steps of one loop would be one function.
            std::hint::black_box($what);
            one.run_once();
        })*
    };
}

steps! {
    step_strategy: "strategy: takes reports, sends orders",
    step_engine_out: "engine: takes orders, checks, dispatches",
    step_gateway_in: "gateway: takes orders, holds them",
    step_gateway_out: "gateway: answers",
    step_engine_back: "engine: returns reports, settles"
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let batch = numbers.get(1).copied().unwrap_or(16).clamp(1, 16);
    let rounds = numbers.first().copied().unwrap_or(200_000).div_ceil(batch) + WARM_UP;
    let orders = (rounds * batch) as usize;
    let (submit, submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (inbox_end, inbox) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (return_end, returns) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let launcher = ControlWriter::new(Region::heap(PLAN + 8).words());
    launcher.go(0);
    let control = launcher.control();

    let session = Session::new(0, MAX_OPEN, SpscMuxProducer(submit), None, returns);
    let sender = BatchSender { batch, left: orders as u64 };
    let mut strategy = Loop::new(StrategyAgent::new(sender, session), orders, &control);
    let core = Core::new(&RiskSetup::open_orders(1, 1, MAX_OPEN)).expect("no limits");
    let strategies = vec![Sender::bounded(return_end, None, MAX_OPEN as usize)];
    let outputs = Outputs::new(vec![Sender::new(inbox_end, None, SLOTS)], strategies, TimedWork::new(0));
    let engine =
        Orchestrator::new(Mux::new(vec![submit_end]), Mux::new(vec![completion_end]), core, outputs, ());
    let mut engine = Loop::new(engine, orders, &control);
    let venue = DelayVenue::with_capacity(InFull, MAX_OPEN as usize);
    let gateway = Gateway::new(0, inbox, SpscMuxProducer(completion), None, venue);
    let mut gateway = Loop::new(gateway, orders, &control);

    let mut ticks = vec![0; STEPS.len()];
    let (mut began, mut ns) = (Instant::now(), 0);
    for round in 0..rounds {
        if round == WARM_UP {
            ticks.fill(0);
            began = Instant::now();
        }
        let mut step = 0;
        let mut timed = |run: &mut dyn FnMut()| {
            let before = Instant::now();
            run();
            ticks[step] += before.elapsed().as_nanos();
            step += 1;
        };
        timed(&mut || step_strategy(&mut strategy));
        timed(&mut || step_engine_out(&mut engine));
        timed(&mut || step_gateway_in(&mut gateway));
        timed(&mut || step_gateway_out(&mut gateway));
        timed(&mut || step_engine_back(&mut engine));
        ns = began.elapsed().as_nanos();
    }
    let measured = u128::from((rounds - WARM_UP) * batch);
    for (what, ticks) in STEPS.iter().zip(&ticks) {
        println!("{what:<44} {:>6.1} ns", *ticks as f64 / measured as f64);
    }
    println!("{:<44} {:>6.1} ns", "all, an order", ns as f64 / measured as f64);
    strategy.run_once();
    assert_eq!(strategy.agent.strategy().left, 0, "all orders were sent");
}
