//! Prints the tables of docs/src/exchange.md: `cargo run --release [-- --rounds 15] [WORD…]`. With
//! words, only the rows whose names contain one of them.

use exchange_peers::{load, recorded, rows};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (rounds, words) = match words[..] {
        ["--rounds", number, ref words @ ..] => (number.parse().ok().filter(|rounds| *rounds > 0), words),
        ref words => (Some(15), words),
    };
    let (Some(rounds), false) = (rounds, words.iter().any(|word| word.starts_with('-'))) else {
        eprintln!("usage: exchange-peers [--rounds 15] [WORD…]");
        return ExitCode::from(2);
    };
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let head = format!("| {} | to the best crate | to the map |", rows::NAMES.join(" | "));
    let mixed = load::mixed(100_000, 1);

    println!("Nanoseconds an operation: median of {rounds} rounds (quartiles).\n");
    println!("| load {head}\n|---|---|---|---|---|---|---|---|");
    for load in [
        load::add(),
        load::cancel_middle(),
        load::cancel_touch(),
        load::sweep(),
        mixed.clone(),
        recorded::load(),
    ] {
        if wanted(&load.name) {
            println!("{}", rows::row(&load, rounds));
        }
    }

    println!("\nSingle operations of the mixed load, nanoseconds, the clock's cost included:\n");
    println!("| book | p50 | p99 | p99.9 |\n|---|---|---|---|");
    if wanted(&mixed.name) {
        rows::percentiles(&mixed, rounds).iter().for_each(|row| println!("{row}"));
    }

    println!(
        "\nCancels by the number of orders in the book: of any order (cold), and of the newest orders:\n"
    );
    println!("| load {head}\n|---|---|---|---|---|---|---|---|");
    for cancel in [load::cancel_any, load::cancel_newest] {
        for orders in [100, 1_000, 10_000, 100_000, 1_000_000] {
            let load = cancel(orders);
            if wanted(&load.name) {
                println!("{}", rows::row(&load, if orders > 10_000 { rounds.min(5) } else { rounds }));
            }
        }
    }

    println!(
        "\nThe loads of a published table, by its names; the last column is the percentage of operations that trade:\n"
    );
    println!("| load {head} trading |\n|---|---|---|---|---|---|---|---|---|");
    for load in load::published() {
        if wanted(&load.name) {
            println!("{} {:.1} % |", rows::row(&load, rounds), load::crossing_rate(&load));
        }
    }
    ExitCode::SUCCESS
}
