//! Replays CppTrader's cases and feature files of exchange-core through the exchange, and compares
//! books, trades and open orders with those that they expect: see README.md.
//!
//! ```text
//! scenarios [--broken] [FILE…]
//! ```

mod cpptrader;
mod market;

use market::Market;

/// One scenario: its name, and its steps with the rows of their tables.
struct Scenario {
    name: String,
    steps: Vec<(String, Vec<Vec<String>>)>,
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Reads a feature file. An outline gives a scenario for each row of its examples, of one column.
fn read(text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut is_in_examples = false;
    let mut read = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('@')) {
        if let Some(("Scenario" | "Scenario Outline" | "Background" | "Feature", name)) = line.split_once(':')
        {
            read.append(&mut scenarios);
            is_in_examples = false;
            scenarios.push(Scenario { name: name.trim().to_owned(), steps: Vec::new() });
        } else if line == "Examples:" {
            is_in_examples = true;
        } else if line.starts_with('|') && is_in_examples {
            let value = cells(line).remove(0);
            let outline = &scenarios[0];
            if value != "symbol" {
                let with = |(step, rows): &(String, _)| (step.replace("<symbol>", &value), Vec::clone(rows));
                let name = format!("{}, {value}", outline.name);
                read.push(Scenario { name, steps: outline.steps.iter().map(with).collect() });
            }
        } else if let Some(scenario) = scenarios.last_mut() {
            match scenario.steps.last_mut() {
                Some((_, rows)) if line.starts_with('|') => rows.push(cells(line)),
                _ => scenario.steps.push((line.to_owned(), Vec::new())),
            }
        }
    }
    read.append(&mut scenarios);
    // An outline itself has no symbol.
    read.retain(|scenario| !scenario.steps.iter().any(|(step, _)| step.contains("<symbol>")));
    read
}

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let is_broken = files.first().is_some_and(|first| first == "--broken");
    if is_broken {
        files.remove(0);
    }
    let replay = cpptrader::replay(cpptrader::TABLE, is_broken);
    replay.differences.iter().for_each(|difference| println!("{difference}"));
    let differing = replay.differences.len();
    println!(
        "CppTrader: {} expectations of {} cases checked, {} cases left out, {differing} cases differ",
        replay.checked, replay.cases, replay.left_out
    );
    let (mut checked, mut left_out, mut failures) = (0, 0, 0);
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        for scenario in read(&text) {
            let mut market = Market::new(is_broken);
            let result = scenario
                .steps
                .iter()
                .try_for_each(|(step, rows)| market.step(step, rows).map_err(|why| format!("{step}: {why}")));
            checked += market.checked;
            left_out += market.left_out;
            if let Err(why) = result {
                failures += 1;
                println!("{}: {why}", scenario.name);
            } else if market.checked > 0 {
                println!(
                    "{}: {} expectations hold, {} left out",
                    scenario.name, market.checked, market.left_out
                );
            }
        }
    }
    if !files.is_empty() {
        println!(
            "{checked} expectations checked, {left_out} left out (balances and risk), {failures} scenarios differ"
        );
    }
    let is_empty = !files.is_empty() && checked == 0;
    std::process::exit(i32::from(failures > 0 || differing > 0 || is_empty));
}
