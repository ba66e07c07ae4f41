//! Exemptions that excuse a run without progress: a thread waits for the disk of a journal, or a
//! process gets no CPU time. Neither shows in the heartbeats if it lasts for less than their
//! deadline.
//!
//! The stall's limit counts from the last exemption, up to the bound of every [`Deadline`].
//!
//! [`Deadline`]: crate::stuck::Deadline

use super::actions::Actions;
use super::observations::Observations;
use super::{Phase, Supervisor};
use crate::stuck::CpuAccount;
use std::time::Duration;

/// The CPU accounts of the run's processes while it makes no progress.
#[derive(Default)]
pub(super) struct StarvedProcesses {
    /// When they were read, in nanoseconds since the start; by process id.
    first: Option<(u64, Vec<(u32, CpuAccount)>)>,
}

impl StarvedProcesses {
    /// Returns `true` if the accounts are to be read again: they were read at least `interval` ago.
    fn is_due(&self, now_ns: u64, interval: Duration) -> bool {
        let since = self.first.as_ref().map(|(at, _)| Duration::from_nanos(now_ns.saturating_sub(*at)));
        since.is_none_or(|since| since >= interval)
    }

    /// Returns `true` if a process was starved since the accounts were read last.
    fn try_find_starved(&mut self, now_ns: u64, accounts: &[(u32, CpuAccount)]) -> bool {
        let before = self.first.replace((now_ns, accounts.to_vec()));
        let Some((since_ns, before)) = before else { return false };
        let since = Duration::from_nanos(now_ns.saturating_sub(since_ns));
        accounts.iter().any(|(pid, account)| {
            let first = before.iter().find(|(known, _)| known == pid);
            first.is_some_and(|(_, first)| account.has_waited_since(first, since))
        })
    }
}

impl Supervisor<'_> {
    /// Returns for how long the run has made no progress, or has waited for its end, and the limit.
    fn standstill(&self, now_ns: u64) -> Option<(u64, Duration)> {
        match &self.phase {
            Phase::Trading => Some((self.stall.silent_ns(now_ns), self.stall.limit())),
            Phase::Closing(wait) | Phase::Settling(wait) => {
                Some((now_ns.saturating_sub(wait.began_ns), self.limits.grace))
            }
            Phase::Draining(drain) => Some((now_ns.saturating_sub(drain.wait.began_ns), self.limits.grace)),
            _ => None,
        }
    }

    /// Returns `true` once a quarter of the limit without progress is over: the caller must then
    /// observe whether disk or CPU delay the run.
    pub fn needs_exemptions(&self, now: u64) -> bool {
        let standstill = self.standstill(self.ns(now));
        standstill.is_some_and(|(still_ns, limit)| still_ns >= (limit / 4).as_nanos() as u64)
    }

    /// Returns `true` if the observed stall exemptions should contain the CPU time of all
    /// processes, to find those without a core.
    pub fn needs_process_accounts(&self, now: u64) -> bool {
        let standstill = self.standstill(self.ns(now));
        standstill.is_some_and(|(_, limit)| self.starved.is_due(self.ns(now), limit / 4))
    }

    /// Records the observed exemptions of a run without progress.
    pub(super) fn record_exemptions(&mut self, observed: &Observations, out: &mut dyn Actions) {
        let now_ns = self.now_ns();
        let Some(exemptions) = &observed.exemptions else {
            self.starved.first = None;
            return;
        };
        if let Some(process) = exemptions.disk_writer {
            self.liveness.record_exemption_of_run();
            let still_ns = self.standstill(now_ns).map(|(still_ns, _)| still_ns);
            self.note_disk_wait(process, still_ns, out);
        }
        if let Some(accounts) = &exemptions.accounts
            && self.starved.try_find_starved(now_ns, accounts)
        {
            self.liveness.record_exemption_of_run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_cpu_time_exempts_stall() {
        let account = |is_runnable, ms| {
            let waited = Duration::from_millis(ms);
            vec![(7, CpuAccount { is_runnable, waited, ..CpuAccount::default() })]
        };
        let second = Duration::from_secs(1);
        let mut starved = StarvedProcesses::default();
        let mut check = |ms: u64, accounts: Vec<_>| {
            let now_ns = ms * 1_000_000;
            starved.is_due(now_ns, second) && starved.try_find_starved(now_ns, &accounts)
        };
        assert!(!check(0, account(true, 50)), "nothing is known before");
        assert!(!check(900, account(true, 950)), "too early");
        assert!(check(1_000, account(false, 950)), "it waited, whatever it does now");
        assert!(!check(2_000, account(true, 1_000)), "it is runnable now, and slept before");
        assert!(!check(3_000, vec![(8, CpuAccount::default())]), "another process");
    }
}
