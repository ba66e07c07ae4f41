//! Measures what a module costs an order: the player as a module and in Rust, called in turn by one
//! thread that answers each order itself, without rings, engine or clock.
//!
//! ```text
//! cargo run --release --example cost
//! ```
#![forbid(unsafe_code)]

use core::hint::black_box;
use launcher::protocol::plan::Pacing;
use launcher::protocol::wire::{OrderId, OrderRequest, Report};
use launcher::shm::memory::{Region, header::HEADER_WORDS};
use launcher::strategy::{Context, Orders, Refused, Strategy};
use launcher::system::clock::Timebase;
use std::sync::Arc;
use std::time::Instant;
use wasm_strategy::{NativePlayer, Program, Settings, WasmStrategy};

const ROUNDS: usize = 4_001;
/// Calls of a round, which is shorter than a time slice: a busy machine interrupts few.
const CALLS: u32 = 1_000;

/// Keeps the last order, to be answered.
struct Echo {
    sent: u64,
    last: OrderRequest,
}

impl Orders for Echo {
    #[inline(never)]
    fn send_due(&mut self, order: OrderRequest, _: Option<u64>) -> Result<OrderId, Refused> {
        self.last = order;
        self.sent += 1;
        Ok(OrderId::new(0, 0, self.sent - 1))
    }
    fn open(&self) -> u64 {
        0
    }
    fn now(&self) -> u64 {
        0
    }
    fn time(&self) -> Timebase {
        Timebase { start_ticks: 0, ns_per_tick: 1.0 }
    }
}

/// A strategy that is called for some rounds.
struct Measured<S> {
    strategy: S,
    echo: Echo,
    /// Nanoseconds in each round: of an order with its report, and of a cycle without either.
    rounds: Vec<(f64, f64)>,
}

impl<S: Strategy> Measured<S> {
    fn new(strategy: S) -> Self {
        Self { strategy, echo: Echo { sent: 0, last: OrderRequest::to_venue(0) }, rounds: Vec::new() }
    }

    fn round(&mut self) {
        let Self { strategy, echo, rounds } = self;
        let before = echo.sent;
        let begun = Instant::now();
        for _ in 0..CALLS {
            strategy.on_turn(echo);
            let order = echo.last.with_id(OrderId::new(0, 0, echo.sent - 1));
            strategy.on_report(black_box(&Report::full_fill(&order)), echo);
        }
        let order_ns = begun.elapsed().as_nanos() as f64 / f64::from(CALLS);
        assert_eq!(echo.sent - before, u64::from(CALLS), "an order in each cycle");
        // One order is open from here on.
        strategy.on_turn(echo);
        let begun = Instant::now();
        for _ in 0..CALLS {
            black_box(strategy.on_turn(echo));
        }
        let idle_ns = begun.elapsed().as_nanos() as f64 / f64::from(CALLS);
        let order = echo.last.with_id(OrderId::new(0, 0, echo.sent - 1));
        strategy.on_report(&Report::full_fill(&order), echo);
        rounds.push((order_ns, idle_ns));
    }

    /// Returns the median and the quartiles of one of the two figures.
    fn quartiles(&self, figure: impl Fn(&(f64, f64)) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.rounds.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
    }
}

fn main() {
    let context = Context::new(0, Region::heap(HEADER_WORDS).words().into(), 0, Pacing::Closed);
    let settings = Settings::from_environment().unwrap_or_else(|why| panic!("{why}"));
    let program = Arc::new(Program::from_settings(&settings).unwrap_or_else(|why| panic!("{why}")));
    let mut native = Measured::new(NativePlayer::new(&context));
    let mut module = Measured::new(WasmStrategy::new(&program, &context));
    for _ in 0..ROUNDS {
        native.round();
        module.round();
    }
    println!("nanoseconds: median [quartiles] of {ROUNDS} rounds in turn, {CALLS} calls each");
    let line = |name: &str, quartiles: [f64; 3]| {
        let [low, middle, high] = quartiles;
        println!("{name:<32} {middle:>7.1} [{low:.1}, {high:.1}]");
    };
    line("native, an order and its report", native.quartiles(|it| it.0));
    line("wasm, an order and its report", module.quartiles(|it| it.0));
    line("native, a cycle without either", native.quartiles(|it| it.1));
    line("wasm, a cycle without either", module.quartiles(|it| it.1));
    println!("memory of the module: {} KiB", module.strategy.memory_bytes() >> 10);
}
