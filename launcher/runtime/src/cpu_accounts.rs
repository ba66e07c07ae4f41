//! Reads the kernel's CPU account of a thread or process: whether it is runnable or waits for a
//! disk, and how long it has run.

use std::time::Duration;
use supervision::stuck::CpuAccount;
use system::process;

/// Reads CPU time and state of a thread from the kernel; `None` if the process has no such thread
/// or the kernel keeps no account.
pub fn account_of_thread(pid: u32, tid: u64) -> Option<CpuAccount> {
    let tid = process::host_thread_id(pid, tid)?;
    let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}")).ok();
    parse(&text("stat")?, &text("schedstat")?)
}

/// Reads the total CPU time of a process's threads, and whether one of them is runnable.
pub fn account_of_process(pid: u32) -> Option<CpuAccount> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let accounts = ids.filter_map(|tid| account_of_thread(pid, tid));
    accounts.reduce(|sum, one| CpuAccount {
        is_runnable: sum.is_runnable || one.is_runnable,
        is_in_kernel: sum.is_in_kernel || one.is_in_kernel,
        ran: sum.ran + one.ran,
        waited: sum.waited + one.waited,
    })
}

/// Returns the kernel's CPU account of each process that has one, with the process id.
pub fn accounts_of(pids: &[u32]) -> Vec<(u32, CpuAccount)> {
    pids.iter().filter_map(|pid| Some((*pid, account_of_process(*pid)?))).collect()
}

/// Parses the texts of a thread's `stat` and `schedstat`.
pub(super) fn parse(stat: &str, schedstat: &str) -> Option<CpuAccount> {
    let state = process::state_in(stat)?;
    let mut times = schedstat.split_whitespace().map(|ns| ns.parse().ok().map(Duration::from_nanos));
    let (ran, waited) = (times.next()??, times.next()??);
    Some(CpuAccount { is_runnable: state == 'R', is_in_kernel: state == 'D', ran, waited })
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
    use std::process::{Child, Command};
    use std::time::Instant;
    use supervision::stuck::ShutdownTimeout;

    #[test]
    fn a_name_does_not_hide_the_state() {
        let account = parse("7 (a) R (b) S 1 7 7", "12345 6 7\n").unwrap();
        let [ran, waited] = [12_345, 6].map(Duration::from_nanos);
        assert_eq!(account, CpuAccount { ran, waited, ..CpuAccount::default() });
        assert!(parse("7 (engine) D 1 7 7", "1 2 3").unwrap().is_in_kernel);
        assert!(parse("7 (strategy-0) R 1 7 7", "1 2 3").unwrap().is_runnable);
        for (stat, schedstat) in
            [("", "1 2 3"), ("7 (x)", "1 2 3"), ("7 (x) R", ""), ("7 (x) R", "-1 2 3"), ("7 (x) R", "1")]
        {
            assert_eq!(parse(stat, schedstat), None, "{stat:?} {schedstat:?}");
        }
    }

    #[test]
    fn account_exists_for_own_thread_only() {
        let (pid, tid) = (std::process::id(), system::process::thread_id());
        let account = account_of_thread(pid, tid.into()).unwrap();
        assert!(account.is_runnable);
        assert_eq!(account_of_thread(pid, 1), None, "that is a thread of another process");
    }

    #[test]
    fn kernel_says_which_process_gets_no_core() {
        const SHORT: Duration = Duration::from_millis(400);
        // All on one core, which the others occupy: processes started here inherit it.
        system::pin::pin_to(system::pin::allowed_cores()[0]).unwrap();
        let start = |how: &str| Command::new("sh").args(["-c", how]).spawn().unwrap();
        let mut others: Vec<Child> = (0..4).map(|_| start("while :; do :; done")).collect();
        let mut child = start("exec nice -n 19 sh -c 'while :; do :; done'");
        std::thread::sleep(SHORT / 2);
        let accounts = || accounts_of(&[child.id()]);
        let (begun, mut timeout) = (Instant::now(), ShutdownTimeout::begin(SHORT, accounts()));
        while !timeout.is_over(begun.elapsed().as_nanos() as u64, accounts) && begun.elapsed() < SHORT * 20 {
            std::thread::sleep(SHORT / 20);
        }
        let had = begun.elapsed();
        others.iter_mut().chain([&mut child]).for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert!((SHORT * 2..SHORT * 20).contains(&had), "{had:?}");
    }
}
