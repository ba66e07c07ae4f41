//! Resource usage of the calling thread, as the kernel counts it.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time, context switches and page faults of a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Voluntary context switches (the thread slept or yielded).
    pub voluntary_switches: u64,
    /// Involuntary context switches (the thread was preempted).
    pub involuntary_switches: u64,
    /// Page faults served without reading from a device.
    pub minor_faults: u64,
    /// Page faults that had to read from a device.
    pub major_faults: u64,
    /// CPU time, user and system, in nanoseconds (the kernel counts in microseconds).
    pub cpu_ns: u64,
}

/// Returns the current CPU time of the calling thread in nanoseconds; 0 if it is unknown.
/// [`ThreadUsage::cpu_ns`] may lag by a scheduler tick (4 ms on many kernels).
pub fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

/// Returns the CPU time of the calling process's threads since its start, in nanoseconds; 0 if it
/// is unknown.
pub fn process_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

impl ThreadUsage {
    /// Returns CPU time, context switches and page faults of the calling thread; zeros if unknown.
    pub fn current_thread() -> Self {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Self::default() };
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        Self {
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            minor_faults: count(usage.minor_page_faults()),
            major_faults: count(usage.major_page_faults()),
            cpu_ns: count(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()),
        }
    }

    /// Returns the difference of two samples: the resources that the thread used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
        }
    }
}
