//! The entry of a kind of experiment in the table of kinds, and the answer that an experiment
//! gives.

use super::{Experiment, ExperimentReport, Row};
use crate::stats::ComparisonLine;
use record::fitness::Fitness;
use std::path::Path;

/// A function that draws an experiment's picture as a whole SVG file, or returns the reason why
/// there is none.
pub type DrawPicture = fn(&Experiment) -> Result<String, String>;

/// An entry in the table of experiment kinds: title, kind of rows, and functions that compute an
/// experiment's report, JSON and fitness from its rows.
pub struct KindEntry {
    /// The heading of the experiment's page.
    pub title: &'static str,
    /// Whether a failed run is a finding: not tried again, and no failure of the experiment.
    pub keeps_failures: bool,
    /// The kind of the experiment's rows.
    pub rows: RowKind,
    /// Returns `true` if a row that was made need not be made again.
    pub is_complete: fn(&Row) -> bool,
    /// Whether the runs make pairs that are replaced if they drop out.
    pub has_pairs: bool,
    /// Whether latencies are compared by the rule of evidence. A busy machine leaves that open.
    pub has_verdicts: bool,
    /// Whether the settings are the two sides of a comparison, which are named instead of varied.
    pub has_sides: bool,
    /// Whether the rows are tries, planned one after the other, as in the search for a rate.
    pub is_search: bool,
    /// Formats the line of `launcher list` for an experiment: `bill of 2 settings, 5 repeats`.
    pub summary: fn(&Experiment) -> String,
    /// Returns whether the latencies of an experiment may be quoted.
    pub fitness: fn(&Experiment) -> Fitness,
    /// Checks that all rows of an experiment can be read. Returns the first reason why one cannot.
    pub check: fn(&Experiment) -> Result<(), String>,
    /// Converts the rows of an experiment into tables, charts and JSON. The folder has the runs.
    pub answer: fn(&Experiment, &Path) -> Result<Answer, String>,
    /// Returns the comparisons at the experiment's endpoint. Their pairs of runs that dropped out
    /// are replaced.
    pub headlines: fn(&Experiment) -> Vec<ComparisonLine>,
    /// Draws the experiment's picture as a whole SVG file, or returns why there is none. `None`:
    /// the picture is that of a bill.
    pub picture: Option<DrawPicture>,
}

/// What a row of an experiment records: one run of the engine, a queue or a board, or one part of a
/// survey or ladder. A survey and a ladder consist of several experiments on one machine. Commands
/// that compare runs refuse kinds other than [`RowKind::Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A run of the engine.
    Run,
    /// A run of a queue, without an engine.
    QueueRun,
    /// A run of a board, without an engine.
    BoardRun,
    /// A part of a survey, which is an experiment of its own.
    SurveyPart,
}

/// The answer of an experiment, computed from its rows: a report for people and JSON for programs.
pub struct Answer {
    /// Tables, charts and the answer in one sentence, for people.
    pub report: ExperimentReport,
    /// The output of `--json`, for programs.
    pub json: Vec<u8>,
}
