//! Watches for the death of the launcher: a thread sleeps on its pidfd. The process then stops
//! sending, completes its log, reports why, and exits, with threads that hang after a timeout.

use crate::control::Control;
use crate::plan::{Handle, Plan, ProcessPlan};
use shm::memory::sealed;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use system::process;

/// Time that a process's agents have to end by themselves after the launcher's death, before the
/// process exits.
pub const GRACE: Duration = Duration::from_secs(2);
const NAME: &str = "watch";

/// Returns the error text for people that reports the launcher's death, with its process id.
pub fn launcher_death_message(plan: &Plan) -> String {
    format!(
        "the launcher (pid {}) died: no order is sent any more, the logs are complete up to here",
        plan.launcher_pid
    )
}

/// The name of the launcher's pidfd in the plan's list of inherited file descriptors, for processes
/// that do not open one: see [`Plan::inherits_launcher`].
pub const LAUNCHER: &str = "launcher";

/// A watch on the launcher's process, which stops this process's run if the launcher ends.
pub struct LauncherWatch {
    launcher: OwnedFd,
}

impl LauncherWatch {
    /// Prepares to notice the end of the launcher's process. Some processes have inherited its
    /// pidfd.
    pub fn new(plan: &Plan, me: &ProcessPlan) -> io::Result<Self> {
        if !plan.is_contained(me) {
            process::wake_with_parent(plan.launcher_pid)?;
        }
        if plan.inherits_launcher(me) {
            let is_it = |handle: &&Handle| handle.name == LAUNCHER;
            let handle = plan.handles.iter().find(is_it).ok_or(io::ErrorKind::NotFound)?;
            return Ok(Self { launcher: sealed::take(handle)?.into() });
        }
        Ok(Self { launcher: process::pidfd_open(plan.launcher_pid)? })
    }

    /// Starts a thread that waits for the launcher's death, then stops the run and exits the
    /// process after [`GRACE`]. Call it within the sandbox.
    pub fn start(self, plan: &Plan, control: &Control) -> io::Result<()> {
        let (control, last_words) = (control.clone(), launcher_death_message(plan));
        let (begun, has_begun) = mpsc::sync_channel(1);
        let watching = move || {
            let _ = begun.send(());
            while let Ok(ready) = process::wait_readable(&[self.launcher.as_fd()], Duration::from_secs(3600))
            {
                if ready[0] {
                    control.abandon();
                    thread::sleep(GRACE);
                    // stderr may be gone: nothing depends on it.
                    let _ =
                        writeln!(io::stderr(), "error: {last_words}; ended in the middle of a duty cycle");
                    std::process::exit(1);
                }
            }
        };
        thread::Builder::new().name(NAME.into()).stack_size(64 << 10).spawn(watching)?;
        // A new thread needs system calls that the sandbox later refuses: wait until it has made
        // them.
        has_begun.recv().map_err(io::Error::other)
    }
}
