//! Kernel accounts of a process of the run: start-up time, CPU time, memory. The process is not
//! asked.

use analysis::record::ProcessUsage;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// The account of one process, and of those that it was started again after.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    spawned: Instant,
    usage: ProcessUsage,
    /// CPU time of its predecessors.
    before_ns: u64,
}

impl Account {
    pub fn begin() -> Self {
        Self { spawned: Instant::now(), usage: ProcessUsage::default(), before_ns: 0 }
    }

    /// The same behind a process that has ended: CPU times add up, the larger memory counts, the
    /// start-up is the first one's.
    #[must_use]
    pub fn after(self, earlier: Self) -> Self {
        let usage = ProcessUsage { cpu_ns: None, ..earlier.usage };
        Self { spawned: self.spawned, usage, before_ns: earlier.usage.cpu_ns.unwrap_or(earlier.before_ns) }
    }

    pub const fn is_ready(&self) -> bool {
        self.usage.startup_ns.is_some()
    }

    /// It is at the barrier: looked at as often as the launcher does.
    pub fn ready(&mut self, pid: u32) {
        self.usage.startup_ns = Some(self.spawned.elapsed().as_nanos() as u64);
        self.usage.startup_cpu_ns = cpu_time(pid);
        self.see_memory(pid);
    }

    /// Looks at its memory; nothing of one that has ended.
    pub fn see_memory(&mut self, pid: u32) {
        self.see(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default());
    }

    /// What such a file says. One that is about to end has unmapped what it shared, and still has
    /// its peak.
    fn see(&mut self, status: &str) {
        if let Some(peak) = kilobytes(status, "VmHWM:") {
            self.usage.peak_bytes = self.usage.peak_bytes.max(Some(peak));
            self.usage.shared_bytes = self.usage.shared_bytes.max(kilobytes(status, "RssShmem:"));
        }
    }

    /// It has ended and is not reaped: the kernel still has its account.
    pub fn ended(&mut self, pid: u32) {
        let used = cpu_time(pid).map(|used| used.saturating_add(self.before_ns));
        self.usage.cpu_ns = used.or(self.usage.cpu_ns);
    }

    pub const fn usage(&self) -> ProcessUsage {
        self.usage
    }
}

/// The proportional set size of a process, in bytes. `None` if it has gone, or the kernel tells
/// none.
pub fn proportional_memory(pid: u32) -> Option<u64> {
    kilobytes(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

/// The value of a line that begins with that name and ends with `kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// CPU time of all threads of a process so far, in nanoseconds; of one that has ended until it is
/// reaped.
fn cpu_time(pid: u32) -> Option<u64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into().ok()?)).ok()?;
    Some(Duration::from(clock_gettime(clock).ok()?).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_kernel_keeps_the_account_of_one_that_has_ended_until_it_is_reaped() {
        let mut account = Account::begin();
        let mut child = Command::new("sh")
            .args(["-c", "read go; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(!account.is_ready());
        account.ready(pid);
        assert!(account.is_ready() && account.usage().peak_bytes > Some(0), "{account:?}");
        drop(child.stdin.take());
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        while !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(1));
        }
        account.see_memory(pid);
        assert!(account.usage().peak_bytes.is_some(), "what was seen stays");
        account.ended(pid);
        let usage = account.usage();
        assert!(usage.cpu_ns > usage.startup_cpu_ns, "{usage:?}");
        child.wait().unwrap();
        account.ended(pid);
        assert_eq!(account.usage(), usage, "nobody is asked about what is gone");
    }

    #[test]
    fn what_was_shared_is_not_forgotten_when_it_is_unmapped() {
        let mut account = Account::begin();
        account.see("VmHWM:\t  2048 kB\nRssShmem:\t  1024 kB\n");
        account.see("VmHWM:\t  4096 kB\nRssShmem:\t     0 kB\n");
        account.see("State:\tZ (zombie)\n");
        let seen = account.usage();
        assert_eq!((seen.peak_bytes, seen.shared_bytes), (Some(4 << 20), Some(1 << 20)));
    }

    #[test]
    fn one_that_is_started_again_goes_on_with_the_account() {
        let first = Account {
            usage: ProcessUsage {
                startup_ns: Some(5),
                cpu_ns: Some(70),
                peak_bytes: Some(9),
                ..ProcessUsage::default()
            },
            ..Account::begin()
        };
        let mut second = Account::begin().after(first);
        assert_eq!((second.usage().cpu_ns, second.usage().peak_bytes), (None, Some(9)));
        second.ended(std::process::id());
        assert!(second.usage().cpu_ns > Some(70) && second.is_ready());
    }
}
