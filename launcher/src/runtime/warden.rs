//! The warden: a process that does nothing but wait for the launcher's death, and then clears up
//! after it.
//!
//! A launcher that is killed with SIGKILL cannot unlink its segments or save its logs. Its children
//! notice and end ([`protocol::orphan`]); the warden waits for that, saves the logs in the run's
//! folder, kills who is still there, and removes the segments. If the warden is killed as well, the
//! next start or `launcher clean` removes them. It has the control segment locked like the
//! launcher, so that a start in this very moment does not remove the logs that it is about to save
//! ([`crate::runtime::clean`]).

use crate::host::groups::Tree;
use crate::runtime::container::groups;
use crate::runtime::gather::{self, Unsaved};
use crate::runtime::{progress, setup};
use anyhow::Result;
use protocol::control::Control;
use protocol::orphan;
use protocol::plan::Plan;
use protocol::segments::{self, CONTROL};
use protocol::status::{self, ThreadState};
use shm::memory::{ReadOnlyWords, RegionError, lock, open_safely, sigbus};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use system::process;

pub const NAME: &str = "warden";

/// Waits for the launcher of a run to end. A launcher that ends in order has stopped its warden
/// before.
pub fn run(run: &str) -> Result<()> {
    let (control, plan) = setup::open_control(run)?;
    process::set_thread_name("bulkhead-warden");
    // Without it the warden dies of a segment that somebody truncates; it can do everything else.
    let _ = sigbus::install_handler();
    let _locked = hold(&plan);
    if let Ok(launcher) = process::pidfd_open(plan.launcher_pid) {
        while process::is_running(plan.launcher_pid, plan.launcher_start) {
            if process::wait_readable(&[launcher.as_fd()], Duration::from_secs(3600)).is_err() {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    // A record that is in a log stays there, also if its process does not end.
    let left_behind = save_logs(&plan).unwrap_or_else(|error| {
        progress::complain(&format!("warden: {error:#}"));
        error.downcast::<Unsaved>().map(|unsaved| unsaved.segments).unwrap_or_default()
    });
    for left in groups::remove_all(Tree::real(), &plan.run, crate::host::groups::EMPTY) {
        progress::complain(&format!("warden: not removed: {left}"));
    }
    end_the_processes(&control, &plan);
    setup::remove_all(&plan, &left_behind);
    Ok(())
}

/// Waits for the end of the run's processes, and ends those that do not end by themselves: a
/// program of somebody else's may have taken back what its launcher's death was to do to it.
/// Whatever makes files for as long as it lives leaves nothing behind that comes later.
fn end_the_processes(control: &Control, plan: &Plan) {
    let mut living: Vec<OwnedFd> =
        (0..plan.processes.len()).filter_map(|place| control.pidfd(place)).collect();
    wait_for(&mut living, orphan::GRACE + orphan::GRACE);
    for pidfd in &living {
        // One that has ended meanwhile got no signal.
        let _ = process::kill(pidfd.as_fd());
    }
    wait_for(&mut living, orphan::GRACE);
}

/// Until none of them runs, but no longer than that; those that do are left.
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

/// The control segment, locked for as long as the file is open. Without a lock the warden works all
/// the same.
fn hold(plan: &Plan) -> Option<File> {
    let file = open_safely(&plan.segment_name(CONTROL), OpenOptions::new().read(true)).ok()?;
    lock::lock_shared(&file).ok().map(|()| file)
}

/// Each thread's log, and what the spiller says of it. Not before the launcher is gone: when the
/// warden starts, those that have names may not be there yet. One that cannot be mapped (somebody
/// has truncated it) costs no other.
fn map_logs(plan: &Plan) -> [Vec<Option<ReadOnlyWords>>; 2] {
    let mut attached = segments::attach_as_warden(plan);
    let mapped = |view: Result<ReadOnlyWords, RegionError>| {
        view.inspect_err(|error| progress::complain(&format!("warden: not saved: {error}"))).ok()
    };
    let logs = plan.threads.iter().map(|thread| mapped(segments::log(&mut attached, &thread.name)));
    let logs = logs.collect();
    let threads = plan.threads.iter().filter(|_| plan.spill.is_some());
    let spilled = threads.map(|thread| mapped(segments::spilled(&mut attached, &thread.name)));
    [logs, spilled.collect()]
}

/// Until every thread has finished its log, or its process must have ended.
fn wait_for_the_roles(logs: &[Option<ReadOnlyWords>]) {
    let deadline = Instant::now() + orphan::GRACE + orphan::GRACE;
    let runs = |log: &ReadOnlyWords| matches!(status::state(log), ThreadState::Ready | ThreadState::Running);
    while logs.iter().flatten().any(runs) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The segments to leave behind: none.
fn save_logs(plan: &Plan) -> Result<Vec<String>> {
    let folder = Path::new(&plan.folder);
    if folder.is_dir() {
        let [threads, spilled] = map_logs(plan);
        wait_for_the_roles(&threads);
        let saved = gather::gather(plan, gather::Logs { threads: &threads, spilled: &spilled }, folder);
        for (thread, log) in plan.threads.iter().zip(&threads) {
            if log.as_ref().is_some_and(ReadOnlyWords::is_lost) {
                progress::complain(&format!("warden: a part of the log of {} was taken away", thread.name));
            }
        }
        saved?;
    }
    Ok(Vec::new())
}
