//! Runs loads through the books in turns, and formats medians and spreads.

use crate::btree_book::BTreeBook;
use crate::load::{Load, Op};
use crate::peers::{BatchedExchange, BookSize, Matchcore, OrderbookRs, Ours, Peer};
use exchange::Capacity;
use std::time::Instant;
use system::clock::{Clock, Tsc};
use system::usage::thread_cpu_ns;

pub const NAMES: [&str; 5] =
    [Ours::NAME, BatchedExchange::NAME, OrderbookRs::NAME, Matchcore::NAME, BTreeBook::NAME];

/// Calls a generic function for each compared book, in the order of [`NAMES`].
macro_rules! of_each {
    ($function:ident($($argument:expr),*)) => {
        [
            $function::<Ours>($($argument),*),
            $function::<BatchedExchange>($($argument),*),
            $function::<OrderbookRs>($($argument),*),
            $function::<Matchcore>($($argument),*),
            $function::<BTreeBook>($($argument),*),
        ]
    };
}

/// Several books for a short load, so that the clock's cost does not dominate.
fn books_at_once(load: &Load) -> usize {
    (512 / load.timed.len()).clamp(1, 32)
}

struct Prepared<P: Peer> {
    book: P,
    timed: Vec<P::Command>,
}

/// Returns the capacity that a load needs of an order book, and its highest price.
fn book_size(load: &Load) -> BookSize {
    let mut book = BTreeBook::new();
    let (mut orders, mut levels, mut highest) = (0, 0, 1);
    for op in operations(load) {
        book.apply(op);
        orders = orders.max(book.open_orders());
        levels = levels.max(book.levels());
        highest = highest.max(op.price().unwrap_or(0));
    }
    BookSize { capacity: Capacity { orders: orders + 1, levels: levels + 1 }, highest }
}

fn prepare<P: Peer>(load: &Load, size: BookSize) -> Prepared<P> {
    let mut book = P::fresh(size);
    for op in &load.before {
        let command = book.translate(*op);
        book.run(&command);
    }
    let timed = load.timed.iter().map(|op| book.translate(*op)).collect();
    Prepared { book, timed }
}

/// Runs a load once through an order book and returns nanoseconds of CPU time per operation.
fn once<P: Peer>(load: &Load, size: BookSize) -> f64 {
    let mut books: Vec<Prepared<P>> = (0..books_at_once(load)).map(|_| prepare(load, size)).collect();
    let started = thread_cpu_ns();
    for Prepared { book, timed } in &mut books {
        std::hint::black_box(book.run_all(timed));
    }
    let ns = thread_cpu_ns() - started;
    // Reading this clock is a system call, and one falls between the two reads.
    ns.saturating_sub(clock_ns()) as f64 / (books.len() * load.timed.len()) as f64
}

/// Returns the median cost of reading the CPU clock.
fn clock_ns() -> u64 {
    let mut times = [(); 101].map(|()| {
        let started = thread_cpu_ns();
        thread_cpu_ns() - started
    });
    times.sort_unstable();
    times[50]
}

/// Number of trades and both sides of the book at the end.
type LoadOutcome = (u64, [Vec<(u64, u64)>; 2]);

fn outcome<P: Peer>(load: &Load, size: BookSize) -> LoadOutcome {
    let Prepared { mut book, timed } = prepare::<P>(load, size);
    let trades = book.run_all(&timed);
    (trades, [book.depth(true), book.depth(false)])
}

/// Checks that all compared order books do equal work; panics otherwise.
fn check_same_work(load: &Load, size: BookSize) {
    let outcomes = of_each!(outcome(load, size));
    let [.., expected] = &outcomes;
    for (name, got) in NAMES.iter().zip(&outcomes) {
        assert!(got == expected, "{}: {name} trades {} times, expected {}", load.name, got.0, expected.0);
    }
}

/// Runs the books in turns, `rounds` times. Returns sorted nanoseconds per operation of each.
fn alternate(load: &Load, size: BookSize, rounds: usize) -> [Vec<f64>; 5] {
    let mut all: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        all.iter_mut().zip(of_each!(once(load, size))).for_each(|(times, time)| times.push(time));
    }
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    all
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// Returns a row of medians with quartiles, and the speed relative to others.
pub fn row(load: &Load, rounds: usize) -> String {
    let size = book_size(load);
    check_same_work(load, size);
    let times = alternate(load, size, rounds);
    let cell = |times: &Vec<f64>| {
        let (low, high) = (times[times.len() / 4], times[times.len() * 3 / 4]);
        format!("{:.1} ({:.1}–{:.1})", median(times), low, high)
    };
    let ours = median(&times[0]);
    let crates = median(&times[2]).min(median(&times[3])) / ours;
    let map = median(&times[4]) / ours;
    let cells: Vec<String> = times.iter().map(cell).collect();
    format!("| {} | {} | {crates:.1}× | {map:.1}× |", load.name, cells.join(" | "))
}

/// Returns the times of single operations in ticks, sorted.
fn single<P: Peer>(load: &Load, size: BookSize) -> Vec<u64> {
    let Prepared { mut book, timed } = prepare::<P>(load, size);
    let clock = Tsc;
    let mut ticks = Vec::with_capacity(timed.len());
    for command in &timed {
        let before = clock.now();
        std::hint::black_box(book.run(command));
        ticks.push(clock.now() - before);
    }
    ticks.sort_unstable();
    ticks
}

fn ns_per_tick() -> f64 {
    let (started, before) = (Instant::now(), Tsc.now());
    while started.elapsed().as_millis() < 100 {}
    started.elapsed().as_nanos() as f64 / (Tsc.now() - before) as f64
}

/// Returns percentiles of single operations, medians of the rounds; last the clock alone.
pub fn percentiles(load: &Load, rounds: usize) -> Vec<String> {
    let (scale, size) = (ns_per_tick(), book_size(load));
    let mut all: [Vec<Vec<u64>>; 4] = Default::default();
    for _ in 0..rounds {
        let round = [
            single::<Ours>(load, size),
            single::<OrderbookRs>(load, size),
            single::<Matchcore>(load, size),
            single::<BTreeBook>(load, size),
        ];
        all.iter_mut().zip(round).for_each(|(runs, run)| runs.push(run));
    }
    let clock = (0..100_000).map(|_| (Tsc.now(), Tsc.now())).map(|(a, b)| b - a);
    let mut clock: Vec<u64> = clock.collect();
    clock.sort_unstable();
    let row = |name: &str, runs: &[Vec<u64>]| {
        let at = |per_mille: usize| {
            let mut of_runs: Vec<f64> =
                runs.iter().map(|run| run[run.len() * per_mille / 1000] as f64 * scale).collect();
            of_runs.sort_by(f64::total_cmp);
            median(&of_runs)
        };
        format!("| {name} | {:.0} | {:.0} | {:.0} |", at(500), at(990), at(999))
    };
    let names = [Ours::NAME, OrderbookRs::NAME, Matchcore::NAME, BTreeBook::NAME];
    let mut rows: Vec<String> = names.iter().zip(&all).map(|(name, runs)| row(name, runs)).collect();
    rows.push(row("the clock alone", &[clock]));
    rows
}

/// Iterates over all operations of a load.
pub fn operations(load: &Load) -> impl Iterator<Item = Op> {
    load.before.iter().chain(&load.timed).copied()
}
