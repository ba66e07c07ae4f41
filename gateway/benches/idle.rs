//! `cargo bench -p gateway --bench idle`: nanoseconds of an idle duty cycle, as a thread of a run
//! has it (turn, gap and pause included): of an agent that does nothing, which is what turn, clock
//! and pause take alone; of a strategy that waits for its next order; and of an engine of one
//! orchestrator and four gateways with 8 strategies. With `nothing N`, `strategy N` or `engine N`
//! it only does N cycles, for callgrind.
#![forbid(unsafe_code)]

use gateway::{DelayVenue, Gateway, InFull};
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs};
use protocol::agent::{Agent, Cycle, CycleOutcome, DutyCycle};
use protocol::control::{ControlWriter, PLAN, RunState};
use protocol::plan::Pacing;
use protocol::sender::Sender;
use protocol::stamps::StampLog;
use protocol::status::{LOG_OFFSET, StatusWriter};
use protocol::wire::{MESSAGE_WORDS, Order, OrderId};
use shm::idle::{Idle, Spin};
use shm::memory::Region;
use shm::memory::header::HEADER_WORDS;
use shm::ring::spsc;
use shm::ring::spsc_mux::{Mux, SpscMuxProducer};
use shm::sync::Ordering;
use std::time::Instant;
use strategy::schedule::Entry;
use strategy::{Player, Session, StrategyAgent};
use system::clock::{Timebase, Tsc};
use system::work::TimedWork;

const VENUES: u16 = 4;
const STRATEGIES: usize = 8;
/// A time that does not come: an hour of ticks, and more.
const NEVER_NS: u64 = 1 << 46;

fn rings(n: usize) -> (Vec<spsc::Producer>, Vec<spsc::Consumer>) {
    (0..n).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(1024)).unzip()
}

/// An engine whose venues hold an order each, and what must outlive it.
fn engine() -> (impl Agent<Tsc>, (Vec<spsc::Producer>, Vec<spsc::Consumer>)) {
    let (submit, submit_ends) = rings(STRATEGIES);
    let (completions, completion_ends) = rings(VENUES.into());
    let (mut inboxes, inbox_ends) = rings(VENUES.into());
    let (returns, return_ends) = rings(STRATEGIES);
    for (venue, inbox) in (0..).zip(&mut inboxes) {
        let order = Order { delay_ns: NEVER_NS, ..Order::new(OrderId::new(0, 0, 0), venue) };
        inbox.try_push(&order.to_message()).expect("there is room");
    }
    let core = Core::new(&RiskSetup::open_orders(STRATEGIES, VENUES.into(), 64)).expect("no limits");
    let outputs = Outputs::new(
        inboxes.into_iter().map(|ring| Sender::new(ring, None, 64)).collect(),
        returns.into_iter().map(|ring| Sender::bounded(ring, None, 8)).collect(),
        TimedWork::new(0),
    );
    let orchestrator = Orchestrator::new(Mux::new(submit_ends), Mux::new(completion_ends), core, outputs, ());
    let gateways: Vec<_> = (0..VENUES)
        .zip(inbox_ends.into_iter().zip(completions))
        .map(|(index, (inbox, completion))| {
            Gateway::new(
                index,
                inbox,
                SpscMuxProducer(completion),
                None,
                DelayVenue::with_capacity(InFull, 1024),
            )
        })
        .collect();
    ((orchestrator, gateways), (submit, return_ends))
}

