//! How long processes may take to end once the run is over: a grace of their own time, not of the clock on the wall.
//!
//! Others may have the cores meanwhile, and who gets none cannot end. That is the kernel's word, as in [`super::liveness`]; a process that
//! has its core, or sleeps, and does not end has used its grace up. A machine that stood still, the launcher with it, begins it anew.

use super::cpu::CpuAccount;
use std::time::{Duration, Instant};

/// How many graces it may take, whoever waits for a core.
const STARVED: u32 = 6;

/// A grace that has begun.
pub struct Grace {
    length: Duration,
    until: Instant,
    last: Instant,
    looked: Instant,
    /// What the kernel said, by process id, when the grace began or was last prolonged.
    accounts: Vec<(u32, CpuAccount)>,
}

impl Grace {
    /// Begins now, for these processes.
    pub fn begin(length: Duration, pids: &[u32]) -> Self {
        let now = Instant::now();
        let last = now + length * STARVED;
        Self { length, until: now + length, last, looked: now, accounts: accounts(pids) }
    }

    /// Whether it is over for these, who have not ended. Asked several times within its length.
    pub fn is_over(&mut self, left: &[u32]) -> bool {
        self.is_over_at(Instant::now(), left)
    }

    fn is_over_at(&mut self, now: Instant, left: &[u32]) -> bool {
        let asleep = now - self.looked;
        self.looked = now;
        if asleep > self.length / 2 {
            self.until = now + self.length;
            self.last += asleep;
        }
        if now < self.until {
            return false;
        }
        let accounts = accounts(left);
        let starves = |(pid, account): &(u32, CpuAccount)| {
            let first = self.accounts.iter().find(|(known, _)| known == pid);
            first.is_some_and(|(_, first)| account.is_starved_since(first, self.length))
        };
        if now >= self.last || !accounts.iter().any(starves) {
            return true;
        }
        (self.until, self.accounts) = (now + self.length, accounts);
        false
    }
}

fn accounts(pids: &[u32]) -> Vec<(u32, CpuAccount)> {
    pids.iter().filter_map(|pid| Some((*pid, CpuAccount::of_process(*pid)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    const SHORT: Duration = Duration::from_millis(400);

    /// A process that never ends by itself.
    fn hangs(how: &str) -> Child {
        Command::new("sh").args(["-c", how]).spawn().unwrap()
    }

    /// Whether the grace of that process is over when its time is.
    fn is_over_after_its_time(child: &Child) -> bool {
        let mut grace = Grace::begin(SHORT, &[child.id()]);
        let begun = grace.looked;
        let mut over_at = |at: u32| grace.is_over_at(begun + SHORT / 4 * at, &[child.id()]);
        // What the kernel says is of this time, whenever the looks are said to be.
        std::thread::sleep(SHORT);
        assert!(!(0..4).any(&mut over_at), "its time is not over");
        over_at(4)
    }

    #[test]
    fn one_that_sleeps_has_no_more_than_its_grace() {
        let mut child = hangs("exec sleep 60");
        // It has become what it is to be.
        std::thread::sleep(Duration::from_millis(200));
        let is_over = is_over_after_its_time(&child);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_over);
    }

    #[test]
    fn a_machine_that_stood_still_begins_it_anew() {
        let mut grace = Grace::begin(SHORT, &[]);
        let begun = grace.looked;
        let mut over_at = |at: u32| grace.is_over_at(begun + SHORT / 4 * at, &[]);
        assert!(!over_at(2) && !over_at(50), "it was away");
        assert!(!over_at(52) && over_at(54), "and then it was not");
    }

    #[test]
    fn one_that_gets_no_core_has_more_but_not_for_ever() {
        // All on one core, which the others take: who is started here inherits it.
        system::pin::pin_to(system::pin::allowed_cores()[0]).unwrap();
        let mut others: Vec<Child> = (0..4).map(|_| hangs("while :; do :; done")).collect();
        let mut child = hangs("exec nice -n 19 sh -c 'while :; do :; done'");
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let mut grace = Grace::begin(SHORT, &[child.id()]);
        let mut had = Duration::ZERO;
        while !grace.is_over(&[child.id()]) && begun.elapsed() < SHORT * 20 {
            std::thread::sleep(Duration::from_millis(20));
            had = begun.elapsed();
        }
        others.iter_mut().chain([&mut child]).for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert!((SHORT * 2..SHORT * 20).contains(&had), "{had:?}");
    }
}
