//! The plan of an experiment that was declared in a file before its runs.

use super::Experiment;
use serde::{Deserialize, Serialize};

/// The name of the plan among the figures of an experiment.
const NAME: &str = "declared";

/// A declared plan: the file in which an experiment's plan was fixed before its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredPlan {
    /// Name of the file, without its folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// The reason why a difference within the margin counts as none.
    pub because: String,
}

impl Experiment {
    /// Saves the plan that was declared before the experiment's runs, and notes its file, hash and
    /// margin for every report.
    pub fn set_declared(&mut self, plan: DeclaredPlan) {
        let DeclaredPlan { file, sha256, because } = &plan;
        self.notes.push(format!("declared before its runs in {file}, SHA-256 {sha256}"));
        self.notes.push(format!("margin {}, because {because}", self.endpoint.margin));
        self.figures.insert(NAME, &plan);
    }

    /// Returns the plan that was declared before the experiment's runs; `None` if there is none.
    pub fn declared(&self) -> Option<DeclaredPlan> {
        self.figures.part(NAME).ok().flatten()
    }
}
