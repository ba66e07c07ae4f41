//! The time that the engine takes for a command.
//!
//! `cargo bench -p benches --bench engine [-- NAME…] [--quick]`. Every row is measured in
//! rounds that alternate between single commands and batches. It shows the median of the rounds in
//! nanoseconds of CPU time per operation and, in brackets, the lowest and the highest. The machine
//! may be busy: compare within a row. The percentiles are of wall time, per operation. A second
//! table (`memory`) shows the time of one cache miss in a book of that number of orders: the
//! floor under the rows that name any order.

mod loads;
mod memory;

use benches::quantile;
use exchange::{Command, Event, Events, Exchange};
use loads::Load;
use std::time::Instant;
use system::usage::thread_cpu_ns;

/// Adds up events, so that nothing is optimized away.
struct Sum(u64);

impl Events for Sum {
    #[inline]
    fn on(&mut self, event: Event) {
        if let Event::Trade { quantity, .. } = event {
            self.0 += quantity;
        }
        self.0 += 1;
    }
}

fn prepared(load: &Load) -> (Exchange, Sum) {
    let mut exchange = Exchange::new(&[load.instrument], load.capacity).expect("a valid configuration");
    let mut sum = Sum(0);
    load.before.iter().for_each(|&command| exchange.apply(command, &mut sum));
    (exchange, sum)
}

#[inline(always)]
fn round(load: &Load, apply: impl FnOnce(&mut Exchange, &mut Sum)) -> f64 {
    let (mut exchange, mut sum) = prepared(load);
    let start = thread_cpu_ns();
    apply(&mut exchange, &mut sum);
    let elapsed_ns = (thread_cpu_ns() - start) as f64;
    assert!(sum.0 > 0);
    elapsed_ns / load.operations as f64
}

/// Returns the percentiles 50, 99 and 99.9 of single operations, less the cost of a clock read.
fn percentiles(load: &Load, clock: u64) -> [u64; 3] {
    let (mut exchange, mut sum) = prepared(load);
    let mut times: Vec<u64> =
        load.timed.iter().map(|&command| timed(&mut exchange, command, &mut sum)).collect();
    times.sort_unstable();
    [500, 990, 999].map(|per_mille| times[times.len() * per_mille / 1000].saturating_sub(clock))
}

fn timed(exchange: &mut Exchange, command: Command, sum: &mut Sum) -> u64 {
    let start = Instant::now();
    exchange.apply(command, sum);
    start.elapsed().as_nanos() as u64
}

fn clock() -> u64 {
    let mut times: Vec<u64> = (0..100_000).map(|_| Instant::now().elapsed().as_nanos() as u64).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn median(mut rounds: Vec<f64>) -> String {
    let [low, middle, high] = [0.0, 0.5, 1.0].map(|share| quantile(&mut rounds, share));
    format!("{middle:7.1} ({low:.1}-{high:.1})")
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    // One round of each row: a smoke test.
    let quick = std::env::args().any(|word| word == "--quick");
    let clock = clock();
    println!(
        "{:24} {:>22} {:>22}   one by one: p50 p99 p99.9, clock {clock} taken off",
        "ns/op", "one by one", "batches of 16"
    );
    for (name, make) in loads::ALL {
        if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        let load = make();
        let mut rounds = [const { Vec::new() }; 2];
        for _ in 0..if quick { 1 } else { load.rounds } {
            rounds[0].push(round(&load, |exchange, sum| {
                load.timed.iter().for_each(|&command| exchange.apply(command, sum));
            }));
            rounds[1].push(round(&load, |exchange, sum| {
                load.timed.chunks(16).for_each(|commands| exchange.apply_all(commands, sum));
            }));
        }
        let [single, batches] = rounds.map(median);
        let [p50, p99, p999] = percentiles(&load, clock);
        println!("{name:24} {single:>22} {batches:>22}   {p50} {p99} {p999}");
    }
    if wanted.is_empty() || wanted.iter().any(|word| word == "memory") {
        memory::print(if quick { 1 } else { 9 });
    }
}
