//! When a thread counts as hanging, and when its status says what no honest thread says.
//!
//! The suspect writes its status itself, so it is not believed. A heartbeat counts when the
//! launcher, on its own clock, sees it *change*. What excuses a silent thread is what the launcher
//! itself knows:
//!
//! | what the launcher knows | the deadline |
//! |---|---|
//! | the barrier is shut | none here: `--start-timeout` |
//! | the process was started again and has not had a duty cycle yet | [`START`] |
//! | all its threads say that they are done | [`END`] for the process to end, or the plan's deadline if that is longer |
//! | it wants to run, and has not run for a quarter of the deadline since half of it went by | up to [`STARVED`] times the plan's |
//! | anything else, whatever state it says it is in | the plan's |
//!
//! Which thread it is it says itself, once: the first number that is seen of an incarnation stays,
//! and only a thread of its own process is looked at.

use super::{CpuAccount, Deadline};
use analysis::units::Nanos;
use core::fmt;
use protocol::plan::Plan;
use protocol::status::{LivenessSample, ThreadState};
use std::time::Duration;

/// How long an incarnation that was started again may take until its first duty cycle.
pub const START: Duration = Duration::from_secs(30);
/// How long a process may take to end after all its threads said that they are done, at least.
pub const END: Duration = Duration::from_secs(1);
/// How many deadlines a thread that waits for a core may be silent.
pub const STARVED: u32 = 10;
/// How far the counters of two cores may differ: a thread that is moved may see the time go back so
/// far.
const SKEW: Duration = Duration::from_millis(1);

/// What is wrong with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// No new heartbeat for so long.
    Silent(Duration),
    /// It said that it was done so long ago, and its process is still there.
    DoesNotEnd(Duration),
    /// Its status holds what no honest thread writes.
    Forged(Forgery),
}

/// What no honest thread writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// A heartbeat of the future.
    Future,
    /// A heartbeat before the last one.
    Past,
    /// A state that there is not.
    UnknownState,
    /// A state that comes before the last one, or one of a run that has not begun.
    ImpossibleState,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |time: &Duration| Nanos(time.as_nanos() as u64);
        match self {
            Self::Silent(time) => write!(f, "hangs: no duty cycle for {}", shown(time)),
            Self::DoesNotEnd(time) => write!(f, "hung: reported done {} ago but has not exited", shown(time)),
            Self::Forged(Forgery::Future) => f.write_str("its heartbeat lies in the future"),
            Self::Forged(Forgery::Past) => f.write_str("its heartbeat went back"),
            Self::Forged(Forgery::UnknownState) => f.write_str("invalid thread state in status block"),
            Self::Forged(Forgery::ImpossibleState) => f.write_str("its state went back, or ahead of the run"),
        }
    }
}

/// The deadlines of all threads, what was seen of each, and how long the launcher has been awake.
/// Times are ticks.
#[derive(Clone, Debug)]
pub struct Liveness {
    limit: Duration,
    ns_per_tick: f64,
    now: u64,
    awake_since: u64,
    /// When a thread was last seen that only its wait for a core excused.
    starved: u64,
    is_open: bool,
    watches: Vec<ThreadWatch>,
}

/// What was seen of one thread.
#[derive(Clone, Copy, Debug)]
struct ThreadWatch {
    state: ThreadState,
    heartbeat: u64,
    /// Restarted when the heartbeat or the state is seen to change.
    deadline: Deadline,
    /// It had no duty cycle yet since its process was started again.
    is_starting: bool,
    forged: Option<Forgery>,
    /// What the kernel said first in this silence, and what it said last.
    accounts: Option<(CpuAccount, CpuAccount)>,
    /// The kernel's number of it, as it said first; 0: not yet.
    tid: u64,
}

impl Liveness {
    /// The plan's deadline for each thread; the barrier is shut.
    pub fn new(plan: &Plan, now: u64) -> Self {
        let (limit, ns_per_tick) = (Duration::from_nanos(plan.liveness_ns), plan.ns_per_tick);
        let watches = Vec::new();
        let mut new =
            Self { limit, ns_per_tick, now, awake_since: now, starved: now, is_open: false, watches };
        new.watches = vec![new.watch(now, false); plan.threads.len()];
        new
    }

    /// A thread of which nothing was seen yet.
    fn watch(&self, now: u64, is_starting: bool) -> ThreadWatch {
        ThreadWatch {
            state: ThreadState::Starting,
            heartbeat: 0,
            deadline: self.deadline(now, is_starting),
            is_starting,
            forged: None,
            accounts: None,
            tid: 0,
        }
    }

    fn deadline(&self, now: u64, is_starting: bool) -> Deadline {
        let limit = if is_starting { START.max(self.limit) } else { self.limit };
        Deadline::new(self.ticks(limit), now).stretched_to(STARVED.into())
    }

    /// The barrier is about to open: from now on every thread has its deadline.
    pub fn open(&mut self, now: u64) {
        self.is_open = true;
        self.watches.iter_mut().for_each(|watch| watch.deadline.restart(now));
    }

    /// A thread's process is about to be started again, with a status that was made anew.
    pub fn restarted(&mut self, thread: usize, now: u64) {
        self.watches[thread] = self.watch(now, true);
    }

    /// The launcher is awake at this tick; it says so several times within each deadline. If it was
    /// away all threads were.
    pub fn awake(&mut self, now: u64) {
        if now.saturating_sub(self.now) > self.ticks(self.limit / 2) {
            self.awake_since = now;
            self.watches.iter_mut().for_each(|watch| watch.deadline.restart(now));
        }
        self.now = now;
        if self.watches.iter().any(|watch| self.excuses(watch)) {
            self.starved = now;
        }
    }

