//! Shutdown timeout of processes at the end of a run, measured in their own CPU time and not in
//! wall-clock time.
//!
//! A process that gets no core cannot exit, and the kernel reports that. A process that has its
//! core, or sleeps, and does not exit has used up its timeout.

use super::{CpuAccount, Deadline};
use std::time::Duration;

/// The timeout for processes to exit at the end of a run.
pub struct ShutdownTimeout {
    length: Duration,
    deadline: Deadline,
    /// When a process was last found to be waiting for a core.
    extended_ns: u64,
    /// CPU accounts by process id, when the timeout started or was last extended.
    accounts: Vec<(u32, CpuAccount)>,
}

impl ShutdownTimeout {
    /// Begins a shutdown timeout that is extended while processes lack CPU time; `accounts` are
    /// their CPU accounts at the start, by process id.
    pub const fn begin(length: Duration, accounts: Vec<(u32, CpuAccount)>) -> Self {
        Self { length, deadline: Deadline::within(length, 0), extended_ns: 0, accounts }
    }

    /// Begins a shutdown timeout that ends after `length` and is never extended.
    pub const fn fixed(length: Duration) -> Self {
        Self::begin(length, Vec::new())
    }

    /// Returns `true` if the timeout is over `now_ns` nanoseconds after it began; `accounts`
    /// returns the CPU accounts of processes that still run.
    pub fn is_over(&mut self, now_ns: u64, accounts: impl FnOnce() -> Vec<(u32, CpuAccount)>) -> bool {
        self.deadline.mark_awake(now_ns);
        if !self.deadline.is_over(now_ns, self.extended_ns) {
            return false;
        }
        let accounts = accounts();
        let starves = |(pid, account): &(u32, CpuAccount)| {
            let first = self.accounts.iter().find(|(known, _)| known == pid);
            first.is_some_and(|(_, first)| account.is_starved_since(first, self.length))
        };
        if accounts.iter().any(starves) {
            (self.extended_ns, self.accounts) = (now_ns, accounts);
        }
        self.deadline.is_over(now_ns, self.extended_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the tenth of a second at which two seconds are over, with such accounts by
    /// millisecond.
    fn over(account: impl Fn(u64) -> CpuAccount) -> Option<u64> {
        let mut timeout = ShutdownTimeout::begin(Duration::from_secs(2), vec![(7, account(0))]);
        (1..1000).find(|at| timeout.is_over(at * 100 * MS, || vec![(7, account(at * 100))]))
    }

    #[test]
    fn starved_process_extends_timeout_up_to_limit() {
        let account = |is_runnable, ran| {
            let ran = Duration::from_millis(ran);
            CpuAccount { is_runnable, ran, ..CpuAccount::default() }
        };
        assert_eq!(over(|_| account(false, 0)), Some(21), "it sleeps");
        assert_eq!(over(|now| account(true, now)), Some(21), "it has its core");
        assert_eq!(over(|now| account(true, now / 10)), Some(121), "six timeouts");
        let freed = |now: u64| if now < 3000 { account(true, 0) } else { account(true, now) };
        assert_eq!(over(freed), Some(42), "it has had its core since");
        let mut fixed = ShutdownTimeout::fixed(Duration::from_secs(2));
        let starved = || vec![(7, account(true, 0))];
        assert_eq!(
            (1..1000).find(|at| fixed.is_over(at * 100 * MS, starved)),
            Some(21),
            "nothing extends it"
        );
    }
}
