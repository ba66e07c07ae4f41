//! `launcher ladder`: every isolation level that this machine can do, side by side, in at most four
//! minutes.
//!
//! The levels' costs are those of a bill whose levels take turns on one core. Two faults and a read
//! of others' memory are those of `launcher contain`, two disturbances those of `launcher disturb`,
//! each with all levels. A strategy that runs in a Wasm runtime is compared with the same one in
//! Rust. Each part ends with its share of the time, after whole repeats.

use super::benchmark::check_isolation;
use super::bill::BillFlags;
use super::compare::CompareFlags;
use super::contain::ContainFlags;
use super::contain::disturb::DisturbFlags;
use super::doctor::MachineFindings;
use super::measure::MeasureEnd;
use super::nested::{NestedExperiment, measure_nested};
use super::progress::progress_line;
use super::publish::publish;
use ::record::document::{Document, write_atomically};
use ::record::fitness::Fitness;
use ::record::machine_check::MachineCheck;
use ::record::screen::stdout;
use analysis::experiment::ladder::{Ladder, LadderPart, Rung, folder_key, svg_card};
use analysis::experiment::{Experiment, ExperimentState, Kind};
use anyhow::{Context, Error, Result};
use catalog::RUNS;
use clap::Args;
use indicatif::ProgressBar;
use planner::config::value::SettingValue;
use planner::config::{Common, KindList, ReportLength, StrategyKind};
use planner::host::signals::{self, Signals};
use planner::result_folder::create_result_folder;
use protocol::plan::{Isolation, IsolationLevels};
use protocol::wire::MAX_STRATEGIES;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use system::speculation;
use verdict::table::grid::wrap_list_item;

/// The load of the cost, as flags of `launcher bill`.
const COST: &str = "--technique spsc-mux --strategy-cores 1 --idle park --crossover 50ms \
                    --delay uniform:500us..2ms --orders 200k --window 10s --repeats 12";
/// The load of modules, as flags of `launcher compare`. A strategy of either kind has one open
/// order, so the delay decides on the rate.
const WASM: &str = "--a strategy=native --b strategy=wasm --technique spsc-mux --isolation thread --strategy-cores 1 --idle park \
                    --delay uniform:500us..2ms --window 2s --repeats 6";
/// Orders of each strategy in such a run: two seconds of them.
const WASM_ORDERS: u32 = 1_500;
/// Why a launcher has no modules, and which one has.
const NO_WASM: &str =
    "this launcher has no strategy wasm; in contrib/examples/wasm-strategy: cargo run --release -- ladder";
/// The group among the levels: two strategies share a process.
const GROUP: &str = "process*2";
/// The level whose processes have closed speculation.
const CLOSED: &str = "process:closed";
/// A crash, writes over its own rings, and reads of others' memory. Short runs, so that all levels
/// fit the time.
const FAULTS: &str = "--technique spsc-mux --fault segv;scribble;read-others --orders 24k --window 800ms";
const DISTURBANCES: &str =
    "--technique spsc-mux --fault fork-storm;debugger --orders 10k --window 600ms --repeats 12";
/// The card, in the folder of the ladder.
const CARD: &str = "card.svg";

/// The command-line flags of `launcher ladder`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct LadderFlags {
    /// Measure the cost of N strategies of each level
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=MAX_EACH))]
    strategies: u16,
    /// Save it in a new folder in this one
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    out: PathBuf,
    /// Print JSON on stdout instead of tables
    #[arg(long)]
    json: bool,
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t)]
    report: ReportLength,
}

/// The most strategies of each level: those of all levels are in one run.
const MAX_EACH: i64 = (MAX_STRATEGIES / IsolationLevels::MAX) as i64;

/// Returns the load of the cost in words.
fn load(each: u16) -> String {
    let strategies = if each == 1 { "strategy" } else { "strategies" };
    format!("{each} {strategies} of each level, parked on one core, 20,000 orders/s")
}

/// Returns the time from the beginning of a ladder until a part ends.
const fn ends_after(part: LadderPart) -> Duration {
    Duration::from_secs(match part {
        LadderPart::Cost => 85,
        LadderPart::Wasm => 120,
        LadderPart::Faults => 155,
        LadderPart::Disturbances => 230,
    })
}

