//! The reaper: a process that waits for the launcher's death and then cleans up after it.
//!
//! A launcher that is killed with SIGKILL cannot unlink its segments or save its logs. Its children
//! notice and exit ([`protocol::launcher_watch`]). The reaper waits for that, saves the logs in the
//! run's folder, kills processes that remain, and removes the segments and the cores of faults. If
//! the reaper is killed, the next start or `launcher clean` removes the segments. Like the launcher
//! it holds a lock on the control segment, so that a start at this moment does not remove the logs
//! that it is about to save ([`crate::clean`]).

use crate::container::cgroups;
use crate::folder;
use crate::gather::{self, UnsavedLogs};
use crate::progress;
use anyhow::Result;
use planner::host;
use protocol::control::Control;
use protocol::launcher_watch;
use protocol::plan::Plan;
use protocol::segments::{self, CONTROL};
use protocol::status::{self, ThreadState};
use run_memory::segments as setup;
use shm::memory::{ReadOnlyWords, RegionError, lock, open_safely, sigbus};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use system::process;

/// The reaper's name in messages and in its command line.
pub const NAME: &str = "reaper";

/// Runs the reaper: when the launcher has exited, saves the run's stamp logs, ends the run's
/// processes, and removes the run's cgroups and shared memory. A launcher that exits normally ends
/// its reaper first.
pub fn run(run: &str) -> Result<()> {
    let (control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-reaper");
    // Without it a truncated segment kills the reaper; it can do everything else.
    let _ = sigbus::install_handler();
    let _locked = lock_control(&plan);
    if let Ok(launcher) = process::pidfd_open(plan.launcher_pid) {
        while process::is_running(plan.launcher_pid, plan.launcher_start) {
            if process::wait_readable(&[launcher.as_fd()], Duration::from_secs(3600)).is_err() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    // A record in a log is saved even if its process does not exit.
    let left_behind = save_logs(&plan).map_or_else(
        |unsaved| {
            progress::print_warning(&format!("reaper: {unsaved}"));
            unsaved.segments
        },
        |()| Vec::new(),
    );
    for left in cgroups::remove_all(host::root(), &plan.run, host::cgroups::EMPTY_TIMEOUT) {
        progress::print_warning(&format!("reaper: not removed: {left}"));
    }
    end_processes(&control, &plan);
    folder::remove_cores(Path::new(&plan.folder));
    setup::remove_all(&plan, &left_behind);
    Ok(())
}

/// Waits for the run's processes to exit, and kills those that do not: a user's program may have
/// disabled its parent-death signal. After that no process can create files that nobody removes.
fn end_processes(control: &Control, plan: &Plan) {
    let mut living: Vec<OwnedFd> =
        (0..plan.processes.len()).filter_map(|place| control.pidfd(place)).collect();
    wait_for(&mut living, launcher_watch::GRACE + launcher_watch::GRACE);
    for pidfd in &living {
        // A process that has exited by now gets no signal.
        let _ = process::kill(pidfd.as_fd());
    }
    wait_for(&mut living, launcher_watch::GRACE);
}

/// Waits until none of them runs, at most `at_most`; those that still run stay in the list.
fn wait_for(living: &mut Vec<OwnedFd>, at_most: Duration) {
    let deadline = Instant::now() + at_most;
    while !living.is_empty() && Instant::now() < deadline {
        let fds: Vec<_> = living.iter().map(AsFd::as_fd).collect();
        let Ok(ended) = process::wait_readable(&fds, deadline.saturating_duration_since(Instant::now()))
        else {
            return;
        };
        let mut ended = ended.into_iter();
        living.retain(|_| ended.next() != Some(true));
    }
}

/// Locks the control segment for as long as the file is open. The reaper works without the lock as
/// well.
fn lock_control(plan: &Plan) -> Option<File> {
    let file = open_safely(&plan.segment_name(CONTROL), OpenOptions::new().read(true)).ok()?;
    lock::lock_shared(&file).ok().map(|()| file)
}

/// Maps each thread's log. Only after the launcher is gone: when the reaper starts, named segments
/// may not exist yet. A log that cannot be mapped (it was truncated) does not affect the others.
fn map_logs(plan: &Plan) -> Vec<Option<ReadOnlyWords>> {
    let mut attached = segments::attach_as_reaper(plan);
    let mapped = |view: Result<ReadOnlyWords, RegionError>| {
        view.inspect_err(|error| progress::print_warning(&format!("reaper: not saved: {error}"))).ok()
    };
    plan.threads.iter().map(|thread| mapped(segments::attach_log(&mut attached, &thread.name))).collect()
}

/// Waits until every thread has finished its log, or its process must have exited.
fn wait_for_roles(logs: &[Option<ReadOnlyWords>]) {
    let deadline = Instant::now() + launcher_watch::GRACE + launcher_watch::GRACE;
    let runs = |log: &ReadOnlyWords| matches!(status::state(log), ThreadState::Ready | ThreadState::Running);
    while logs.iter().flatten().any(runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn save_logs(plan: &Plan) -> Result<(), UnsavedLogs> {
    let folder = Path::new(&plan.folder);
    if !folder.is_dir() {
        return Ok(());
    }
    let logs = map_logs(plan);
    wait_for_roles(&logs);
    let saved = gather::gather(plan, &logs, folder);
    for (thread, log) in plan.threads.iter().zip(&logs) {
        if log.as_ref().is_some_and(ReadOnlyWords::is_lost) {
            progress::print_warning(&format!(
                "reaper: the log of {} was truncated: its end is lost",
                thread.name
            ));
        }
    }
    saved
}
