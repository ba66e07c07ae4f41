//! A check of the machine by `launcher doctor`.

use serde::{Deserialize, Serialize};

/// Names of the checks whose result may be another one in a minute.
const PASSING: [&str; 3] = ["cpu quota", "load", "other runs"];

/// Result of a check of the machine by `launcher doctor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// Nothing needs fixing.
    Ok,
    /// A possible improvement of the machine.
    Note,
    /// A problem: latencies measured on this machine must not be quoted, or a run cannot start.
    Bad,
}

/// The result of one check that `launcher doctor` makes of the machine, such as of its clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCheck {
    /// Name of the check: unique, stable, lower case.
    pub name: String,
    /// Result of the check.
    pub state: CheckState,
    /// What the check found on this machine.
    pub found: String,
    /// How to fix the problem; null if nothing needs fixing.
    pub fix: Option<String>,
}

impl MachineCheck {
    /// Returns `true` if the cause that the check found may pass within a minute: the quota, the
    /// load, and other runs.
    pub fn is_temporary(&self) -> bool {
        PASSING.contains(&self.name.as_str())
    }

    /// Returns the reason against quoting latencies that a bad check gives.
    pub fn reason(&self) -> Option<String> {
        (self.state == CheckState::Bad).then(|| format!("doctor: {}: {}", self.name, self.found))
    }
}
