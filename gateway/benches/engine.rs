//! `cargo bench -p gateway --bench engine [-- --quick]`: what an order costs the engine, that is
//! one orchestrator and the gateway of one `delay` venue on one thread, while a number of orders
//! are held.
//!
//! One strategy sends an order for each report, so that the number held stays constant; delays are
//! drawn from 5 to 500 ms as in a run. Nobody waits for them: the clock goes on during the engine's
//! turns only, and where nothing is due it jumps. What is counted is what a run counts as the
//! engine's busy time, the duty cycles with work; the strategy's part and the jumps are between
//! them. Each order writes its records into a stamp log. A turn that the machine interrupts is
//! counted with the interruption: on a loaded machine compare CPU time, of `count`.
//!
//! Rows are measured in turn; nanoseconds an order, median and quartiles of the samples, and the
//! ratio to the first row, sample by sample. With `count HELD ORDERS` it only trades that number of
//! orders, for callgrind: the difference of two numbers of orders is what those cost.
#![forbid(unsafe_code)]

use gateway::{DelayVenue, Gateway, InFull};
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs};
use protocol::agent::{Agent, Cycle, CycleOutcome, DutyCycle};
use protocol::control::{Control, ControlWriter, PLAN, RunState};
use protocol::sender::Sender;
use protocol::stamps::StampLog;
use protocol::status::{self, LOG_OFFSET, StatusField, StatusWriter};
use protocol::wire::{MESSAGE_WORDS, Order, OrderId, Side};
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc;
use shm::ring::spsc_mux::{Mux, SpscMuxProducer};
use shm::sync::Ordering;
use std::cell::Cell;
use std::rc::Rc;
use system::clock::{Clock, Timebase, Tsc};
use system::work::TimedWork;

/// Slots of a ring, as a run has them.
const SLOTS: usize = 8_192;
/// Orders of a run at 400,000 a second that may be open.
const MAX_OPEN: u64 = 300_000;
/// Orders in a sample, and before it to warm the caches.
const SAMPLE: u64 = 150_000;
const WARM: u64 = 20_000;
/// Words of the log that an order takes: t2 to t7, its quantity and its price, and the release.
const WORDS_AN_ORDER: usize = 2 * 9;
/// Delays, in nanoseconds: a tick is one.
const LEAST: u64 = 5_000_000;
const MOST: u64 = 500_000_000;

const ROWS: [u64; 4] = [100, 1_000, 10_000, 100_000];

/// The processor's clock, which stands still between turns, and jumps.
#[derive(Clone)]
struct Jumping {
    /// Offset added to the CPU's counter; wraps.
    ahead: Rc<Cell<u64>>,
}

impl Jumping {
    /// The time is this now.
    fn set(&self, ticks: u64) {
        self.ahead.set(ticks.wrapping_sub(Tsc.peek()));
    }
}

impl Clock for Jumping {
    #[inline(always)]
    fn now(&self) -> u64 {
        Tsc.now().wrapping_add(self.ahead.get())
    }
    #[inline(always)]
    fn peek(&self) -> u64 {
        Tsc.peek().wrapping_add(self.ahead.get())
    }
}

/// An engine that holds a constant number of orders, and the strategy that trades with it.
struct Engine<A> {
    agent: A,
    cycle: Cycle<Jumping>,
    status: StatusWriter,
    control: Control,
    turns: DutyCycle,
    segment: AtomicWords,
    submit: spsc::Producer,
    returns: spsc::Consumer,
    /// The time between turns.
    now: u64,
    /// The next order's sequence.
    next: u64,
    random: u64,
    written: usize,
}

