//! Kernel statistics of the run's cores: steal, interrupts, run delay and throttling.

use protocol::index::StrategyIndex;
use serde::{Deserialize, Serialize};

/// Kernel statistics of a run's cores, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelAccount {
    /// Cores of the run, ascending.
    pub cores: Vec<CoreAccount>,
    /// CPU throttling of the cgroup; null if the kernel does not report it.
    pub throttled: Option<CpuThrottling>,
    /// Statistics that this kernel does not report, and what would enable them. One line each.
    pub absent: Vec<String>,
    /// Wake-ups and CPU time of the launcher while orders were sent; null if unknown or saved by an
    /// older launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<LauncherLoad>,
}

/// The launcher's wake-ups and CPU time (in nanoseconds) while orders were sent: it shares cores
/// with measured threads. A wake-up is a voluntary context switch of a thread of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherLoad {
    /// Number of wake-ups.
    pub times: u64,
    /// Length of the observation, in nanoseconds.
    pub ns: u64,
    /// CPU time of all its threads, in nanoseconds; null if saved by an older launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
}

impl LauncherLoad {
    /// Returns the launcher's CPU time as a share of one core (0.1 is 10 %); `None` if it is
    /// unknown.
    pub fn share(&self) -> Option<f64> {
        self.cpu_ns.filter(|_| self.ns > 0).map(|cpu_ns| cpu_ns as f64 / self.ns as f64)
    }
}

/// Steal time, interrupts and run delay of one core during a run. Times are nanoseconds; null if
/// the kernel does not report them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreAccount {
    /// Number of the core.
    pub core: u32,
    /// Time in nanoseconds in which the hypervisor ran another guest (`/proc/stat`, in units of 10
    /// ms on most kernels).
    pub steal_ns: Option<u64>,
    /// Time in interrupt handlers, in nanoseconds (`/proc/stat`).
    pub irq_ns: Option<u64>,
    /// Time in soft interrupts, in nanoseconds (`/proc/stat`).
    pub softirq_ns: Option<u64>,
    /// Time in nanoseconds in which runnable threads waited for the core, all threads together
    /// (`/proc/schedstat`).
    pub run_delay_ns: Option<u64>,
    /// Number of interrupts that the core handled (`/proc/interrupts`).
    pub interrupts: Option<u64>,
    /// Most frequent interrupts with their counts.
    #[serde(rename = "most")]
    pub top_interrupts: Vec<(String, u64)>,
}

/// Read misses of strategies' threads in the data TLB and last-level cache during a run, or why
/// none were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheMisses {
    /// The reason why no cache misses were counted; null if some were.
    pub absent: Option<String>,
    /// The misses of each strategy that was counted.
    pub strategies: Vec<StrategyMisses>,
}

/// Read misses of one strategy's first incarnation (until a restart) in the data TLB and last-level
/// cache; null if not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyMisses {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Number of read misses in the data TLB.
    pub dtlb: Option<u64>,
    /// Number of read misses in the last-level cache.
    pub last_level: Option<u64>,
}

/// The number and total length, in nanoseconds, of periods in which a cgroup's CPU limit throttled
/// its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuThrottling {
    /// Number of throttled periods.
    pub times: u64,
    /// Total throttled time, in nanoseconds.
    pub ns: u64,
}