/// Returns each level with the reason why this machine cannot do it, if so.
fn rungs() -> Vec<Rung> {
    let rungs = |level: &Isolation| {
        let missing = check_isolation([*level].into_iter(), false).err();
        let alone = Rung::new(level.name(), missing.map(|error| format!("{error:#}")));
        match level {
            Isolation::Keys => vec![alone, Rung::new(Rung::WASM, missing_wasm())],
            Isolation::Process => {
                vec![Rung::new(GROUP, None), alone, Rung::new(CLOSED, speculation::missing())]
            }
            _ => vec![alone],
        }
    };
    Isolation::ALL.iter().flat_map(rungs).collect()
}

/// Returns why there are no modules to compare; `None` if the launcher that called has both kinds
/// of strategies.
fn missing_wasm() -> Option<String> {
    let has = |kind: &str| KindList::<StrategyKind>::parse(kind).is_ok();
    (!(has(Rung::WASM) && has("native"))).then(|| NO_WASM.into())
}

/// Returns the flags of the bill: all levels in turn, the threads once more as an A/A test.
fn cost_flags(levels: &[&str], each: u16) -> String {
    let turns: Vec<&str> = [Isolation::Thread.name()].into_iter().chain(levels.iter().copied()).collect();
    format!("{COST} --isolation {} --strategies {}", turns.join("+"), usize::from(each) * turns.len())
}

/// Returns the flags of the comparison of modules with as many strategies in Rust.
fn wasm_flags(each: u16) -> String {
    format!("{WASM} --strategies {each} --orders {}", u32::from(each) * WASM_ORDERS)
}

/// Returns the record of a ladder in which nothing is measured.
fn plan(rungs: &[Rung], each: u16, checks: &[MachineCheck]) -> Experiment {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let machine = planner::host::machine();
    let mut record = Experiment {
        state: ExperimentState::Interrupted,
        ..Experiment::new(Kind::Ladder, env!("CARGO_PKG_VERSION"), &started, &machine)
    };
    record.figures.insert(Rung::NAME, &rungs);
    record.figures.insert("load", &load(each));
    let reasons = checks.iter().filter_map(MachineCheck::reason).collect();
    record.figures.insert("fitness", &Fitness::new(reasons));
    record
}

/// Runs `launcher ladder`: measures what each isolation level costs and prevents on this machine,
/// and draws one summary image (a card). `find` asks `launcher doctor`.
pub fn run(flags: &LadderFlags, find: impl FnOnce() -> MachineFindings) -> Result<ExitCode> {
    let began = Instant::now();
    let _signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let rungs = rungs();
    let mut record = plan(&rungs, flags.strategies, &find().checks);
    let folder = create_result_folder(&flags.out, &record.started, record.kind.name())?.canonicalize()?;
    record.save(&folder)?;
    let bar = progress_line(!flags.json, None, "{spinner} {elapsed} of at most 4m · {prefix} · {wide_msg}");
    let possible: Vec<&str> =
        rungs.iter().filter(|rung| rung.missing.is_none()).map(|rung| rung.level.as_str()).collect();
    for part in LadderPart::ALL {
        if *part == LadderPart::Wasm && !possible.contains(&Rung::WASM) {
            continue;
        }
        bar.set_prefix(part.name());
        match measure((*part, flags.strategies), &possible, &folder, began + ends_after(*part), &bar) {
            Ok(NestedExperiment { folder: own, shortfall, .. }) => {
                let name = own.file_name().unwrap_or_default().to_string_lossy().into_owned();
                record.figures.insert(&folder_key(*part), &name);
                record.notes.extend(shortfall.map(|why| format!("{part}: {why}")));
            }
            Err(error) => {
                let why = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
                record.notes.push(format!("{part}: not measured: {why}"));
            }
        }
        record.save(&folder)?;
        if signals::is_end_requested() {
            break;
        }
    }
    bar.finish_and_clear();
    let is_interrupted = signals::is_end_requested();
    if !is_interrupted {
        record.state = ExperimentState::Complete;
    }
    finish(&mut record, &folder, flags, is_interrupted)
}

