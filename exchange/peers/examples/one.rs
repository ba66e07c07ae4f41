//! Runs one load through one book, for `valgrind --tool=callgrind`: `cargo run --release --example
//! one -- BOOK LOAD [ROUNDS]`, both by a prefix of their names. Prints the median and the lowest
//! CPU time per operation in nanoseconds.

use exchange_peers::load::{self, Load};
use exchange_peers::obvious::Obvious;
use exchange_peers::peers::{BookSize, Matchcore, OrderbookRs, Ours, Peer, Together};
use exchange_peers::{recorded, rows};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (book, name, rounds) = match &arguments[..] {
        [book, name] => (book, name, 1),
        [book, name, rounds] => (book, name, rounds.parse().unwrap_or(1)),
        _ => return usage(),
    };
    let Some(load) = loads().into_iter().find(|load| load.name.starts_with(name.as_str())) else {
        return usage();
    };
    let once: fn(&Load, BookSize) -> f64 = match book.as_str() {
        Ours::NAME => rows::once::<Ours>,
        Together::NAME => rows::once::<Together>,
        Matchcore::NAME => rows::once::<Matchcore>,
        OrderbookRs::NAME => rows::once::<OrderbookRs>,
        Obvious::NAME => rows::once::<Obvious>,
        _ => return usage(),
    };
    let size = rows::book_size(&load);
    let mut times: Vec<f64> = (0..rounds).map(|_| once(&load, size)).collect();
    times.sort_by(f64::total_cmp);
    println!("{book}, {}: {:.1} ns, lowest {:.1}", load.name, rows::median(&times), times[0]);
    ExitCode::SUCCESS
}

fn loads() -> Vec<Load> {
    let mut all = vec![load::add(), load::cancel_middle(), load::cancel_touch(), load::sweep()];
    all.extend([load::mixed(100_000, 1), recorded::load()]);
    all.extend([100, 1_000, 10_000, 100_000, 1_000_000].map(load::cancel_any));
    all.extend([100, 1_000, 10_000, 100_000, 1_000_000].map(load::cancel_young));
    all.extend(load::published());
    all
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: one BOOK LOAD [ROUNDS], with a book of {:?} and a load such as \"mixed load\"",
        rows::NAMES
    );
    ExitCode::from(2)
}