/// A strategy whose first order is never due.
fn strategy() -> (impl Agent<Tsc>, (spsc::Producer, spsc::Consumer)) {
    let (submit, submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(1024);
    let (return_ring, returns) = spsc::heap_ring::<MESSAGE_WORDS>(1024);
    let order = Order { price: 1, quantity: 1, ..Order::new(OrderId::new(0, 0, 0), 0) };
    let entry = Entry {
        fire_ns: NEVER_NS,
        delay_ns: 0,
        venue: 0,
        operation: order.operation,
        side: order.side,
        price: order.price,
        quantity: order.quantity,
        target: 0,
    };
    let words = entry.to_words();
    let schedule = Region::heap(HEADER_WORDS + words.len()).words();
    for (place, word) in words.into_iter().enumerate() {
        schedule[HEADER_WORDS + place].store(word, Ordering::Relaxed);
    }
    let player = Player::new(schedule.into(), 1, Pacing::Scheduled);
    let session = Session::new(0, 64, SpscMuxProducer(submit), None, returns);
    (StrategyAgent::new(player, session), (return_ring, submit_end))
}

/// An agent without a role.
struct Nothing;

impl Agent<Tsc> for Nothing {
    fn duty_cycle(&mut self, _: &mut Cycle<Tsc>) -> usize {
        0
    }
}

/// An agent in its loop, as `protocol::agent::run` has it.
struct Thread<A> {
    agent: A,
    cycle: Cycle<Tsc>,
    status: StatusWriter,
    launching: ControlWriter,
    turns: DutyCycle,
}

impl<A: Agent<Tsc>> Thread<A> {
    fn new(mut agent: A) -> Self {
        let segment = Region::heap(LOG_OFFSET + 64).words();
        let status = StatusWriter::new(&segment);
        let time = Timebase { start_ticks: 0, ns_per_tick: 0.4 };
        let mut cycle = Cycle { clock: Tsc, now: 0, time, draining: false, log: StampLog::new(&segment) };
        let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
        launching.set_state(RunState::Go);
        let turns = DutyCycle::begin(&mut agent, &mut cycle, &status);
        let mut thread = Self { agent, cycle, status, launching, turns };
        thread.cycles(1_000);
        thread
    }

    #[inline(never)]
    fn cycles(&mut self, cycles: u64) -> u64 {
        let control = self.launching.control();
        let mut idle = Spin::default();
        let mut busy = 0;
        for _ in 0..cycles {
            match self.turns.run_once(&mut self.agent, &mut self.cycle, &self.status, &control) {
                CycleOutcome::Idle(ns) => idle.idle(ns),
                CycleOutcome::Busy => busy += 1,
                CycleOutcome::Finished => unreachable!("the run goes on"),
            }
        }
        busy
    }

    /// Nanoseconds a cycle.
    fn sample(&mut self, cycles: u64) -> f64 {
        let start = Instant::now();
        assert_eq!(self.cycles(cycles), 0, "idle");
        start.elapsed().as_nanos() as f64 / cycles as f64
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let (agent, _engine_ends) = engine();
    let mut engine = Thread::new(agent);
    let (agent, _strategy_ends) = strategy();
    let mut strategy = Thread::new(agent);
    let mut nothing = Thread::new(Nothing);
    if let [what, cycles] = &args[..] {
        let cycles = cycles.parse().expect("a number");
        let busy = match what.as_str() {
            "engine" => engine.cycles(cycles),
            "strategy" => strategy.cycles(cycles),
            _ => nothing.cycles(cycles),
        };
        assert_eq!(busy, 0, "idle");
        return;
    }
    let samples = if std::env::args().any(|arg| arg == "--bench") { 201 } else { 3 };
    let rows: Vec<[f64; 3]> = (0..samples)
        .map(|_| [nothing.sample(20_000), strategy.sample(20_000), engine.sample(20_000)])
        .collect();
    for (place, name) in ["nothing", "strategy", "engine, 4 venues"].into_iter().enumerate() {
        let mut column: Vec<f64> = rows.iter().map(|row| row[place]).collect();
        column.sort_by(f64::total_cmp);
        let at = |share: usize| column[(column.len() - 1) * share / 4];
        println!("{name:>16}: {:.1} ns an idle duty cycle ({:.1}-{:.1})", at(2), at(1), at(3));
    }
}