/// Measures a part with `each` strategies of each level, where their number is free.
fn measure(
    (part, each): (LadderPart, u16),
    rungs: &[&str],
    folder: &Path,
    until: Instant,
    bar: &ProgressBar,
) -> Result<NestedExperiment> {
    let show = |kind: Kind, number| bar.set_message(format!("{kind}, run {number}"));
    // Strategies of the kind wasm are at the level thread.
    let levels: Vec<&str> = rungs.iter().copied().filter(|rung| *rung != Rung::WASM).collect();
    let all = levels.join(",");
    match part {
        LadderPart::Cost => measure_nested::<BillFlags>(&cost_flags(&levels, each), folder, until, &show),
        LadderPart::Wasm => measure_nested::<CompareFlags>(&wasm_flags(each), folder, until, &show),
        LadderPart::Faults => {
            measure_nested::<ContainFlags>(&format!("{FAULTS} --isolation {all}"), folder, until, &show)
        }
        LadderPart::Disturbances => {
            let flags = format!("{DISTURBANCES} --isolation {all}");
            measure_nested::<DisturbFlags>(&flags, folder, until, &show)
        }
    }
}

/// Saves the card and prints the answer.
fn finish(
    record: &mut Experiment,
    folder: &Path,
    flags: &LadderFlags,
    is_interrupted: bool,
) -> Result<ExitCode> {
    let ladder = Ladder::read(record, folder).map_err(Error::msg)?;
    record.figures.insert("fitness", &ladder.fitness);
    record.save(folder)?;
    write_atomically(&folder.join(CARD), svg_card(&ladder).as_bytes())?;
    let common = Common { json: flags.json, report: flags.report, ..Common::default() };
    let ended = if is_interrupted { MeasureEnd::Interrupted } else { MeasureEnd::Complete };
    let code = publish(record, folder, &record.answer(folder)?, &common, ended)?;
    if !flags.json {
        // The first screen has the table without its notes.
        if flags.report == ReportLength::Short {
            for why in ladder.missing() {
                writeln!(stdout(), "{}", wrap_list_item(&why))?;
            }
        }
        writeln!(stdout(), "For an issue: {}\nCard: {}", ladder.line(), folder.join(CARD).display())?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nested::flags;

    #[test]
    fn every_command_can_be_typed() {
        let cost = cost_flags(&["thread", "process:closed"], 16);
        assert!(cost.ends_with("--isolation thread+thread+process:closed --strategies 48"), "{cost}");
        flags::<BillFlags>(&cost, None).unwrap();
        assert!(wasm_flags(16).ends_with("--strategies 16 --orders 24000"));
        flags::<CompareFlags>(&wasm_flags(4), None).unwrap();
        flags::<ContainFlags>(&format!("{FAULTS} --isolation thread,process:closed"), None).unwrap();
        flags::<DisturbFlags>(&format!("{DISTURBANCES} --isolation thread"), None).unwrap();
        assert!(LadderPart::ALL.iter().all(|part| ends_after(*part) < Duration::from_secs(240)));
    }

    #[test]
    fn every_level_is_a_row() {
        let rungs = rungs();
        let levels: Vec<&str> = rungs.iter().map(|rung| rung.level.as_str()).collect();
        assert!(Isolation::ALL.iter().all(|level| levels.contains(&level.name())), "{levels:?}");
        assert!([GROUP, CLOSED, Rung::WASM].iter().all(|level| levels.contains(level)), "{levels:?}");
        assert_eq!(rungs[0].missing, None, "threads are everywhere");
        let turns = levels.iter().filter(|level| **level != Rung::WASM).count() + 1;
        assert!(turns <= IsolationLevels::MAX, "all levels take turns in one run, threads twice");
        let wasm = rungs.iter().find(|rung| rung.level == Rung::WASM).unwrap();
        assert!(wasm.missing.as_ref().is_some_and(|why| why.contains("cargo run --release -- ladder")));
        let closed = rungs.iter().find(|rung| rung.level == CLOSED).unwrap();
        assert_eq!(closed.missing.is_some(), speculation::try_close().is_err());
    }
}
