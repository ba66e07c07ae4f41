//! A soak test: random operations through the engine and a naive one. `cargo run --release -p
//! bulkhead-exchange --example soak -- --operations 10m --seed 1`.
//!
//! Nine tenths run in crowded books next to the naive engine, compared after each operation. The
//! last tenth runs in one book of up to 100,000 orders, whose events must add up. A failure names
//! its seed and prints the shortest list of commands that shows it.

#[path = "../tests/all/deep.rs"]
mod deep;
#[path = "../tests/all/drawn.rs"]
mod drawn;
#[path = "../tests/all/ledger.rs"]
mod ledger;
#[path = "../tests/all/naive/mod.rs"]
mod naive;
#[path = "../tests/all/pair.rs"]
mod pair;

use drawn::{CommandSource, Setting};
use exchange::{Command, Exchange};
use pair::{CompareIntervals, Pair, failure};
use shm::random::SplitMix64;
use std::process::ExitCode;
use std::time::Instant;

/// Commands of one history: short enough to be shrunk.
const HISTORY: u64 = 10_000;
const INTERVALS: CompareIntervals = CompareIntervals { books: 2, check: 2 };
/// Commands between two checks of the deep book; a check visits all of it.
const CHECK_INTERVAL: u64 = 20_000;

fn main() -> ExitCode {
    let started = Instant::now();
    let result = arguments().and_then(|(operations, seed)| {
        let deep_operations = operations / 10;
        let trades = crowded(operations - deep_operations, seed)?;
        let deep = deep::run(deep_operations, seed, CHECK_INTERVAL)?;
        println!("deep book: up to {} orders at once", deep.max_open);
        Ok((operations, seed, trades + deep.trades))
    });
    match result {
        Ok((operations, seed, trades)) => {
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{operations} operations from seed {seed}: no difference, {trades} trades, {seconds:.1} s"
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if error.starts_with("usage") { 2 } else { 1 })
        }
    }
}

fn arguments() -> Result<(u64, u64), String> {
    let (mut operations, mut seed) = (10_000_000, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let (digits, unit) = match value.strip_suffix('m') {
            Some(digits) => (digits, 1_000_000),
            None => (value.strip_suffix('k').unwrap_or(&value), if value.ends_with('k') { 1000 } else { 1 }),
        };
        let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        match (name.as_str(), number) {
            ("--operations", Some(number)) => operations = number,
            ("--seed", Some(number)) => seed = number,
            _ => {
                return Err(format!(
                    "usage: soak [--operations 10m] [--seed 1]; {name:?} {value:?} is neither"
                ));
            }
        }
    }
    Ok((operations, seed))
}

fn crowded(operations: u64, seed: u64) -> Result<u64, String> {
    let mut trades = 0;
    for history in 0..operations.div_ceil(HISTORY) {
        let history_seed = seed.wrapping_mul(1 << 32).wrapping_add(history);
        let setting = Setting::of_history(history);
        let (mut numbers, mut source) = (SplitMix64(history_seed), CommandSource::new(&setting));
        let length = HISTORY.min(operations - history * HISTORY);
        let commands: Vec<Command> = (0..length).map(|_| source.command(&mut numbers)).collect();
        let mut pair = Pair::<Exchange>::new(&setting, INTERVALS);
        for command in &commands {
            pair.apply(*command).map_err(|difference| {
                let description = failure(&setting, &commands, difference);
                format!("seed {seed}, history {history}: {description}")
            })?;
        }
        trades += pair.trades();
    }
    Ok(trades)
}
