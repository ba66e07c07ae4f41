//! A role whose launcher dies: it notices, sends nothing more, finishes its log, says so and ends.
//!
//! A thread of its own sleeps on the launcher's pidfd, which costs nothing while the launcher
//! lives. The agents see the end of the run the next time that they have nothing to do. One that
//! never has (it hangs) ends with the process, after a grace.

use crate::control::Control;
use crate::plan::{Handle, Plan, ProcessPlan};
use shm::memory::sealed;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use system::process;

/// How long the agents have to end by themselves.
pub const GRACE: Duration = Duration::from_secs(2);
/// The thread's name.
const NAME: &str = "watch";

/// What is said of a launcher that died.
pub fn message(plan: &Plan) -> String {
    format!(
        "the launcher (pid {}) died: no order is sent any more, the logs are complete up to here",
        plan.launcher_pid
    )
}

/// What the plan calls the descriptor on which processes in containers see the launcher's death:
/// its pidfd, which they cannot open themselves. Nobody can signal through it from a namespace of
/// process ids in which the launcher is not.
pub const LAUNCHER: &str = "launcher";

/// Sees the launcher's death, from when it was made.
pub struct LauncherWatch {
    launcher: OwnedFd,
}

impl LauncherWatch {
    /// Asks the kernel to be told of the launcher's death, by that process of the plan.
    ///
    /// # Errors
    /// The launcher is dead already; in a container, where it cannot be seen: its descriptor was
    /// not handed over.
    pub fn new(plan: &Plan, me: &ProcessPlan) -> io::Result<Self> {
        if plan.is_contained(me) {
            let is_it = |handle: &&Handle| handle.name == LAUNCHER;
            let handle = plan.handles.iter().find(is_it).ok_or(io::ErrorKind::NotFound)?;
            return Ok(Self { launcher: sealed::take(handle)?.into() });
        }
        process::wake_with_parent(plan.launcher_pid)?;
        Ok(Self { launcher: process::pidfd_open(plan.launcher_pid)? })
    }

    /// Waits for it on a thread of its own. That begins after a sandbox was put up, which binds
    /// only later threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(self, plan: &Plan, control: &Control) -> io::Result<()> {
        let (control, last_words) = (control.clone(), message(plan));
        let (begun, has_begun) = mpsc::sync_channel(1);
        let watching = move || {
            let _ = begun.send(());
            while let Ok(ready) = process::wait_readable(&[self.launcher.as_fd()], Duration::from_secs(3600))
            {
                if ready[0] {
                    control.abandon();
                    thread::sleep(GRACE);
                    // It may not be writable any more: nothing depends on it.
                    let _ =
                        writeln!(io::stderr(), "error: {last_words}; ended in the middle of a duty cycle");
                    std::process::exit(1);
                }
            }
        };
        thread::Builder::new().name(NAME.into()).stack_size(64 << 10).spawn(watching)?;
        // A thread sets itself up with system calls that the sandbox refuses to all threads: not
        // before this one has.
        has_begun.recv().map_err(io::Error::other)
    }
}
