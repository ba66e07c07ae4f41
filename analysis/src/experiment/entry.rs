//! The entry of a kind in the table of kinds, and what an experiment of it shows.

use super::{Experiment, ExperimentReport};
use crate::fitness::Fitness;
use crate::stats::ComparisonLine;
use std::path::Path;

/// What the rest of the code asks about a kind of experiment.
pub struct KindEntry {
    /// The heading of its page.
    pub title: &'static str,
    /// Whether a failed run is a finding: not tried again, and no failure of the experiment.
    pub keeps_failures: bool,
    /// Whether its rows are runs of the engine: resumed and compared by the commands of runs.
    pub makes_runs: bool,
    /// Whether its runs make pairs that are replaced if they drop out.
    pub has_pairs: bool,
    /// What its folder is, and what shows it: `{}` is the folder.
    pub folder: &'static str,
    /// What is in its folder, in short: `bill of 2 settings, 5 repeats`.
    pub summary: fn(&Experiment) -> String,
    /// Whether its latencies may be quoted.
    pub fitness: fn(&Experiment) -> Fitness,
    /// Why its rows cannot be read.
    pub damage: fn(&Experiment) -> Result<(), String>,
    /// What its rows show. The folder has the runs.
    pub answer: fn(&Experiment, &Path) -> Result<Answer, String>,
    /// The comparisons at its endpoint, by which lost pairs are counted.
    pub headlines: fn(&Experiment) -> Vec<ComparisonLine>,
}

/// What the rows of an experiment show: for people and for programs.
pub struct Answer {
    /// Tables, charts and the answer in one sentence.
    pub report: ExperimentReport,
    /// The output of `--json`.
    pub json: Vec<u8>,
}
