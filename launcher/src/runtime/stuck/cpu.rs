//! Kernel accounts of a silent thread or process: whether it wants to run, and for how long it
//! could.

use core::time::Duration;
use system::process;

/// The kernel's account of a thread, or of all threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuAccount {
    /// It runs, or waits for a core: it neither sleeps nor is it stopped.
    pub is_runnable: bool,
    /// How long it has run since it was started.
    pub ran: Duration,
}

impl CpuAccount {
    /// Asks the kernel. `None` where there is no such thread in that process, or no such account.
    pub fn of(pid: u32, tid: u64) -> Option<Self> {
        let tid = process::host_thread_id(pid, tid)?;
        let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}")).ok();
        Self::parse(&text("stat")?, &text("schedstat")?)
    }

    /// The same of a whole process: what its threads have run together, and whether one of them
    /// wants to.
    pub fn of_process(pid: u32) -> Option<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let accounts = ids.filter_map(|tid| Self::of(pid, tid));
        accounts.reduce(|sum, one| Self {
            is_runnable: sum.is_runnable || one.is_runnable,
            ran: sum.ran + one.ran,
        })
    }

    /// Whether it wants to run and has hardly run since that account: for less than a quarter of
    /// that time.
    pub fn is_starved_since(&self, first: &Self, time: Duration) -> bool {
        self.is_runnable && self.ran.saturating_sub(first.ran) < time / 4
    }

    /// From the two files. The name in `stat` is the thread's own choice: the state stands behind
    /// its last parenthesis.
    fn parse(stat: &str, schedstat: &str) -> Option<Self> {
        let state = stat.rsplit_once(')')?.1.split_whitespace().next()?;
        let ran = schedstat.split_whitespace().next()?.parse().ok()?;
        Some(Self { is_runnable: state == "R", ran: Duration::from_nanos(ran) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_hide_the_state() {
        let account = CpuAccount::parse("7 (a) R (b) S 1 7 7", "12345 6 7\n").unwrap();
        assert_eq!(account, CpuAccount { is_runnable: false, ran: Duration::from_nanos(12_345) });
        assert!(CpuAccount::parse("7 (strategy-0) R 1 7 7", "1 2 3").unwrap().is_runnable);
        for (stat, schedstat) in [("", "1 2 3"), ("7 (x)", "1 2 3"), ("7 (x) R", ""), ("7 (x) R", "-1 2 3")] {
            assert_eq!(CpuAccount::parse(stat, schedstat), None, "{stat:?} {schedstat:?}");
        }
    }

    #[test]
    fn who_has_its_core_and_who_sleeps_are_not_starved() {
        let account = |is_runnable, ms| CpuAccount { is_runnable, ran: Duration::from_millis(ms) };
        let (first, time) = (account(true, 1000), Duration::from_millis(400));
        let is_starved = |is_runnable, ms| account(is_runnable, ms).is_starved_since(&first, time);
        assert!(is_starved(true, 1000) && is_starved(true, 1099));
        assert!(!is_starved(true, 1100), "it ran for a quarter of the time");
        assert!(!is_starved(false, 1000), "it sleeps, or is stopped");
    }

    #[test]
    fn the_kernel_knows_this_thread_and_not_a_stranger_s() {
        let (pid, tid) = (std::process::id(), system::process::thread_id());
        let account = CpuAccount::of(pid, tid.into()).unwrap();
        assert!(account.is_runnable);
        assert_eq!(CpuAccount::of(pid, 1), None, "that is a thread of another process");
    }
}
