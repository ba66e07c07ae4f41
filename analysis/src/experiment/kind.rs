//! The kinds of experiments: one table, an entry for each kind.
//!
//! A kind is what is asked of an experiment's rows. Its entry is in the file of its query.

use super::{Experiment, ExperimentReport, bill, board, compare, contain, lab, search, survey, sweep};
use crate::fitness::Fitness;
use crate::stats::ComparisonLine;
use std::path::Path;
use system::named_enum;

named_enum! {
    /// What is asked of the rows of an experiment.
    Kind {
        /// Which setting is lowest.
        Sweep = "sweep",
        /// Which rate holds a bound.
        MaxRate = "max-rate",
        /// What each isolation level costs.
        Bill = "bill",
        /// Whether B is slower than A.
        Compare = "compare",
        /// Where faults stay.
        Contain = "contain",
        /// Which queue and which way of waiting.
        Lab = "lab",
        /// What a board's readers see.
        Board = "board",
        /// What one machine shows in all of them.
        Survey = "survey",
    }
}

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

impl Kind {
    /// Returns the kind's entry.
    pub const fn entry(self) -> &'static KindEntry {
        match self {
            Self::Sweep => &sweep::KIND,
            Self::MaxRate => &search::KIND,
            Self::Bill => &bill::KIND,
            Self::Compare => &compare::KIND,
            Self::Contain => &contain::KIND,
            Self::Lab => &lab::KIND,
            Self::Board => &board::KIND,
            Self::Survey => &survey::KIND,
        }
    }
}

impl KindEntry {
    /// Checks that the rows of an experiment are what its query reads.
    pub fn check(&self, experiment: &Experiment) -> Result<(), String> {
        (self.damage)(experiment)
    }
}
