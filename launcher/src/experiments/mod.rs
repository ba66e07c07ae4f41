//! Experiments: series of runs that are compared with each other. All follow one scheme.
//!
//! ```text
//! flags ─▶ cells (points: settings) ─▶ order of runs ─▶ run, outline, save ─▶ rows ─▶ document
//!                                           ▲                   │                         ▼
//!                                           └── --resume ── sweep.json     report: tables, page
//! ```
//!
//! An experiment is a folder: its flags, which are an [`Experiment`], `run`, and what makes its
//! document of what was measured. A line in [`report_of`] names it, so that `--resume` and the page
//! support it too. What a document shows is in `analysis::experiment`.
//! Axes, the order of the runs, the record and its file, resuming, printing and saving are the same
//! for all. Every repeat has a schedule seed of its own that all points share.

mod benchmark;
pub mod bill;
pub mod board;
pub mod compare;
pub mod contain;
mod dry_run;
mod flags;
mod forecast;
pub mod lab;
mod launch;
mod measure;
mod order;
mod pairs;
mod points;
mod presets;
mod progress;
pub(crate) mod publish;
mod record;
mod search;
pub mod survey;
pub mod sweep;

use crate::config::{Common, UsageError};
use crate::host::Machine;
use crate::output::complain;
use crate::shelf;
use analysis::document::Document;
use analysis::experiment::{Boards, Containments, Lab, Survey, SweepRecord, sweep as sweeps};
use analysis::record::RunRecord;
use analysis::stats::ComparisonLine;
use anyhow::Result;
use clap::Args;
use launch::measure_missing;
use measure::MeasureEnd;
use progress::Pace;
use publish::{PublishableReport, publish};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn measure_and_publish(mut record: SweepRecord, folder: &Path, common: &Common) -> Result<ExitCode> {
    let ended = measure_experiment(&mut record, folder, common.json)?;
    record.save(folder)?;
    publish(&record, folder, &report_of(&record, folder, ended)?, common, ended)
}

/// Makes the missing runs of an experiment, and those that replace lost pairs. Warns first of what
/// its plan shows already.
fn measure_experiment(record: &mut SweepRecord, folder: &Path, json: bool) -> Result<MeasureEnd> {
    forecast::warnings(record).iter().for_each(|warning| complain(&format!("warning: {warning}")));
    let say = |line: &str| {
        // Measure even if the line cannot be printed.
        let _ = if json { Ok(()) } else { writeln!(crate::output::stdout(), "{line}") };
    };
    let mut pace = Pace::default();
    let measure = |record: &mut SweepRecord| measure_missing(record, folder, json, &mut pace);
    pairs::measure_pairs(record, measure, headlines, say)
}

/// The comparisons by which an experiment counts its pairs, at the median of `rt_venue`; none of
/// one without pairs.
fn headlines(record: &SweepRecord) -> Result<Vec<ComparisonLine>> {
    match record.kind.as_str() {
        "compare" => compare::headlines(record),
        "bill" => bill::headlines(record),
        _ => Ok(Vec::new()),
    }
}

/// The flags of a command that makes runs.
trait Experiment: Args {
    /// Returns the record of the requested experiment, with nothing measured and nothing saved.
    fn plan(&self, machine: Machine) -> Result<SweepRecord>;

    /// Creates the record and the folder of the experiment.
    fn begin(&self) -> Result<(SweepRecord, PathBuf)> {
        record::create(self.plan(crate::host::machine())?)
    }
}

/// The report of an experiment of this kind. An incomplete bill is reported as a sweep, and so is a
/// comparison without a pair.
fn report_of(record: &SweepRecord, folder: &Path, ended: MeasureEnd) -> Result<PublishableReport> {
    match (record.kind.as_str(), ended) {
        ("bill", MeasureEnd::Complete) => bill::report(record, None),
        ("compare", _) if record.points.iter().all(|point| !point.runs.is_empty()) => compare::report(record),
        ("contain", _) => contain::report(record, folder, ended),
        _ => PublishableReport::new(sweeps::report(record), record),
    }
}

fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(UsageError(message.into()).into())
}

/// Returns an error for a benchmark's run where one with orders is needed.
pub fn check_has_orders(record: &RunRecord, folder: &Path) -> Result<(), UsageError> {
    if record.plan.is_trading() {
        return Ok(());
    }
    let name = folder.display();
    Err(UsageError(format!(
        "{name}: a run of a benchmark, which sends no orders; launcher inspect {name} shows its ends, and the folder above \
         `runs` has their figures"
    )))
}

/// Returns an error for the folder of an experiment where a run's is needed, naming the right
/// command.
pub fn check_is_run_folder(folder: &Path) -> Result<(), UsageError> {
    if folder.join(RunRecord::FILE).exists() {
        return Ok(());
    }
    let name = folder.display();
    let what = if folder.join(SweepRecord::FILE).exists() {
        match record::read(folder) {
            Ok(record) if ["bill", "compare"].contains(&record.kind.as_str()) => {
                format!("the folder of a {0}, not of a run: launcher {0} {name} shows it", record.kind)
            }
            _ => format!("the folder of many runs, not of one: launcher sweep --resume {name} shows it"),
        }
    } else if folder.join(Lab::FILE).exists() {
        format!("the folder of a lab, not of a run: launcher lab --resume {name} shows it")
    } else if folder.join(Boards::FILE).exists() {
        "the folder of a board's benchmark, not of a run".into()
    } else if folder.join(Containments::FILE).exists() {
        "the folder of a containment table, not of a run".into()
    } else if folder.join(Survey::FILE).exists() {
        "the folder of a survey, not of a run: its card.txt is the report".into()
    } else if let Some(last) = shelf::list_results(folder).ok().and_then(|all| all.into_iter().next_back()) {
        format!("a folder of results, not of a run: name one of them, for example {}", last.folder)
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{name}: {what}, and launcher report {name} --html draws it")))
}
