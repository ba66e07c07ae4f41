//! `sweep`: which setting is lowest, by the rule of evidence.

mod charts;
mod document;
mod knee;
mod picture;
mod ranking;
mod report;
mod tables;

pub use picture::sweep_picture;
pub use report::{condition_line, conditions, notes, report};
pub(super) use report::{point_sections, report_frame};

use super::runs::{self, ExperimentRuns};
use super::{Answer, Experiment, KindEntry};
use std::path::Path;

/// The entry of `launcher sweep`.
pub const KIND: KindEntry = KindEntry {
    title: "Sweep",
    keeps_failures: false,
    makes_runs: true,
    has_pairs: false,
    summary: runs::summary,
    fitness: runs::fitness,
    check: runs::check,
    answer,
    headlines: |_| Vec::new(),
};

/// Returns tables and charts of the runs, also of an experiment that is not complete.
pub(super) fn answer(experiment: &Experiment, _folder: &Path) -> Result<Answer, String> {
    let runs = ExperimentRuns::new(experiment);
    let json = document::json(experiment, &runs).map_err(|error| error.to_string())?;
    Ok(Answer { report: report(&runs), json })
}
