//! The kernel's CPU account of a silent thread or process, with the kernel's counters around it:
//! plain data that the runtime reads.

use record::cpu_shortage::CpuShortage;
use std::time::Duration;

/// CPU time and scheduling state of a thread, or of all threads of a process, according to the
/// kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// Whether the thread runs or waits for a core, and neither sleeps nor is stopped.
    pub is_runnable: bool,
    /// Whether the thread is in an uninterruptible sleep: the kernel serves its system call or page
    /// fault, mostly with a disk, and SIGKILL takes effect only afterwards.
    pub is_in_kernel: bool,
    /// CPU time of the thread since its start.
    pub ran: Duration,
    /// Time since the thread's start in which it was runnable and had no core.
    pub waited: Duration,
}

impl CpuAccount {
    /// Returns `true` if the thread is runnable at this reading and ran for less than a quarter of
    /// `time`, the period since the reading `first`.
    pub fn is_starved_since(&self, first: &Self, time: Duration) -> bool {
        self.is_runnable && self.ran.saturating_sub(first.ran) < time / 4
    }

    /// Returns `true` if the thread waited for a core for three quarters of the period `time` since
    /// `first`. Unlike [`CpuAccount::is_starved_since`] it holds for a process that sleeps in
    /// between: one that is runnable for a moment when it is looked at is not starved.
    pub fn has_waited_since(&self, first: &Self, time: Duration) -> bool {
        self.waited.saturating_sub(first.waited) >= time * 3 / 4
    }
}

/// A thread's CPU account and the kernel's counters of its cgroup, its CPU and the machine, all
/// read at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSample {
    /// The thread's own account.
    pub account: CpuAccount,
    /// Time of the sample, since the machine's start.
    pub at: Duration,
    /// State letter of the thread, as in `/proc/PID/stat`.
    pub state: Option<char>,
    /// How often the thread's cgroup was throttled, and for how long.
    pub throttled: Option<(u64, Duration)>,
    /// CPU weight of the thread's cgroup.
    pub weight: Option<u64>,
    /// Time in which some thread of the same cgroup waited for a CPU.
    pub group_waited: Option<Duration>,
    /// Time in which some thread of the machine waited for a CPU.
    pub machine_waited: Option<Duration>,
    /// CPU time that the host took (steal), over all CPUs.
    pub stolen: Option<Duration>,
    /// Number of the thread's CPU, and the time that this CPU has spent in the kernel.
    pub in_kernel: Option<(u32, Duration)>,
    /// Number of runnable threads of the machine.
    pub runnable: Option<u64>,
    /// Number of CPUs of the machine.
    pub cpus: u64,
}

impl From<CpuAccount> for CpuSample {
    fn from(account: CpuAccount) -> Self {
        Self { account, ..Self::default() }
    }
}

impl CpuSample {
    /// Returns why the thread lacked CPU time since the sample `first`: the growth of each counter,
    /// times in nanoseconds; `None` if no time has passed.
    pub fn shortage_since(&self, first: &Self) -> Option<CpuShortage> {
        let ns = |time: Duration| time.as_nanos() as u64;
        let since = |now: Option<Duration>, then: Option<Duration>| {
            now.zip(then).map(|(now, then)| ns(now.saturating_sub(then)))
        };
        let over_ns = ns(self.at.saturating_sub(first.at));
        (over_ns > 0).then(|| CpuShortage {
            over_ns,
            state: self.state,
            ran_ns: ns(self.account.ran.saturating_sub(first.account.ran)),
            waited_ns: ns(self.account.waited.saturating_sub(first.account.waited)),
            throttled: self.throttled.zip(first.throttled).map(|(now, then)| now.0.saturating_sub(then.0)),
            throttled_ns: since(self.throttled.map(|it| it.1), first.throttled.map(|it| it.1)),
            weight: self.weight,
            group_waited_ns: since(self.group_waited, first.group_waited),
            machine_waited_ns: since(self.machine_waited, first.machine_waited),
            stolen_ns: since(self.stolen, first.stolen),
            kernel_ns: (self.in_kernel.zip(first.in_kernel))
                .filter(|(now, then)| now.0 == then.0)
                .map(|(now, then)| ns(now.1.saturating_sub(then.1))),
            runnable: self.runnable,
            cpus: self.cpus,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_or_sleeping_thread_is_not_starved() {
        let account = |is_runnable, ms| {
            let ran = Duration::from_millis(ms);
            CpuAccount { is_runnable, ran, ..CpuAccount::default() }
        };
        let (first, time) = (account(true, 1000), Duration::from_millis(400));
        let is_starved = |is_runnable, ms| account(is_runnable, ms).is_starved_since(&first, time);
        assert!(is_starved(true, 1000) && is_starved(true, 1099));
        assert!(!is_starved(true, 1100), "it ran for a quarter of the time");
        assert!(!is_starved(false, 1000), "it sleeps, or is stopped");
    }
}
