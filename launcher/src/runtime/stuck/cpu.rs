//! The kernel's CPU account of a silent thread or process: whether it is runnable or waits for a
//! disk, and how long it has run.

use core::time::Duration;
use system::process;

/// CPU time and state of a thread, or of all threads of a process, according to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuAccount {
    /// Runnable: the thread runs or waits for a core, and neither sleeps nor is stopped.
    pub is_runnable: bool,
    /// In an uninterruptible sleep: the kernel serves its system call or page fault, mostly with a
    /// disk, and not even SIGKILL ends it until then.
    pub is_in_kernel: bool,
    /// CPU time since its start.
    pub ran: Duration,
    /// Time since its start in which it was runnable and had no core.
    pub waited: Duration,
}

impl CpuAccount {
    /// Reads CPU time and state of a thread, if the process has it and the kernel keeps an account.
    pub fn of_thread(pid: u32, tid: u64) -> Option<Self> {
        let tid = process::host_thread_id(pid, tid)?;
        let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}")).ok();
        Self::parse(&text("stat")?, &text("schedstat")?)
    }

    /// Reads the CPU time of a process's threads together, and whether one of them is runnable.
    pub fn of_process(pid: u32) -> Option<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let accounts = ids.filter_map(|tid| Self::of_thread(pid, tid));
        accounts.reduce(|sum, one| Self {
            is_runnable: sum.is_runnable || one.is_runnable,
            is_in_kernel: sum.is_in_kernel || one.is_in_kernel,
            ran: sum.ran + one.ran,
            waited: sum.waited + one.waited,
        })
    }

    /// Returns `true` if it was runnable and got less than a quarter of `time` since `first`.
    pub fn is_starved_since(&self, first: &Self, time: Duration) -> bool {
        self.is_runnable && self.ran.saturating_sub(first.ran) < time / 4
    }

    /// Returns `true` if it waited for a core for three quarters of `time` since `first`. Unlike
    /// [`CpuAccount::is_starved_since`] it holds for a process that sleeps in between: one that is
    /// runnable for a moment when it is looked at is not starved.
    pub fn has_waited_since(&self, first: &Self, time: Duration) -> bool {
        self.waited.saturating_sub(first.waited) >= time * 3 / 4
    }

    pub(super) fn parse(stat: &str, schedstat: &str) -> Option<Self> {
        let state = process::state_in(stat)?;
        let mut times = schedstat.split_whitespace().map(|ns| ns.parse().ok().map(Duration::from_nanos));
        let (ran, waited) = (times.next()??, times.next()??);
        Some(Self { is_runnable: state == 'R', is_in_kernel: state == 'D', ran, waited })
    }
}

/// Prefix of the names of a journal's own threads, which sync it and create its segments.
const JOURNAL_THREADS: &str = "journal-";

/// Returns `true` if one of a process's journal threads waits for the disk, according to the
/// kernel. The role's thread may wait for that one.
pub fn has_journal_thread_in_kernel(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok()).any(|stat| {
        let is_of_journal = stat.split_once('(').is_some_and(|(_, name)| name.starts_with(JOURNAL_THREADS));
        is_of_journal && process::state_in(&stat) == Some('D')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_hide_the_state() {
        let account = CpuAccount::parse("7 (a) R (b) S 1 7 7", "12345 6 7\n").unwrap();
        let [ran, waited] = [12_345, 6].map(Duration::from_nanos);
        assert_eq!(account, CpuAccount { ran, waited, ..CpuAccount::default() });
        assert!(CpuAccount::parse("7 (engine) D 1 7 7", "1 2 3").unwrap().is_in_kernel);
        assert!(CpuAccount::parse("7 (strategy-0) R 1 7 7", "1 2 3").unwrap().is_runnable);
        for (stat, schedstat) in
            [("", "1 2 3"), ("7 (x)", "1 2 3"), ("7 (x) R", ""), ("7 (x) R", "-1 2 3"), ("7 (x) R", "1")]
        {
            assert_eq!(CpuAccount::parse(stat, schedstat), None, "{stat:?} {schedstat:?}");
        }
    }

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

    #[test]
    fn account_exists_for_own_thread_only() {
        let (pid, tid) = (std::process::id(), system::process::thread_id());
        let account = CpuAccount::of_thread(pid, tid.into()).unwrap();
        assert!(account.is_runnable);
        assert_eq!(CpuAccount::of_thread(pid, 1), None, "that is a thread of another process");
    }
}
