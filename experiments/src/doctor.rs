//! The findings of `launcher doctor` on this machine.

use crate::caller;
use ::record::machine_check::MachineCheck;
use ::record::switch_price::SwitchPrice;
use ::record::wake_times::WakeTimes;
use anyhow::{Context, Result};
use serde::Deserialize;

/// What `launcher doctor` finds on a machine.
#[derive(Default, Deserialize)]
pub(crate) struct MachineFindings {
    /// All checks of the machine, with their outcomes.
    pub checks: Vec<MachineCheck>,
    /// The cost of a switch between address spaces, by the memory of each side.
    #[serde(default)]
    pub switch: Vec<SwitchPrice>,
    /// Time that an idle core takes to run what wakes it.
    #[serde(default)]
    pub wake: Option<WakeTimes>,
}

/// Returns what is found on this machine; nothing if it cannot be asked.
pub(crate) fn findings_here() -> MachineFindings {
    ask().unwrap_or_default()
}

fn ask() -> Result<MachineFindings> {
    let output = caller::launcher().args(["doctor", "--json"]).output().context("launcher doctor")?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns why the machine is unfit for latency figures just now: what lab and board save with
/// their figures. What it is by nature they judge themselves.
pub(crate) fn unfit_here() -> Vec<String> {
    findings_here()
        .checks
        .iter()
        .filter(|check| check.is_temporary())
        .filter_map(MachineCheck::reason)
        .collect()
}
