//! Start-up time, CPU time and memory of each process of a run. Read from outside the process.

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use record::run::ProcessUsage;
use std::time::{Duration, Instant};

/// CPU time, memory and start-up time of one process of a run and of its predecessors.
#[derive(Clone, Copy, Debug)]
pub struct ProcessAccount {
    spawned: Instant,
    usage: ProcessUsage,
    /// CPU time of its predecessors, in nanoseconds.
    before_ns: u64,
}

impl ProcessAccount {
    /// Starts the account of a process that is being started.
    pub fn begin() -> Self {
        Self { spawned: Instant::now(), usage: ProcessUsage::default(), before_ns: 0 }
    }

    /// Adds to the account the usage of the predecessor that this process replaces. CPU times add
    /// up, the larger memory counts, and the start-up is the first one's.
    #[must_use]
    pub fn continuing(self, earlier: Self) -> Self {
        let usage = ProcessUsage { cpu_ns: None, ..earlier.usage };
        Self { spawned: self.spawned, usage, before_ns: earlier.usage.cpu_ns.unwrap_or(earlier.before_ns) }
    }

    /// Returns `true` if the process has reached the start barrier.
    pub const fn is_ready(&self) -> bool {
        self.usage.startup_ns.is_some()
    }

    /// Records the start-up time and the CPU time of a process when it has reached the start
    /// barrier.
    pub fn record_ready(&mut self, pid: u32) {
        self.usage.startup_ns = Some(self.spawned.elapsed().as_nanos() as u64);
        self.usage.startup_cpu_ns = cpu_time(pid);
        self.sample_memory(pid);
    }

    /// Records the current memory of the process, unless it has exited.
    pub fn sample_memory(&mut self, pid: u32) {
        self.record_status(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default());
    }

    /// Records the memory from the text of `/proc/PID/status`. A process that is about to exit has
    /// unmapped its shared memory, and still has its peak.
    fn record_status(&mut self, status: &str) {
        if let Some(peak) = kilobytes(status, "VmHWM:") {
            self.usage.peak_bytes = self.usage.peak_bytes.max(Some(peak));
            self.usage.shared_bytes = self.usage.shared_bytes.max(kilobytes(status, "RssShmem:"));
        }
    }

    /// Records a process's memory by kind (private, shared, huge pages, page tables), each at its
    /// maximum so far. The kernel adds it up page by page. Returns its proportional set size in
    /// bytes; `None` if it has exited, or the kernel does not show it.
    pub fn sample_mappings(&mut self, pid: u32) -> Option<u64> {
        let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        self.record_mappings(&read("smaps_rollup"), &read("status"))
    }

    fn record_mappings(&mut self, rollup: &str, status: &str) -> Option<u64> {
        let sum = |names: &[&str]| {
            let found = names.iter().filter_map(|name| kilobytes(rollup, name));
            found.fold(None, |sum: Option<u64>, bytes| Some(sum.unwrap_or(0).saturating_add(bytes)))
        };
        let (usage, pss) = (&mut self.usage, kilobytes(rollup, "Pss:"));
        for (kept, now) in [
            (&mut usage.private_bytes, sum(&["Private_Clean:", "Private_Dirty:", "Private_Hugetlb:"])),
            (&mut usage.resident_shared_bytes, sum(&["Shared_Clean:", "Shared_Dirty:", "Shared_Hugetlb:"])),
            (&mut usage.huge_bytes, sum(&["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"])),
            (&mut usage.page_table_bytes, kilobytes(status, "VmPTE:")),
            (&mut usage.pss_bytes, pss),
        ] {
            // One that is about to exit has less.
            *kept = (*kept).max(now);
        }
        pss
    }

    /// Records the CPU time of a process that has exited and is not reaped.
    pub fn record_exit(&mut self, pid: u32) {
        let used = cpu_time(pid).map(|used| used.saturating_add(self.before_ns));
        self.usage.cpu_ns = used.or(self.usage.cpu_ns);
    }

    /// Returns the account's start-up time, CPU time and memory of the process.
    pub const fn usage(&self) -> ProcessUsage {
        self.usage
    }
}

/// Returns the value of a line that starts with that name and ends with `kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the CPU time of all threads of a process so far, in nanoseconds; available until it is
/// reaped.
fn cpu_time(pid: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into().ok()?)).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_peak_survives_unmapping() {
        let mut account = ProcessAccount::begin();
        account.record_status("VmHWM:\t  2048 kB\nRssShmem:\t  1024 kB\n");
        account.record_status("VmHWM:\t  4096 kB\nRssShmem:\t     0 kB\n");
        account.record_status("State:\tZ (zombie)\n");
        let usage = account.usage();
        assert_eq!((usage.peak_bytes, usage.shared_bytes), (Some(4 << 20), Some(1 << 20)));
    }

    #[test]
    fn mappings_are_those_of_the_largest_sample() {
        let mut account = ProcessAccount::begin();
        let rollup = "Pss:  7 kB\nShared_Clean:  4 kB\nShared_Dirty: 2 kB\nPrivate_Clean:  1 kB\nPrivate_Dirty:  8 kB\nAnonHugePages: 2048 kB\n";
        assert_eq!(account.record_mappings(rollup, "VmPTE:\t  64 kB\n"), Some(7 << 10));
        assert_eq!(account.record_mappings("Private_Clean: 1 kB\n", ""), None);
        let usage = account.usage();
        assert_eq!((usage.private_bytes, usage.resident_shared_bytes), (Some(9 << 10), Some(6 << 10)));
        assert_eq!((usage.page_table_bytes, usage.huge_bytes), (Some(64 << 10), Some(2 << 20)));
        assert_eq!(usage.pss_bytes, Some(7 << 10));
        account.sample_mappings(std::process::id());
        assert!(account.usage().private_bytes > Some(9 << 10));
    }

    #[test]
    fn restarted_process_continues_account() {
        let first = ProcessAccount {
            usage: ProcessUsage {
                startup_ns: Some(5),
                cpu_ns: Some(70),
                peak_bytes: Some(9),
                ..ProcessUsage::default()
            },
            ..ProcessAccount::begin()
        };
        let mut second = ProcessAccount::begin().continuing(first);
        assert_eq!((second.usage().cpu_ns, second.usage().peak_bytes), (None, Some(9)));
        second.record_exit(std::process::id());
        assert!(second.usage().cpu_ns > Some(70) && second.is_ready());
    }
}
