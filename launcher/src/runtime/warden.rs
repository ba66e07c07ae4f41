//! The warden: a process that does nothing but wait for the launcher's death, and then clears up after it.
//!
//! A launcher that is killed with SIGKILL cannot unlink its segments or save its logs. Its children notice and end
//! ([`crate::runtime::orphan`]); the warden waits for that, saves the logs in the run's folder and removes the segments. If
//! the warden is killed as well, the next start or `launcher clean` removes them. While it works, it has the control
//! segment locked, so that a start in this very moment does not remove the logs that it is about to save.

use crate::runtime::gather;
use crate::runtime::orphan;
use crate::runtime::setup;
use anyhow::Result;
use protocol::plan::Plan;
use protocol::segments::{self, CONTROL};
use protocol::status::{self, State};
use shm::memory::View;
use shm::memory::region::SHM_DIR;
use shm::os::process;
use std::fs::{File, TryLockError};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// The warden's name among the processes.
pub const NAME: &str = "warden";

/// Waits for the launcher of a run to end. A launcher that ends in order has stopped its warden before.
///
/// # Errors
/// No such run.
pub fn run(run: &str) -> Result<()> {
    let (_control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-warden");
    let _locked = lock(&plan);
    let logs = if plan.handles.is_empty() { None } else { Some(map_logs(&plan)?) };
    if let Ok(launcher) = process::pidfd_open(plan.launcher_pid) {
        while process::is_running(plan.launcher_pid, plan.launcher_start) {
            process::wait_readable(&[launcher.as_fd()], Duration::from_secs(3600))?;
        }
    }
    // A record that is in a log stays there, also if its process does not end.
    if let Err(error) = save_logs(&plan, logs) {
        eprintln!("warden: {error:#}");
    }
    setup::remove_all(&plan.run);
    Ok(())
}

/// Whether a warden watches over the run: then it also clears up after it.
pub fn is_watching(run: &str) -> bool {
    let control = File::open(control_path(run)).map(|file| file.try_lock_shared());
    matches!(control, Ok(Err(TryLockError::WouldBlock)))
}

/// The control segment, locked for as long as the file is open. Without a lock the warden works all the same.
fn lock(plan: &Plan) -> Option<File> {
    let file = File::open(control_path(&plan.run)).ok()?;
    file.lock().ok().map(|()| file)
}

fn control_path(run: &str) -> String {
    format!("{SHM_DIR}/{}{run}.{CONTROL}", Plan::PREFIX)
}

/// Logs that were handed over must be mapped while they are there; named ones may not be there yet.
fn map_logs(plan: &Plan) -> Result<Vec<View>> {
    let mut attached = segments::attach(plan, None);
    let logs = plan.threads.iter().map(|thread| segments::log(&mut attached, &thread.name));
    Ok(logs.collect::<Result<_, _>>()?)
}

/// Until every thread has finished its log, or its process must have ended.
fn wait_for_the_roles(logs: &[View]) {
    let deadline = Instant::now() + orphan::GRACE + orphan::GRACE;
    let runs = |log: &View| matches!(status::read(log).state(), State::Ready | State::Running);
    while logs.iter().any(runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn save_logs(plan: &Plan, logs: Option<Vec<View>>) -> Result<()> {
    let folder = Path::new(&plan.folder);
    if !folder.is_dir() {
        return Ok(());
    }
    let logs = logs.map_or_else(|| map_logs(plan), Ok)?;
    wait_for_the_roles(&logs);
    gather::gather(plan, &logs, folder)
}
