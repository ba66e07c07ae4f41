//! Replays CppTrader's cases, feature files of exchange-core and message files of LOBSTER through
//! the exchange, and compares books, trades and open orders with theirs: see README.md.
//!
//! ```text
//! scenarios [--broken] [FILE…]          a file that ends in .csv is one of LOBSTER
//! ```
//!
//! Exits with 1 if something differs; with `--broken` only if every replay differs. Exits with 2 if
//! an option or a file is invalid.

mod cpptrader;
mod lobster;
mod market;

use lobster::replay::{Counts, Defect};
use market::Market;
use std::process::exit;

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

/// Prints an error of usage or of a file, and exits.
fn fail(why: &str) -> ! {
    eprintln!("scenarios: {why}");
    exit(2)
}

fn text(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| fail(&format!("{file}: {error}")))
}

/// Replays CppTrader's cases. Returns `true` if any differs.
fn replay_cpptrader(is_broken: bool) -> bool {
    let replay = cpptrader::replay(cpptrader::TABLE, is_broken);
    replay.differences.iter().for_each(|difference| println!("{difference}"));
    let differing = replay.differences.len();
    println!(
        "CppTrader: {} expectations of {} cases checked, {} cases left out, {differing} cases differ",
        replay.checked, replay.cases, replay.left_out
    );
    differing > 0
}

/// Replays feature files. Returns `true` if any scenario differs, or none has an expectation.
fn replay_features(files: &[String], is_broken: bool) -> bool {
    let (mut checked, mut left_out, mut failures) = (0, 0, 0);
    for file in files {
        for scenario in read(&text(file)) {
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
    println!(
        "{checked} expectations checked, {left_out} left out (balances and risk), {failures} scenarios differ"
    );
    failures > 0 || checked == 0
}

/// Replays a message file. Returns `true` if anything differs, or nothing was checked.
fn replay_lobster(file: &str, defect: Option<Defect>) -> bool {
    let messages = lobster::read(&text(file)).unwrap_or_else(|why| fail(&format!("{file}, {why}")));
    let replay = lobster::replay::replay(&messages, defect);
    replay.differences.iter().take(3).for_each(|difference| println!("{file}, {difference}"));
    if defect.is_none() {
        replay.passed_over.iter().for_each(|execution| println!("{file}, left out: {execution}"));
    }
    let Counts { submissions, partial_cancels, deletions, executions, hidden_executions, .. } = replay.counts;
    let Counts { takers, late, moved, passed_over, crosses_and_halts, differing, .. } = replay.counts;
    let Counts { unknown_deletions, unknown_executions, unknown_partial_cancels, .. } = replay.counts;
    let held = submissions + partial_cancels + deletions + executions + hidden_executions;
    let defect = defect.map(|defect| format!(", {defect:?}")).unwrap_or_default();
    println!(
        "LOBSTER, {file}{defect}: {} messages, {held} expectations hold, {differing} differ
  held: {submissions} submissions, {partial_cancels} partial cancels, {deletions} deletions, \
         {executions} executions by {takers} orders, {hidden_executions} hidden executions
  left out: {passed_over} executions although another order had priority; of orders that are not submitted \
         {unknown_deletions} deletions, {unknown_executions} executions, \
         {unknown_partial_cancels} partial cancels; {crosses_and_halts} crosses and halts
  {late} late submissions, {moved} orders entered again behind them",
        messages.len()
    );
    differing > 0 || held == 0
}

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let is_broken = files.first().is_some_and(|first| first == "--broken");
    if is_broken {
        files.remove(0);
    }
    if let Some(option) = files.iter().find(|file| file.starts_with('-')) {
        fail(&format!("unknown option {option}; usage: scenarios [--broken] [FILE…]"));
    }
    let (messages, features): (Vec<String>, Vec<String>) =
        files.into_iter().partition(|file| file.ends_with(".csv"));
    let mut differs = vec![replay_cpptrader(is_broken)];
    if !features.is_empty() {
        differs.push(replay_features(&features, is_broken));
    }
    let defects = if is_broken { Defect::ALL.map(Some).to_vec() } else { vec![None] };
    for file in &messages {
        differs.extend(defects.iter().map(|&defect| replay_lobster(file, defect)));
    }
    let is_found = if is_broken { !differs.contains(&false) } else { differs.contains(&true) };
    exit(i32::from(is_found));
}
