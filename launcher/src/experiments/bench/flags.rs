//! Checks of flags that `lab` and `board` share.

use crate::config::{CoreList, UsageError};
use crate::host::Machine;
use analysis::cpu_list;
use anyhow::{Result, bail};
use protocol::plan::Isolation;
use system::sandbox;

/// Checks that the agents of a benchmark can have these isolation levels.
pub fn check_isolation(isolations: &[Isolation]) -> Result<(), UsageError> {
    if isolations.contains(&Isolation::Container) {
        let why = "what is measured are bulkhead's own processes; use --isolation process, whose memory is the same";
        return Err(UsageError(format!("--isolation container: {why}")));
    }
    Ok(())
}

/// Checks that the kernel has all sandbox features, if a benchmark is to run in the sandbox.
pub fn check_sandbox(mut isolations: impl Iterator<Item = Isolation>, weaker_sandbox: bool) -> Result<()> {
    if weaker_sandbox || !isolations.any(|isolation| isolation == Isolation::Sandbox) {
        return Ok(());
    }
    match sandbox::missing().join("; ") {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("no full sandbox here: {missing}; --allow-weaker-sandbox continues without it"),
    }
}

/// Returns the cores that the user requested for a benchmark; `None` if none were requested.
pub fn check_cores(asked: Option<&CoreList>, machine: &Machine) -> Result<Option<Vec<u32>>, UsageError> {
    let Some(CoreList(cores)) = asked else { return Ok(None) };
    if let Some(core) = cores.iter().find(|core| !machine.cores_allowed.contains(core)) {
        let allowed = cpu_list::format(&machine.cores_allowed);
        return Err(UsageError(format!("--cores: core {core} is not allowed here (allowed: {allowed})")));
    }
    Ok(Some(cores.clone()))
}