fn engine(held: u64) -> Engine<impl Agent<Jumping>> {
    let (submit, submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (inbox, inbox_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let (return_ring, returns) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
    let core = Core::new(&RiskSetup::open_orders(1, 1, MAX_OPEN)).expect("no limits");
    let outputs = Outputs::new(
        vec![Sender::new(inbox, None, 64)],
        vec![Sender::bounded(return_ring, None, MAX_OPEN as usize)],
        TimedWork::new(0),
    );
    let orchestrator =
        Orchestrator::new(Mux::new(vec![submit_end]), Mux::new(vec![completion_end]), core, outputs, ());
    let venue = DelayVenue::with_capacity(InFull, MAX_OPEN as usize);
    let gateway = Gateway::new(0, inbox_end, SpscMuxProducer(completion), None, venue);

    let segment = Region::heap(LOG_OFFSET + (SAMPLE + WARM) as usize * WORDS_AN_ORDER + 64).words();
    let status = StatusWriter::new(&segment);
    let clock = Jumping { ahead: Rc::default() };
    let now = clock.peek();
    let time = Timebase { start_ticks: now, ns_per_tick: 1.0 };
    let mut cycle = Cycle { clock, now: 0, time, draining: false, log: StampLog::new(&segment) };
    let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
    launching.set_state(RunState::Go);
    let mut agent = (orchestrator, gateway);
    let turns = DutyCycle::begin(&mut agent, &mut cycle, &status);
    let mut engine = Engine {
        agent,
        cycle,
        status,
        control: launching.control(),
        turns,
        segment,
        submit,
        returns,
        now,
        next: 0,
        random: 1,
        written: 0,
    };
    let (mut open, filled_at) = (0, engine.now);
    while open < held {
        // As if they had come one after the other; at one time, or on a loaded machine they would
        // go as fast as they come.
        let delay = LEAST + engine.delay() * (open + 1) / held;
        engine.send(delay);
        engine.now = filled_at;
        engine.write_anew();
        open += 1;
        while engine.returns.try_pop().expect("an honest ring").is_some() {
            open -= 1;
        }
    }
    engine.trade(2 * held);
    engine
}

impl<A: Agent<Jumping>> Engine<A> {
    fn random(&mut self) -> u64 {
        // xorshift64*.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn delay(&mut self) -> u64 {
        LEAST + ((u128::from(self.random()) * u128::from(MOST - LEAST)) >> 64) as u64
    }

    /// Sends an order, and lets the engine take it to its venue.
    fn send(&mut self, delay_ns: u64) {
        let bits = self.random();
        let order = Order {
            side: if bits & 1 == 0 { Side::Buy } else { Side::Sell },
            price: 100_000 + (bits >> 8 & 1_023) as i64,
            quantity: 1 + (bits >> 20 & 0xFFFF),
            delay_ns,
            ..Order::new(OrderId::new(0, 0, self.next), 0)
        };
        self.next += 1;
        self.submit.try_push(&order.to_message()).expect("there is room");
        while self.try_turn() {}
    }

    /// A turn of the engine's loop; whether it found work.
    #[inline(never)]
    fn try_turn(&mut self) -> bool {
        self.cycle.clock.set(self.now);
        let turn = self.turns.run_once(&mut self.agent, &mut self.cycle, &self.status, &self.control);
        self.now = self.cycle.clock.peek();
        match turn {
            CycleOutcome::Idle(_) => false,
            CycleOutcome::Busy => true,
            CycleOutcome::Finished => unreachable!("the run goes on"),
        }
    }

    /// Resets the log when it is nearly full.
    fn write_anew(&mut self) {
        self.written += WORDS_AN_ORDER;
        if self.written + WORDS_AN_ORDER > self.segment.len() - LOG_OFFSET {
            self.segment[LOG_OFFSET..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.cycle.log = StampLog::new(&self.segment);
            self.written = 0;
        }
    }

    /// Waits for `orders` reports and sends another order for each.
    fn trade(&mut self, orders: u64) {
        for _ in 0..orders {
            while self.returns.looks_empty() {
                let next = self.agent.next_deadline(false);
                assert_ne!(next, u64::MAX, "orders are held");
                self.now = self.now.max(next);
                while self.try_turn() {}
            }
            self.returns.try_pop().expect("an honest ring").expect("there is one");
            let delay = self.delay();
            self.send(delay);
            self.write_anew();
        }
    }

    /// Nanoseconds an order.
    fn sample(&mut self, ns_per_tick: f64) -> f64 {
        self.written = self.segment.len();
        self.write_anew();
        self.trade(WARM);
        let busy = |engine: &Self| status::read(&engine.segment.clone().into()).get(StatusField::BusyTicks);
        let before = busy(self);
        self.trade(SAMPLE);
        (busy(self) - before) as f64 * ns_per_tick / SAMPLE as f64
    }
}

/// Nanoseconds of a tick.
fn ns_per_tick() -> f64 {
    let (began, ticks) = (std::time::Instant::now(), Tsc.now());
    std::thread::sleep(std::time::Duration::from_millis(100));
    began.elapsed().as_nanos() as f64 / (Tsc.now() - ticks) as f64
}

fn quartiles(mut samples: Vec<f64>, digits: usize) -> String {
    samples.sort_by(f64::total_cmp);
    let at = |share: usize| samples[(samples.len() - 1) * share / 4];
    format!("{:.digits$} ({:.digits$}-{:.digits$})", at(2), at(1), at(3))
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [count, held, orders] = &args[..]
        && count == "count"
    {
        engine(held.parse().expect("a number")).trade(orders.parse().expect("a number"));
        return;
    }
    let is_quick = !std::env::args().any(|arg| arg == "--bench") || args.iter().any(|arg| arg == "--quick");
    let (samples, ns_per_tick) = (if is_quick { 3 } else { 21 }, ns_per_tick());
    let mut engines = ROWS.map(engine);
    let mut rows = [const { Vec::new() }; ROWS.len()];
    for _ in 0..samples {
        for (row, engine) in rows.iter_mut().zip(&mut engines) {
            row.push(engine.sample(ns_per_tick));
        }
    }
    println!("{:>9} {:>28} {:>24}", "held", "ns an order", "to the first row");
    for (held, row) in ROWS.iter().zip(&rows) {
        let ratios = row.iter().zip(&rows[0]).map(|(ns, first)| ns / first).collect();
        println!("{held:>9} {:>28} {:>24}", quartiles(row.clone(), 0), quartiles(ratios, 2));
    }
}
