//! Experiments: series of runs that are compared with each other. All follow one scheme.
//!
//! ```text
//! flags ─▶ cells (points: settings) ─▶ order of runs ─▶ run, outline, save ─▶ rows ─▶ document
//!                                           ▲                   │                         ▼
//!                                           └── --resume ── sweep.json     report: tables, page
//! ```
//!
//! An experiment is a folder: its flags, `run`, which makes the record with its cells and measures
//! it, and what makes its document of what was measured. A line in [`shown`] names it, so that
//! `--resume` and the page support it too. What a document shows is in `analysis::experiment`.
//! Axes, the order of the runs, the record and its file, resuming, printing and saving are the same
//! for all.
//!
//! What is compared (technique, isolation, idle, capacity …) is alternated within each condition
//! (work, strategies, venues, rate) and its order rotated between repeats; every repeat has a
//! schedule seed of its own that all share.

mod axes;
pub mod bill;
pub mod compare;
pub mod contain;
mod flags;
pub mod lab;
mod launch;
mod measure;
mod order;
mod points;
mod presets;
mod progress;
pub(crate) mod publish;
mod record;
mod search;
pub mod survey;
pub mod sweep;

use crate::config::UsageError;
use crate::shelf;
use analysis::document::Document;
use analysis::experiment::{Boards, Lab, SweepRecord, sweep as sweeps};
use analysis::record::RunRecord;
use anyhow::Result;
use launch::measure_missing;
use measure::MeasureEnd;
use publish::{PublishableReport, publish};
use std::path::Path;
use std::process::ExitCode;

/// Makes the missing runs of an experiment and publishes its report.
fn measure_and_publish(mut record: SweepRecord, folder: &Path, json: bool) -> Result<ExitCode> {
    let ended = measure_missing(&mut record, folder, json)?;
    publish(&record, folder, &report_of(&record, folder, ended)?, json, ended)
}

/// The report of an experiment of this kind. An incomplete bill is reported as a sweep, and so is a
/// comparison without a pair.
fn report_of(record: &SweepRecord, folder: &Path, ended: MeasureEnd) -> Result<PublishableReport> {
    match (record.kind.as_str(), ended) {
        ("bill", MeasureEnd::Complete) => bill::report(record, None),
        ("compare", _) if record.points.iter().all(|point| !point.runs.is_empty()) => compare::shown(record),
        ("contain", _) => contain::shown(record, folder),
        _ => PublishableReport::new(sweeps::report(record), record),
    }
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
    } else if let Some(last) = shelf::list_results(folder).ok().and_then(|all| all.into_iter().next_back()) {
        format!("a folder of results, not of a run: name one of them, for example {}", last.folder)
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{name}: {what}, and launcher report {name} --html draws it")))
}
