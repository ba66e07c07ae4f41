//! Excuses of a run without progress: a thread that waits for the disk of a journal, or a process
//! that gets no CPU time. Neither shows in the heartbeats if it lasts for less than their deadline.
//!
//! The stall's limit counts from the last excuse, up to the bound of every [`Deadline`].
//!
//! [`Deadline`]: crate::runtime::stuck::Deadline

use super::{Supervisor, progress_check::has_journal};
use crate::runtime::process::Process;
use crate::runtime::stuck::{CpuAccount, StallWatch, has_journal_thread_in_kernel};
use std::time::Duration;

/// The CPU accounts of the run's processes while it makes no progress.
#[derive(Default)]
pub(super) struct StarvedProcesses {
    /// When they were read, in nanoseconds since the start; by process id.
    first: Option<(u64, Vec<(u32, CpuAccount)>)>,
}

impl StarvedProcesses {
    /// Returns `true` if a process was starved since the accounts were read last, which is at least
    /// `interval` ago; they are read again then.
    fn try_find_starved(
        &mut self,
        now_ns: u64,
        interval: Duration,
        accounts: impl FnOnce() -> Vec<(u32, CpuAccount)>,
    ) -> bool {
        let since = self.first.as_ref().map(|(at, _)| Duration::from_nanos(now_ns.saturating_sub(*at)));
        if since.is_some_and(|since| since < interval) {
            return false;
        }
        let before = self.first.replace((now_ns, accounts()));
        let (Some((_, before)), Some((_, now)), Some(since)) = (before, &self.first, since) else {
            return false;
        };
        now.iter().any(|(pid, account)| {
            let first = before.iter().find(|(known, _)| known == pid);
            first.is_some_and(|(_, first)| account.has_waited_since(first, since))
        })
    }
}

impl Supervisor<'_> {
    /// Looks for excuses once the run has made no progress for a quarter of the stall's limit.
    pub(super) fn query_stall_excuses(&mut self, stall: &StallWatch) {
        self.query_excuses(stall.silent_ns(self.now_ns()), stall.limit());
    }

    /// Looks for excuses of a wait with a limit, once it has lasted for a quarter of that.
    pub(super) fn query_excuses(&mut self, still_ns: u64, limit: Duration) {
        let (now_ns, interval) = (self.now_ns(), limit / 4);
        if still_ns < interval.as_nanos() as u64 {
            self.starved.first = None;
            return;
        }
        let running: Vec<(usize, u32)> = (self.processes.all.iter().enumerate())
            .filter(|(_, process)| process.status.is_none())
            .map(|(index, process)| (index, Process::pid(process)))
            .collect();
        let writes = |(index, pid): &&(usize, u32)| {
            has_journal(self.plan, *index) && has_journal_thread_in_kernel(*pid)
        };
        if let Some((process, _)) = running.iter().find(writes) {
            self.liveness.record_excuse_of_run();
            self.note_disk_wait(*process, Some(still_ns));
        }
        let account = |(_, pid): &(usize, u32)| Some((*pid, CpuAccount::of_process(*pid)?));
        if self.starved.try_find_starved(now_ns, interval, || running.iter().filter_map(account).collect()) {
            self.liveness.record_excuse_of_run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_cpu_time_excuses_stall() {
        let account = |is_runnable, ms| {
            let waited = Duration::from_millis(ms);
            vec![(7, CpuAccount { is_runnable, waited, ..CpuAccount::default() })]
        };
        let second = Duration::from_secs(1);
        let mut starved = StarvedProcesses::default();
        let mut check =
            |ms: u64, accounts: Vec<_>| starved.try_find_starved(ms * 1_000_000, second, || accounts);
        assert!(!check(0, account(true, 50)), "nothing is known before");
        assert!(!check(900, account(true, 950)), "too early");
        assert!(check(1_000, account(false, 950)), "it waited, whatever it does now");
        assert!(!check(2_000, account(true, 1_000)), "it is runnable now, and slept before");
        assert!(!check(3_000, vec![(8, CpuAccount::default())]), "another process");
    }
}