    /// Returns since when the launcher has been awake without a break, in ticks.
    pub const fn awake_since(&self) -> u64 {
        self.awake_since
    }

    /// Returns when a thread was last seen whose silence only its wait for a core excused, in
    /// ticks; at first when this was made.
    pub const fn starved(&self) -> u64 {
        self.starved
    }

    /// Takes note of a thread's pulse, which was read before this tick.
    pub fn see(&mut self, thread: usize, pulse: LivenessSample, now: u64) {
        let skew = self.ticks(SKEW);
        let (heartbeat, state) = (pulse.heartbeat_ticks, ThreadState::from_code(pulse.state));
        let mut watch = self.watches[thread];
        if watch.tid == 0 {
            watch.tid = pulse.tid;
        }
        let is_early = !self.is_open && matches!(state, ThreadState::Running | ThreadState::Done);
        let forged = if !ThreadState::is_known(pulse.state) {
            Some(Forgery::UnknownState)
        } else if state < watch.state || is_early {
            Some(Forgery::ImpossibleState)
        } else if heartbeat > now.saturating_add(skew) {
            Some(Forgery::Future)
        } else if heartbeat < watch.heartbeat.saturating_sub(skew) {
            Some(Forgery::Past)
        } else {
            None
        };
        if forged.is_some() {
            watch.forged = watch.forged.or(forged);
        } else {
            if (heartbeat, state) != (watch.heartbeat, watch.state) {
                watch.is_starting &= heartbeat == 0;
                watch.deadline = self.deadline(now, watch.is_starting);
                watch.accounts = None;
            }
            (watch.state, watch.heartbeat) = (state, heartbeat);
        }
        self.watches[thread] = watch;
    }

    /// Returns `true` if a thread has been silent for so long that the kernel is to be asked about
    /// it.
    pub fn asks_the_kernel(&self, thread: usize) -> bool {
        let watch = &self.watches[thread];
        self.is_open && watch.state != ThreadState::Done && self.silence(watch) > self.ticks(self.limit / 2)
    }

    /// Returns the kernel's number of a thread, as its incarnation said it first: what it says
    /// later may be another thread's, which sleeps and waits for a core where it spins itself.
    pub fn tid(&self, thread: usize) -> u64 {
        self.watches[thread].tid
    }

    /// Takes note of the kernel's account of a silent thread; `None`: it has none.
    pub fn account(&mut self, thread: usize, account: Option<CpuAccount>) {
        let accounts = &mut self.watches[thread].accounts;
        *accounts = account.map(|account| (accounts.map_or(account, |(first, _)| first), account));
    }

    /// Returns `true` if a silent thread waits for a core.
    fn is_starved(&self, watch: &ThreadWatch) -> bool {
        watch.accounts.is_some_and(|(first, last)| last.is_starved_since(&first, self.limit))
    }

    /// Returns `true` if a thread is silent for longer than it may be, and only the wait for a core
    /// excuses it.
    fn excuses(&self, watch: &ThreadWatch) -> bool {
        let limit = self.ticks(self.limit);
        self.is_starved(watch)
            && watch.state != ThreadState::Done
            && (limit..=limit.saturating_mul(STARVED.into())).contains(&self.silence(watch))
    }

    /// Returns `true` if something that began at this tick lasts longer than a thread may be
    /// silent, and half as long again: any thread that is not silent now has begun a duty cycle
    /// since. Nothing is while a thread is excused, which has not.
    pub fn is_overdue(&self, since: u64) -> bool {
        self.is_open
            && self.now.saturating_sub(since.max(self.awake_since)) > self.ticks(self.limit + self.limit / 2)
            && !self.watches.iter().any(|watch| self.excuses(watch))
    }

    /// Returns how often it must be awake, at least.
    pub fn interval(&self) -> Duration {
        self.limit / 4
    }

    /// Returns what is wrong with a thread, if something is. `shares`: all threads of its process.
    pub fn suspicion(&self, thread: usize, shares: &[u32]) -> Option<Suspicion> {
        let watch = &self.watches[thread];
        if let Some(forgery) = watch.forged {
            return Some(Suspicion::Forged(forgery));
        }
        if !self.is_open {
            return None;
        }
        if watch.state == ThreadState::Done {
            let limit = self.limit.max(END);
            let is_late = |watch: &ThreadWatch| {
                watch.state == ThreadState::Done && self.silence(watch) > self.ticks(limit)
            };
            let is_late = shares.iter().all(|thread| is_late(&self.watches[*thread as usize]));
            return is_late.then_some(Suspicion::DoesNotEnd(limit));
        }
        let is_starved = self.is_starved(watch);
        let limits = if is_starved { STARVED } else { 1 };
        let limit = if watch.is_starting { START.max(self.limit) } else { self.limit };
        let is_over = watch.deadline.is_over(self.now, if is_starved { self.now } else { 0 });
        is_over.then_some(Suspicion::Silent(limit * limits))
    }

    /// How long a thread has been silent while the launcher was awake, in ticks.
    const fn silence(&self, watch: &ThreadWatch) -> u64 {
        self.now.saturating_sub(watch.deadline.since(0))
    }

    fn ticks(&self, time: Duration) -> u64 {
        (time.as_nanos() as f64 / self.ns_per_tick) as u64
    }
}

#[cfg(test)]
mod tests;
