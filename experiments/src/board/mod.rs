//! `launcher board`: the benchmark of the single-writer board.
//!
//! The writer makes each write when it is due and never later on purpose: a slow write makes the
//! next ones late, and that is measured (open loop). The content of a value identifies its write,
//! so that readers find a torn one.

mod case;
mod case_run;
mod figures;
mod flags;
mod healthy;
mod histogram;
mod mode;
mod nodes;
mod over_time;
mod skew;

pub use flags::BoardFlags;

use crate::benchmark::{self, Benchmark};
use crate::measure::{MeasureEnd, measure_rows};
use crate::progress::SweepProgress;
use crate::publish::{OutputForm, save_and_print};
use analysis::experiment::{BoardCase, BoardPlan, Boards};
use anyhow::{Context, Error, Result};
use case_run::BoardRuns;
use planner::host::signals::{self, Signals};
use planner::result_folder::create_result_folder;
use record::benchmark::Interruption;
use record::document::Document;
use std::fs;
use std::process::ExitCode;

/// Runs `launcher board`: measures boards (single-writer last-value caches) at all combinations of
/// settings, saves after each, prints and draws. `unfit` returns why the machine is unfit for
/// latency figures just now.
pub fn run(flags: &BoardFlags, unfit: impl FnOnce() -> Vec<String>) -> Result<ExitCode> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let mut record = flags.plan(&planner::host::machine())?;
    benchmark::check_isolation(flags.isolation.iter().copied(), flags.allow_weaker_sandbox)?;
    let folder = create_result_folder(&flags.out, &record.started, record.kind.name())?;
    let discard = || fs::remove_dir_all(&folder);
    let benchmark =
        Benchmark::start(&signals, &folder, Interruption::Drain).inspect_err(|_| drop(discard()))?;
    let mut plan = BoardPlan::from_experiment(&record).map_err(Error::msg)?;
    plan.unfit = unfit();
    record.figures.insert("unfit", &plan.unfit);
    benchmark::warn_unfit(&plan.unfit);
    record.set_launcher();
    record.save(&folder)?;
    let mut bar = SweepProgress::new(!flags.json, record.rows.len());
    let mut maker = BoardRuns::new(plan, benchmark, &folder);
    let ended = measure_rows(&mut record, &folder, &mut maker, &mut bar, &|_| None);
    bar.clear();
    if ended.is_err() && record.made().next().is_none() {
        let _ = discard();
    }
    let is_interrupted = ended? == MeasureEnd::Interrupted;
    save_and_print(&record.answer(&folder)?, &record, &folder, OutputForm::new(flags.json, flags.report))?;
    let cases = Boards::from_experiment(&record).map_err(Error::msg)?.cases;
    Ok(match (is_interrupted, cases.iter().all(BoardCase::is_valid)) {
        (true, _) => signals::exit_code(),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
