//! `launcher board`: the benchmark of the single-writer board.
//!
//! The writer makes each write when it is due and never later on purpose: a slow write makes the
//! next ones late, and that is measured (open loop). The content of a value identifies its write,
//! so that readers find a torn one.

mod figures;
mod flags;
mod mode;
mod work;

pub use flags::BoardFlags;
pub(super) use work::BoardWork;

use crate::experiments::bench::{self, BenchClock, BenchPlan};
use crate::experiments::progress::SweepProgress;
use crate::experiments::publish::save_and_print;
use crate::runtime::folder;
use crate::runtime::signals::Signals;
use analysis::experiment::Boards;
use anyhow::{Context, Error, Result};
use flags::CaseSettings;
use roles::bench::boards::Waiting;
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
    let machine = crate::host::machine();
    let cells = flags.cells()?;
    let cores = flags.cores(&machine)?;
    bench::check_sandbox(flags.isolation.iter().copied(), flags.allow_weaker_sandbox)?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let folder = folder::create_result_folder(&flags.out, &started, "board")?;
    let clock = BenchClock::start(&machine);
    let mut boards = Boards {
        version: env!("CARGO_PKG_VERSION").into(),
        started,
        machine,
        interrupted: false,
        warn: flags.warnings(),
        cases: Vec::new(),
        unfit: unfit(),
        notes: NOTES.map(String::from).into(),
    };
    bench::warn_unfit(&boards.unfit);
    let mut bar = SweepProgress::new(!flags.json, cells.len());
    for (number, cell) in cells.iter().enumerate() {
        bar.begin(&cell.mode.to_string(), number, cells.len() - number);
        let (mut plan, shared) = plan_of(cell, flags, &cores, &clock)?;
        let outcome = bench::run(&mut plan, &folder, &signals);
        let outcome = outcome.inspect_err(|_| {
            bar.clear();
            if boards.cases.is_empty() {
                let _ = fs::remove_dir_all(&folder);
            }
        })?;
        bar.end();
        boards.interrupted = outcome.interrupted;
        // A case that was interrupted before its start has no figures.
        if !(outcome.interrupted && outcome.start_ticks.is_none()) {
            boards.cases.push(figures::case(&cell.mode, shared, &plan, &outcome, clock.ns_per_tick()));
        }
        boards.save(&folder)?;
        if boards.interrupted {
            break;
        }
    }
    bar.clear();
    save_and_print(&boards.answer().map_err(Error::msg)?, &boards.experiment(), &folder, flags.json)?;
    Ok(match (boards.interrupted, boards.cases.iter().all(|case| case.is_sound())) {
        (true, _) => crate::runtime::signals::exit_code(),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The plan of a case, and whether its readers share their cores.
fn plan_of(
    cell: &CaseSettings,
    flags: &BoardFlags,
    cores: &[u32],
    clock: &BenchClock,
) -> Result<(BenchPlan<BoardWork>, bool)> {
    let due = cell.mode.due(flags.duration.0, flags.seed.0)?;
    let (cores, shared) = assign_cores(cores, cell.readers);
    let usual = if shared { Waiting::Yield } else { Waiting::Spin };
    let work = BoardWork {
        readers: cell.readers,
        waiting: cell.waiting.unwrap_or(usual),
        cells: flags.cells.0 as usize,
        words: cell.words,
        scheduled: due.as_ref().map(|due| due.len() as u64),
        duration_ns: flags.duration.0,
        due: due.unwrap_or_default(),
    };
    let plan = BenchPlan::new(clock, cell.isolation, cores, work);
    Ok((BenchPlan { weaker_sandbox: flags.allow_weaker_sandbox, ..plan }, shared))
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
