//! `launcher board`: the benchmark of the single-writer board.
//!
//! The writer makes each write when it is due and never later on purpose: a slow write makes the
//! next ones late, and that is measured (open loop). The content of a value identifies its write,
//! so that readers find a torn one.

mod figures;
mod flags;
mod healthy;
mod histogram;
mod mode;
mod nodes;
mod over_time;

pub use flags::BoardFlags;

use crate::benchmark::{self, Benchmark};
use crate::progress::SweepProgress;
use crate::publish::save_and_print;
use analysis::experiment::{BoardCase, Boards};
use anyhow::{Context, Error, Result};
use flags::CaseSettings;
use planner::host::signals::{self, Signals};
use planner::result_folder::create_result_folder;
use protocol::plan::{BoardWork, Plan, ReaderWaiting, Technique, Workload};
use record::benchmark::Interruption;
use record::run::RunOutcome;
use std::fs;
use std::process::ExitCode;
use std::time::SystemTime;

/// Remarks on every case.
const NOTES: [&str; 5] = [
    "write: from before to behind the call, as the writer's core sees it; with park, the wake-up is part of it. Making a value's \
     content and checking it is in no time, but in writes/s and reads/s",
    "from due: from when the write was due (open loop: a late write is not forgiven)",
    "propagation: from before the write until a reader has the value whole; read: from when it saw the version",
    "stale: from when the version behind the one that a reader had was due until it has a newer one",
    "times over 1,000 ns are kept to one part in 1,000, greatest and least exactly; all readers' counts are added up",
];

/// Runs `launcher board`: measures all combinations of settings, saves after each, prints and
/// draws. `unfit` returns why the machine is unfit for latency figures just now.
pub fn run(flags: &BoardFlags, unfit: impl FnOnce() -> Vec<String>) -> Result<ExitCode> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let machine = planner::host::machine();
    let cells = flags.cells()?;
    let cores: Vec<Vec<u32>> =
        cells.iter().map(|cell| flags.cores(cell.nodes, &machine)).collect::<Result<_, _>>()?;
    benchmark::check_isolation(flags.isolation.iter().copied(), flags.allow_weaker_sandbox)?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let folder = create_result_folder(&flags.out, &started, "board")?;
    let discard = || fs::remove_dir_all(&folder);
    let mut benchmark =
        Benchmark::start(&signals, &folder, Interruption::Drain).inspect_err(|_| drop(discard()))?;
    let mut boards = Boards {
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        machine: machine.clone(),
        interrupted: false,
        warn: flags.warnings(),
        cases: Vec::new(),
        unfit: unfit(),
        notes: NOTES.map(String::from).into(),
    };
    benchmark::warn_unfit(&boards.unfit);
    let mut bar = SweepProgress::new(!flags.json, cells.len());
    for (number, cell) in cells.iter().enumerate() {
        bar.begin(&cell.mode.to_string(), number, cells.len() - number);
        let case = plan_of(cell, flags, &cores[number])?;
        // A case that was interrupted before its start has no figures.
        let made = benchmark.run(case.plan, &case.write_times).inspect_err(|_| {
            bar.clear();
            if boards.cases.is_empty() {
                let _ = discard();
            }
        })?;
        bar.end();
        boards.interrupted = made.as_ref().is_none_or(|made| made.outcome == RunOutcome::Interrupted);
        if let Some(made) = &made {
            let ns_per_tick = made.clock.ns_per_tick;
            over_time::save(&folder, number, made, &case.work, ns_per_tick)?;
            let case = figures::case(cell, case.is_shared, &case.work, made, ns_per_tick);
            boards.cases.push(BoardCase { warnings: boards.warn.check(&case), ..case });
        }
        boards.save(&folder)?;
        if boards.interrupted {
            break;
        }
    }
    bar.clear();
    save_and_print(&boards.answer().map_err(Error::msg)?, &boards.experiment(), &folder, flags.json)?;
    Ok(match (boards.interrupted, boards.cases.iter().all(|case| case.is_valid())) {
        (true, _) => signals::exit_code(),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The plan of a case.
struct PlannedCase {
    plan: Plan,
    work: BoardWork,
    /// When each write is due, in nanoseconds from the start; empty without due times.
    write_times: Vec<u64>,
    /// Readers share their cores.
    is_shared: bool,
}

fn plan_of(cell: &CaseSettings, flags: &BoardFlags, cores: &[u32]) -> Result<PlannedCase> {
    let duration_ns = flags.duration.0;
    let schedule = cell.mode.schedule(duration_ns, flags.seed.0)?;
    let write_times = schedule.map(|all| mode::due_times(&all, duration_ns).collect::<Vec<u64>>());
    let (cores, is_shared) = assign_cores(cores, cell.readers.into());
    let usual = if is_shared { ReaderWaiting::Yield } else { ReaderWaiting::Spin };
    let work = BoardWork {
        readers: cell.readers,
        waiting: cell.waiting.unwrap_or(usual),
        cells: flags.cells.0 as usize,
        words: cell.words,
        scheduled: write_times.as_ref().map(|times| times.len() as u64),
        duration_ns,
        folder: cell.folder.clone(),
    };
    let workload = Workload::Board(work.clone());
    let plan = Plan::for_benchmark(workload, Technique::default(), cell.isolation, &cores);
    let plan = Plan { weaker_sandbox: flags.allow_weaker_sandbox, ..plan };
    Ok(PlannedCase { plan, work, write_times: write_times.unwrap_or_default(), is_shared })
}

/// The cores of the writer and the readers, and whether readers share theirs with others.
fn assign_cores(cores: &[u32], readers: usize) -> (Vec<Option<u32>>, bool) {
    let rest = match cores {
        [] => return (vec![None; readers + 1], true),
        [only] => std::slice::from_ref(only),
        [_, rest @ ..] => rest,
    };
    let places = (0..readers).map(|reader| Some(rest[reader % rest.len()]));
    let all = std::iter::once(Some(cores[0])).chain(places).collect();
    (all, readers > 0 && (cores.len() == 1 || readers > rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writer_has_the_first_core_and_readers_the_others() {
        let some = |cores: &[u32]| cores.iter().map(|core| Some(*core)).collect::<Vec<_>>();
        assert_eq!(assign_cores(&[4, 5, 6], 2), (some(&[4, 5, 6]), false));
        assert_eq!(assign_cores(&[4, 5, 6], 3), (some(&[4, 5, 6, 5]), true));
        assert_eq!(assign_cores(&[0], 1), (some(&[0, 0]), true));
        assert_eq!(assign_cores(&[0], 0), (some(&[0]), false));
        assert_eq!(assign_cores(&[], 1), (vec![None, None], true));
    }
}
