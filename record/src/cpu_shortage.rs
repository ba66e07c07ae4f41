//! Why a thread did not run: what the kernel counted around it, and what follows from that.
//!
//! | found | cause |
//! |---|---|
//! | it ran for half of the time | its own code |
//! | it was in an uninterruptible sleep | a disk or memory |
//! | its cgroup was throttled for a quarter of the time | the limit of the cgroup (`cpu.max`) |
//! | the host took a quarter of the CPU time | the host |
//! | it waited, and its CPU was in the kernel for half of the time | the kernel |
//! | it waited and got less than a quarter of an equal share | the weight of its cgroup |
//! | it waited for a CPU | the load of the machine |
//! | anything else | it slept |

use crate::numbers::{count, duration};
use serde::{Deserialize, Serialize};

/// The CPU time and waits of a thread that stopped reporting or did not exit, with counters of its
/// cgroup and machine. Absent counters: the kernel does not have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuShortage {
    /// Length of the time over which the thread was observed, in nanoseconds.
    pub over_ns: u64,
    /// State of the thread at the end, as in `/proc/PID/stat`; `None` if it was not read.
    pub state: Option<char>,
    /// CPU time that the thread used, in nanoseconds (`schedstat`).
    pub ran_ns: u64,
    /// Time in nanoseconds in which the thread was runnable and waited for a CPU (`schedstat`).
    pub waited_ns: u64,
    /// Number of times that the thread's cgroup was throttled (`cpu.stat`).
    pub throttled: Option<u64>,
    /// Time for which the thread's cgroup was throttled, in nanoseconds (`cpu.stat`).
    pub throttled_ns: Option<u64>,
    /// CPU weight of the thread's cgroup (`cpu.weight`, or `cpu.shares` of cgroup v1).
    pub weight: Option<u64>,
    /// Time in nanoseconds in which some thread of the cgroup waited for a CPU (`cpu.pressure`).
    pub group_waited_ns: Option<u64>,
    /// Time in nanoseconds in which some thread of the machine waited for a CPU
    /// (`/proc/pressure/cpu`).
    pub machine_waited_ns: Option<u64>,
    /// CPU time in nanoseconds that the host took, over all CPUs (`/proc/stat`).
    pub stolen_ns: Option<u64>,
    /// Time in nanoseconds that the thread's CPU spent in the kernel, for any thread
    /// (`/proc/stat`); absent if the thread was migrated.
    pub kernel_ns: Option<u64>,
    /// Number of runnable threads of the machine at the end (`/proc/loadavg`).
    pub runnable: Option<u64>,
    /// Number of CPUs of the machine.
    pub cpus: u64,
}

