//! The warden: a process that does nothing but wait for the launcher's death, and then clears up after it.
//!
//! A launcher that is killed with SIGKILL cannot unlink its segments or save its logs. Its children die with it (the
//! kernel sees to that), and the warden, which does not, saves the logs in the run's folder and removes the segments. If
//! the warden is killed as well, the next start or `launcher clean` removes them.

use crate::{gather, setup};
use anyhow::Result;
use shm::memory::View;
use shm::os::process;
use shm::plan::Plan;
use shm::segments::Attached;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// The warden's name among the processes.
pub const NAME: &str = "warden";

/// Waits for the launcher of a run to end. A launcher that ends in order has stopped its warden before.
///
/// # Errors
/// No such run.
pub fn run(run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-warden");
    let logs = if plan.handles.is_empty() { None } else { Some(map_logs(&plan)?) };
    if let Ok(launcher) = process::pidfd_open(plan.launcher_pid) {
        while process::is_running(plan.launcher_pid, plan.launcher_start) {
            process::wait_readable(&[launcher.as_fd()], Duration::from_secs(3600))?;
        }
    }
    // The children were killed when the launcher died; a record that is in a log stays there.
    if let Err(error) = save_logs(&plan, logs) {
        eprintln!("warden: {error:#}");
    }
    setup::remove_all(&plan.run);
    Ok(())
}

/// Logs that were handed over must be mapped while they are there; named ones may not be there yet.
fn map_logs(plan: &Plan) -> Result<Vec<View>> {
    let mut attached = Attached::new(plan, None);
    let logs = plan.threads.iter().map(|thread| attached.log(&thread.name));
    Ok(logs.collect::<Result<_, _>>()?)
}

fn save_logs(plan: &Plan, logs: Option<Vec<View>>) -> Result<()> {
    let folder = Path::new(&plan.folder);
    if !folder.is_dir() {
        return Ok(());
    }
    let logs = logs.map_or_else(|| map_logs(plan), Ok)?;
    gather::gather(plan, &logs, folder)
}
