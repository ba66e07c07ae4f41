//! Early deaths: processes whose death is proven before the kernel has dismantled them, which takes
//! milliseconds.
//!
//! ```text
//! its locks are free ─▶ killed ─ all its threads are exiting ─▶ concluded ─▶ as after any exit
//!    (a hint)             └────── its pidfd is readable ──────────┘
//! ```
//!
//! The word of a lock is a hint: the process itself can write it. So it is killed, which costs a
//! dead one nothing, and the kernel is asked about each of its threads. After SIGKILL the process
//! starts no thread, so one that was exiting then is not replaced. Where the answer never comes,
//! the exit decides: nothing here depends on time.

use crate::actions::{Action, Actions};
use crate::containment::Containment;
use crate::observations::Observations;
use std::time::Duration;

/// How long after SIGKILL the kernel is asked without a pause: the threads of a process whose locks
/// are free need some microseconds more to leave their memory.
const BUSY_TIME: Duration = Duration::from_millis(2);

/// The processes whose locks were found free, and which were killed for that.
#[derive(Default)]
pub(super) struct EarlyDeaths {
    /// Process id and time of the kill in nanoseconds since the start, by process in the plan.
    killed: Vec<Option<(u32, u64)>>,
}

impl EarlyDeaths {
    /// Kills processes whose threads seem dead (their locks are free), and reports a killed process
    /// as exited once all its threads are exiting.
    pub fn step(
        &mut self,
        containment: &Containment<'_>,
        observed: &Observations,
        now_ns: u64,
        out: &mut dyn Actions,
    ) {
        self.killed.resize(observed.processes.len(), None);
        for (index, (killed, process)) in self.killed.iter_mut().zip(&observed.processes).enumerate() {
            if process.exit.is_some() || !containment.supervises(index) {
                *killed = None;
                continue;
            }
            match killed {
                // Observed after the kill: before it, a thread could have started another one.
                Some((pid, _)) if *pid == process.pid => {
                    if process.exiting.as_ref().is_some_and(|exiting| exiting.is_all()) {
                        out.perform(Action::ConcludeExit(index));
                    }
                }
                _ if process.is_lock_free => {
                    *killed = Some((process.pid, now_ns));
                    out.perform(Action::Kill(index));
                }
                _ => *killed = None,
            }
        }
    }

    /// Returns `true` if the supervisor's caller must observe which threads of this killed process
    /// are exiting.
    pub fn awaits_threads(&self, process: usize) -> bool {
        self.killed.get(process).is_some_and(Option::is_some)
    }

    /// Returns `true` if a process was killed a moment ago, so that the supervisor must check its
    /// threads again without waiting for the next poll.
    pub fn is_urgent(&self, now_ns: u64) -> bool {
        let busy_ns = BUSY_TIME.as_nanos() as u64;
        self.killed.iter().flatten().any(|(_, since)| now_ns.saturating_sub(*since) < busy_ns)
    }
}
