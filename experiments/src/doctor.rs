//! What `launcher doctor` finds on this machine.

use crate::caller;
use ::record::machine_check::MachineCheck;
use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Deserialize)]
struct Found {
    checks: Vec<MachineCheck>,
}

/// Returns all checks of this machine; none if they cannot be made.
pub(crate) fn checks_here() -> Vec<MachineCheck> {
    ask().unwrap_or_default()
}

fn ask() -> Result<Vec<MachineCheck>> {
    let output = caller::launcher().args(["doctor", "--json"]).output().context("launcher doctor")?;
    Ok(serde_json::from_slice::<Found>(&output.stdout)?.checks)
}

/// Returns why the machine is unfit for latency figures just now: what lab and board save with
/// their figures. What it is by nature they judge themselves.
pub(crate) fn unfit_here() -> Vec<String> {
    checks_here().iter().filter(|check| check.is_passing()).filter_map(MachineCheck::reason).collect()
}
