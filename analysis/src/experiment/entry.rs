//! The entry of a kind in the table of kinds, and what an experiment of it shows.

use super::{Experiment, ExperimentReport, Row};
use crate::stats::ComparisonLine;
use record::fitness::Fitness;
use std::path::Path;

/// A function that draws the picture of an experiment, or returns why there is none.
pub type DrawPicture = fn(&Experiment) -> Result<String, String>;

/// The properties of a kind of experiment, and the functions that read its rows.
pub struct KindEntry {
    /// The heading of its page.
    pub title: &'static str,
    /// Whether a failed run is a finding: not tried again, and no failure of the experiment.
    pub keeps_failures: bool,
    /// What makes its rows.
    pub rows: RowKind,
    /// Whether a row that was made needs not be made again.
    pub is_complete: fn(&Row) -> bool,
    /// Whether its runs make pairs that are replaced if they drop out.
    pub has_pairs: bool,
    /// Whether its latencies are compared by the rule of evidence. A busy machine leaves that open.
    pub has_verdicts: bool,
    /// Whether its settings are the two sides of a comparison, which are named instead of varied.
    pub has_sides: bool,
    /// Whether its rows are tries, planned one after the other, as in the search for a rate.
    pub is_search: bool,
    /// The line of `launcher list` for its folder: `bill of 2 settings, 5 repeats`.
    pub summary: fn(&Experiment) -> String,
    /// Whether its latencies may be quoted.
    pub fitness: fn(&Experiment) -> Fitness,
    /// Checks that all rows can be read. Returns the first reason why one cannot.
    pub check: fn(&Experiment) -> Result<(), String>,
    /// Converts its rows into tables, charts and JSON. The folder has the runs.
    pub answer: fn(&Experiment, &Path) -> Result<Answer, String>,
    /// The comparisons at its endpoint. Their pairs of runs that dropped out are replaced.
    pub headlines: fn(&Experiment) -> Vec<ComparisonLine>,
    /// Draws its picture as a whole SVG file, or returns why there is none. `None`: the picture is
    /// that of a bill.
    pub picture: Option<DrawPicture>,
}

/// What a row of an experiment is: the commands that compare runs refuse others than those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A run of the engine.
    Run,
    /// A run of a queue, without an engine.
    QueueRun,
    /// A run of a board, without an engine.
    BoardRun,
    /// A part of a survey, which is an experiment.
    SurveyPart,
}

/// What the rows of an experiment show: for people and for programs.
pub struct Answer {
    /// Tables, charts and the answer in one sentence.
    pub report: ExperimentReport,
    /// The output of `--json`.
    pub json: Vec<u8>,
}
