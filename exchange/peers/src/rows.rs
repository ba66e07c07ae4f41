//! Runs loads through the books, one after the other in turns, and prints medians and spreads.

use crate::load::{Load, Op};
use crate::obvious::Obvious;
use crate::peers::{Matchcore, OrderbookRs, Ours, Peer, Room, Together};
use exchange::Capacity;
use system::clock::{Clock, Tsc};
use system::usage::thread_cpu_ns;
use std::time::Instant;

pub const NAMES: [&str; 5] = [Ours::NAME, Together::NAME, OrderbookRs::NAME, Matchcore::NAME, Obvious::NAME];

/// Few operations are timed together with others of their kind, each in a book of its own: or the
/// clock would be measured.
fn books_at_once(load: &Load) -> usize {
    (512 / load.timed.len()).clamp(1, 32)
}

struct Prepared<P: Peer> {
    book: P,
    timed: Vec<P::Command>,
}

/// The most orders and prices that are there at once in a load, and room for one more, and its
/// highest price: by the obvious book.
pub fn room(load: &Load) -> Room {
    let mut book = Obvious::new();
    let (mut orders, mut levels, mut highest) = (0, 0, 1);
    for op in operations(load) {
        book.apply(op);
        orders = orders.max(book.len());
        levels = levels.max(book.levels());
        highest = highest.max(op.price().unwrap_or(0));
    }
    Room { capacity: Capacity { orders: orders + 1, levels: levels + 1 }, highest }
}

fn prepare<P: Peer>(load: &Load, room: Room) -> Prepared<P> {
    let mut book = P::fresh(room);
    for op in &load.before {
        let command = book.translate(*op);
        book.run(&command);
    }
    let timed = load.timed.iter().map(|op| book.translate(*op)).collect();
    Prepared { book, timed }
}

/// Nanoseconds of processor time an operation: what other programs take of the machine does not
/// count.
pub fn once<P: Peer>(load: &Load, room: Room) -> f64 {
    let mut books: Vec<Prepared<P>> = (0..books_at_once(load)).map(|_| prepare(load, room)).collect();
    let started = thread_cpu_ns();
    for Prepared { book, timed } in &mut books {
        std::hint::black_box(book.run_all(timed));
    }
    let ns = thread_cpu_ns() - started;
    // A look at this clock is a system call, and there is one in between two.
    ns.saturating_sub(clock_ns()) as f64 / (books.len() * load.timed.len()) as f64
}

/// What a look at the clock of processor time costs, at the median.
fn clock_ns() -> u64 {
    let mut times = [(); 101].map(|()| {
        let started = thread_cpu_ns();
        thread_cpu_ns() - started
    });
    times.sort_unstable();
    times[50]
}

/// Number of trades and both sides of the book at the end.
type Outcome = (u64, [Vec<(u64, u64)>; 2]);

fn outcome<P: Peer>(load: &Load, room: Room) -> Outcome {
    let Prepared { mut book, timed } = prepare::<P>(load, room);
    let trades = book.run_all(&timed);
    (trades, [book.depth(true), book.depth(false)])
}

/// Each book must have done the same work.
///
/// # Panics
/// If one of them trades differently or ends with another book.
pub fn check_same_work(load: &Load, room: Room) {
    let expected = outcome::<Obvious>(load, room);
    let others = [
        outcome::<Ours>(load, room),
        outcome::<Together>(load, room),
        outcome::<OrderbookRs>(load, room),
        outcome::<Matchcore>(load, room),
    ];
    for (name, got) in NAMES.iter().zip(others) {
        assert!(got == expected, "{}: {name} trades {} times, expected {}", load.name, got.0, expected.0);
    }
}

/// The books one after the other, so many times: nanoseconds an operation of each, sorted.
pub fn alternate(load: &Load, room: Room, rounds: usize) -> [Vec<f64>; 5] {
    let mut all: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        let round = [
            once::<Ours>(load, room),
            once::<Together>(load, room),
            once::<OrderbookRs>(load, room),
            once::<Matchcore>(load, room),
            once::<Obvious>(load, room),
        ];
        all.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
    }
    all.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    all
}

pub fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

/// A row of a Markdown table: medians with their quartiles, and how many times as fast as the
/// fastest other crate and the map.
pub fn row(load: &Load, rounds: usize) -> String {
    let room = room(load);
    check_same_work(load, room);
    let times = alternate(load, room, rounds);
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

/// Single operations of one run, in ticks, sorted.
fn single<P: Peer>(load: &Load, room: Room) -> Vec<u64> {
    let Prepared { mut book, timed } = prepare::<P>(load, room);
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

/// Percentiles of single operations: of each round, then the median of the rounds. The last row is
/// the clock alone.
pub fn percentiles(load: &Load, rounds: usize) -> Vec<String> {
    let (scale, room) = (ns_per_tick(), room(load));
    let mut all: [Vec<Vec<u64>>; 4] = Default::default();
    for _ in 0..rounds {
        let round = [
            single::<Ours>(load, room),
            single::<OrderbookRs>(load, room),
            single::<Matchcore>(load, room),
            single::<Obvious>(load, room),
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
    let names = [Ours::NAME, OrderbookRs::NAME, Matchcore::NAME, Obvious::NAME];
    let mut rows: Vec<String> = names.iter().zip(&all).map(|(name, runs)| row(name, runs)).collect();
    rows.push(row("the clock alone", &[clock]));
    rows
}

/// The operations of a load, for tests.
pub fn operations(load: &Load) -> impl Iterator<Item = Op> {
    load.before.iter().chain(&load.timed).copied()
}
