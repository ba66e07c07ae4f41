//! The head of an experiment's record, `experiment.json`: what a program needs to know of an
//! experiment that it does not evaluate.

use crate::document::Document;
use crate::fitness::Fitness;
use serde::{Deserialize, Serialize};
use std::path::Path;
use system::process::is_running;

/// Names of the kinds of experiments with the text for an error where the folder of a run was
/// wanted: what the folder is, and the command that shows it. `{}` becomes the folder's path.
const FOLDERS: [(&str, &str); 11] = [
    ("sweep", "the folder of many runs, not of one: launcher resume {} shows it"),
    ("max-rate", "the folder of many runs, not of one: launcher resume {} shows it"),
    ("compare", "the folder of a compare, not of a run: launcher compare {} shows it"),
    ("bill", "the folder of a bill, not of a run: launcher bill {} shows it"),
    ("contain", "the folder of a containment table, not of a run: launcher resume {} shows it"),
    ("disturb", "the folder of a disturb, not of a run"),
    ("lab", "the folder of a lab, not of a run: launcher resume {} shows it"),
    ("board", "the folder of a board's benchmark, not of a run"),
    ("survey", "the folder of a survey, not of a run: its card.txt is the report"),
    ("ladder", "the folder of a ladder, not of a run: launcher report {} shows it"),
    ("predict", "the folder of a prediction, not of a run: launcher resume {} shows it"),
];

/// The head of `experiment.json`: the experiment's kind, its state, and the process that measures
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentHead {
    /// The kind of the experiment: `bill`, `compare`, `lab`.
    pub kind: String,
    /// The state of the experiment: `running`, `complete` or `interrupted`.
    #[serde(default)]
    pub state: String,
    /// The process that measures the experiment or did: process id and start time.
    #[serde(default)]
    pub launcher: (u32, u64),
}

/// An experiment's line in a list: its kind with numbers of settings and repeats, and whether its
/// latencies may be quoted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentLine {
    /// The kind of the experiment, with its number of settings and repeats: `bill of 2 settings, 5
    /// repeats`.
    pub setting: String,
    /// Whether latencies of the experiment may be quoted.
    pub fitness: Option<Fitness>,
}

impl Document for ExperimentHead {
    const FILE: &'static str = "experiment.json";
    const NAME: &'static str = "bulkhead.experiment";
    const VERSION: u32 = 1;
    const ABSENT: &'static str = "not the folder of an experiment";
    const REMEDY: &'static str = "fetch it from a copy, or measure again: the runs' own folders are whole";

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

impl ExperimentHead {
    /// Returns `true` if a folder has an experiment.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(Self::FILE).exists()
    }

    /// Returns `true` if the process that measures the experiment is still running.
    pub fn is_being_measured(&self) -> bool {
        let (pid, start) = self.launcher;
        self.state == "running" && is_running(pid, start)
    }

    /// Returns the text of an error where a run's folder was expected: which experiment the folder
    /// has, and how to show it.
    pub fn describe_folder(&self, folder: &Path) -> String {
        let text = FOLDERS.iter().find(|(kind, _)| *kind == self.kind).map(|(_, text)| *text);
        text.unwrap_or("the folder of an experiment, not of a run")
            .replace("{}", &folder.display().to_string())
    }
}