impl CpuShortage {
    /// Returns the likely reason, in words, why the thread made no progress, as far as the counters
    /// show it.
    pub fn cause(&self) -> &'static str {
        let is_share = |ns: u64, of: u64, parts: u64| of > 0 && ns.saturating_mul(parts) >= of;
        let over = self.over_ns;
        let all_cpus = over.saturating_mul(self.cpus.max(1));
        if is_share(self.ran_ns, over, 2) {
            "it ran: the cause is its own code"
        } else if self.state == Some('D') {
            "it waited in the kernel for a disk or memory"
        } else if self.throttled_ns.is_some_and(|ns| is_share(ns, over, 4)) {
            "the limit of its cgroup (cpu.max) throttled it"
        } else if self.stolen_ns.is_some_and(|ns| is_share(ns, all_cpus, 4)) {
            "the host took the CPUs"
        } else if !is_share(self.waited_ns, over, 2) {
            "it slept or was stopped"
        } else if self.kernel_ns.is_some_and(|ns| is_share(ns, over, 2)) {
            "the kernel kept its CPU busy with its own work"
        } else if self.weight.is_some() && self.is_below_equal_share() {
            "it got less than a quarter of an equal share: the weight of its cgroup"
        } else {
            "the machine has too few CPUs for its load"
        }
    }

    /// Returns `true` if the thread ran for less than a quarter of the time that it would have had
    /// if all runnable threads had shared the CPUs equally.
    fn is_below_equal_share(&self) -> bool {
        let Some(runnable) = self.runnable.filter(|runnable| *runnable > self.cpus) else { return false };
        let equal = (self.over_ns / runnable).saturating_mul(self.cpus);
        self.ran_ns.saturating_mul(4) < equal
    }

    /// Describes the shortage in one line: `over 2,000 ms it ran 3.00 ms and waited …`.
    pub fn describe(&self) -> String {
        let Self { over_ns, ran_ns, waited_ns, .. } = *self;
        let mut text = format!(
            "over {} it ran {} and waited {} for a CPU",
            duration(over_ns),
            duration(ran_ns),
            duration(waited_ns)
        );
        if let Some(state) = self.state.filter(char::is_ascii_alphabetic) {
            text += &format!(", state {state}");
        }
        if let Some(weight) = self.weight {
            text += &format!("; cgroup: weight {}", count(weight));
        }
        if let (Some(times), Some(ns)) = (self.throttled, self.throttled_ns) {
            text += &format!(", throttled {} times for {}", count(times), duration(ns));
        }
        if let Some(ns) = self.group_waited_ns {
            text += &format!(", pressure {}", duration(ns));
        }
        if let Some(ns) = self.machine_waited_ns {
            text += &format!("; machine: pressure {}", duration(ns));
        }
        if let Some(runnable) = self.runnable {
            text += &format!(", {} runnable threads on {} CPUs", count(runnable), count(self.cpus));
        }
        if let Some(ns) = self.kernel_ns {
            text += &format!(", {} in the kernel on its CPU", duration(ns));
        }
        if let Some(ns) = self.stolen_ns {
            text += &format!(", {} taken by the host", duration(ns));
        }
        format!("{text}: {}", self.cause())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Two seconds of waiting on two CPUs with 18 runnable threads, in a cgroup.
    const WAITING: CpuShortage = CpuShortage {
        over_ns: 2 * S,
        state: Some('R'),
        ran_ns: S / 5,
        waited_ns: 9 * S / 5,
        throttled: Some(0),
        throttled_ns: Some(0),
        weight: Some(1024),
        group_waited_ns: None,
        machine_waited_ns: Some(2 * S),
        stolen_ns: Some(S / 100),
        kernel_ns: Some(S / 10),
        runnable: Some(18),
        cpus: 2,
    };

    #[test]
    fn counters_tell_weight_throttling_and_machine_apart() {
        for (found, expected) in [
            (WAITING, "the machine has too few CPUs"),
            (CpuShortage { throttled: Some(19), throttled_ns: Some(S), ..WAITING }, "(cpu.max) throttled"),
            (CpuShortage { ran_ns: S / 100, ..WAITING }, "the weight of its cgroup"),
            (CpuShortage { ran_ns: S / 100, weight: None, ..WAITING }, "the machine has too few CPUs"),
            (CpuShortage { ran_ns: S / 100, runnable: Some(2), ..WAITING }, "the machine has too few CPUs"),
            (CpuShortage { ran_ns: 0, kernel_ns: Some(S), ..WAITING }, "the kernel kept its CPU busy"),
            (CpuShortage { stolen_ns: Some(S), ..WAITING }, "the host took the CPUs"),
            (CpuShortage { ran_ns: 3 * S / 2, ..WAITING }, "its own code"),
            (CpuShortage { waited_ns: 0, state: Some('S'), ..WAITING }, "it slept"),
            (CpuShortage { waited_ns: 0, state: Some('D'), ..WAITING }, "a disk or memory"),
        ] {
            assert!(found.cause().contains(expected), "{expected}: {}", found.describe());
        }
    }

    #[test]
    fn description_omits_absent_counters() {
        let text = WAITING.describe();
        for expected in
            ["over 2,000 ms", "throttled 0 times", "18 runnable threads on 2 CPUs", "weight 1,024"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let text = CpuShortage { over_ns: S, ..CpuShortage::default() }.describe();
        assert!(!text.contains("cgroup") && !text.contains("machine"), "{text}");
    }
}
