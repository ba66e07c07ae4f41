//! `sweep`: which setting has the lowest latency, by the rule of evidence.

mod charts;
mod document;
mod knee;
mod picture;
mod ranking;
mod report;
mod tables;

pub use report::{condition_line, conditions, notes, report};
pub(super) use report::{point_sections, report_frame};

use super::runs::{self, ExperimentRuns};
use super::{Answer, Experiment, KindEntry, RowKind};
use picture::sweep_picture;
use std::path::Path;

/// What the kinds have in common whose rows are runs of the engine.
pub(super) const RUNS: KindEntry = KindEntry {
    title: "Sweep",
    keeps_failures: false,
    rows: RowKind::Run,
    is_complete: |row| row.outline().is_some_and(|run| run.complete),
    has_pairs: false,
    has_verdicts: false,
    has_sides: false,
    is_search: false,
    summary: runs::summary,
    fitness: runs::fitness,
    check: runs::check,
    answer,
    headlines: |_| Vec::new(),
    picture: None,
};

/// The entry of `launcher sweep` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command measures combinations of settings.
pub const KIND: KindEntry = KindEntry {
    has_verdicts: true,
    picture: Some(|experiment| {
        sweep_picture(&ExperimentRuns::new(experiment)).ok_or_else(|| NO_LOADS.into())
    }),
    ..RUNS
};

/// Why a sweep has no picture.
const NO_LOADS: &str = "the sweep varies neither work nor rate, or no run of it is sound; measure one: \
                        launcher sweep --technique spsc-mux,array-queue --work 0ns,500ns,1000ns";

/// Returns tables and charts of the runs, also of an experiment that is not complete.
pub(super) fn answer(experiment: &Experiment, _folder: &Path) -> Result<Answer, String> {
    let runs = ExperimentRuns::new(experiment);
    let json = document::json(experiment, &runs).map_err(|error| error.to_string())?;
    Ok(Answer { report: report(&runs), json })
}
