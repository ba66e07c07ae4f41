//! Failure detector: when a thread counts as hung, and when its status holds values that no correct
//! thread writes.
//!
//! The status is written by the suspect itself, so it is not trusted. A heartbeat counts when the
//! launcher, on its own clock, sees it *change*. A silent thread is exempt only by facts that the
//! launcher observes itself:
//!
//! | fact | the deadline |
//! |---|---|
//! | the barrier is closed | none here: `--start-timeout` |
//! | the process was restarted and has not had a duty cycle yet | [`START_TIMEOUT`] |
//! | all its threads report done | [`EXIT_TIMEOUT`] to exit, or the plan's deadline if longer |
//! | starved in the second half of the deadline | up to [`STARVED_LIMITS`] times as long |
//! | engine or exchange, waits for the disk of its journal | pauses, up to [`DISK_TIMEOUT`] |
//! | strategy, stopped by a [`Debugger`](super::Debugger) | waits, and starts again after it |
//! | anything else, whatever state it reports | the plan's |
//!
//! A thread reports its own thread id, once: the first id seen of an incarnation is kept, and only
//! a thread of its own process is queried. Only threads that write a journal are exempt for a
//! disk, since their code is ours: a strategy can wait in the kernel for as long as it likes.

use super::{CpuAccount, CpuSample, Deadline};
use protocol::plan::{Journaling, Plan, Role};
use protocol::status::{LivenessSample, ThreadState};
use record::cpu_shortage::CpuShortage;
use record::units::Nanos;
use std::time::Duration;
use thiserror::Error;

/// Maximum time from a thread's restart to its first duty cycle.
pub const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Minimum time that a process gets to exit after all its threads reported done.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time without a heartbeat of a thread that gets no CPU time, in liveness deadlines.
pub const STARVED_LIMITS: u32 = 10;
/// Maximum time without a heartbeat of a thread that waits for its journal's disk, or ten liveness
/// deadlines if that is longer.
pub const DISK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum difference of two cores' counters: a thread that migrates may see time go back by this.
const CLOCK_SKEW: Duration = Duration::from_millis(1);

/// A reason to kill a thread's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum LivenessFault {
    #[error("hangs: no duty cycle for {}", Nanos(.0.as_nanos() as u64))]
    Silent(Duration),
    /// The thread reported done this long ago, and its process still runs.
    #[error("hung: reported done {} ago but has not exited", Nanos(.0.as_nanos() as u64))]
    NotExiting(Duration),
    #[error("{0}")]
    Forged(ForgedStatus),
}

/// Values in a thread's status block that no correct thread writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum ForgedStatus {
    #[error("forged heartbeat: it lies in the future")]
    Future,
    #[error("forged heartbeat: it went back")]
    Past,
    #[error("invalid thread state in status block")]
    UnknownState,
    #[error("forged thread state: it went back, or is ahead of the run")]
    ImpossibleState,
}

/// The failure detector of all threads of a run: deadlines, heartbeats, and pauses of the launcher
/// itself, in ticks.
#[derive(Clone, Debug)]
pub struct Liveness {
    limit: Duration,
    ns_per_tick: f64,
    now: u64,
    awake_since: u64,
    /// When a thread was last exempt only by waiting for a core.
    last_starved: u64,
    /// When a debugger was last seen to stop a thread.
    last_held: u64,
    is_open: bool,
    watches: Vec<ThreadWatch>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadWatch {
    state: ThreadState,
    heartbeat: u64,
    /// Restarted when the heartbeat or the state is seen to change.
    deadline: Deadline,
    /// It has had no duty cycle since its process was restarted.
    is_starting: bool,
    forged: Option<ForgedStatus>,
    /// It writes a journal: it may wait for a disk.
    has_journal: bool,
    /// When it was last seen to wait for the disk in this silence; 0 for never.
    last_disk_wait: u64,
    /// First and last sample of its CPU time in this silence.
    samples: Option<(CpuSample, CpuSample)>,
    /// Thread id, as first reported; 0 if not yet.
    tid: u64,
    /// Its last sign of life before a debugger stopped it; `None` if none does now.
    held_since: Option<u64>,
}

impl Liveness {
    /// Creates a failure detector that gives each thread the plan's liveness deadline. The start
    /// barrier stays closed until all threads are ready.
    pub fn new(plan: &Plan, now: u64) -> Self {
        let limit = Duration::from_nanos(plan.liveness_ns);
        let mut new = Self::with_limit(limit, plan.ns_per_tick, plan.threads.len(), now);
        let is_journaled = plan.trading().journal != Journaling::None;
        for (watch, thread) in new.watches.iter_mut().zip(&plan.threads).filter(|_| is_journaled) {
            let has_journal = |role: &Role| matches!(role, Role::Orchestrator | Role::Exchange(_));
            watch.has_journal = thread.roles.iter().any(has_journal);
        }
        new
    }

    fn with_limit(limit: Duration, ns_per_tick: f64, threads: usize, now: u64) -> Self {
        let watches = Vec::new();
        let (awake_since, last_starved, last_held) = (now, now, now);
        let mut new =
            Self { limit, ns_per_tick, now, awake_since, last_starved, last_held, is_open: false, watches };
        new.watches = vec![new.new_watch(now, false); threads];
        new
    }

    fn new_watch(&self, now: u64, is_starting: bool) -> ThreadWatch {
        ThreadWatch {
            state: ThreadState::Starting,
            heartbeat: 0,
            deadline: self.deadline(now, is_starting),
            is_starting,
            forged: None,
            has_journal: false,
            last_disk_wait: 0,
            samples: None,
            tid: 0,
            held_since: None,
        }
    }

    fn deadline(&self, now: u64, is_starting: bool) -> Deadline {
        let limit = if is_starting { START_TIMEOUT.max(self.limit) } else { self.limit };
        Deadline::new(self.ticks(limit), now).stretched_to(STARVED_LIMITS.into())
    }

    /// Records that the barrier has opened, at a time in ticks: all deadlines restart.
    pub(crate) fn open(&mut self, now: u64) {
        self.is_open = true;
        self.watches.iter_mut().for_each(|watch| watch.deadline.restart(now));
    }

    /// Discards the heartbeats of a thread whose process is about to be restarted, and begins a new
    /// watch.
    pub fn reset_thread(&mut self, thread: usize, now: u64) {
        let has_journal = self.watches[thread].has_journal;
        self.watches[thread] = ThreadWatch { has_journal, ..self.new_watch(now, true) };
    }

    /// Records that the launcher is running; must be called several times within each deadline.
    /// After a pause of the launcher all deadlines restart.
    pub fn mark_awake(&mut self, now: u64) {
        if now.saturating_sub(self.now) > self.ticks(self.limit / 2) {
            self.awake_since = now;
            self.watches.iter_mut().for_each(|watch| watch.deadline.restart(now));
        }
        self.now = now;
        if self.watches.iter().any(|watch| self.is_exempt(watch)) {
            self.last_starved = now;
        }
    }

    /// Returns the tick since which the launcher has run without a pause, and no debugger has
    /// stopped a thread.
    pub const fn awake_since(&self) -> u64 {
        if self.last_held > self.awake_since { self.last_held } else { self.awake_since }
    }

    /// Records that the whole run waits for a core or for the disk of a journal, although no single
    /// thread is silent for long.
    pub const fn record_exemption_of_run(&mut self) {
        self.last_starved = self.now;
    }

    /// Returns the tick at which a thread, or the whole run, was last exempt from its deadline.
    /// Initially the time of creation.
    pub const fn last_starved(&self) -> u64 {
        self.last_starved
    }

    /// Records a thread's heartbeat and state, which were read no later than the tick `now`.
    pub fn observe(&mut self, thread: usize, pulse: LivenessSample, now: u64) {
        let skew = self.ticks(CLOCK_SKEW);
        let (heartbeat, state) = (pulse.heartbeat_ticks, ThreadState::from_code(pulse.state));
        let mut watch = self.watches[thread];
        if watch.tid == 0 {
            watch.tid = pulse.tid;
        }
        let is_early = !self.is_open && matches!(state, ThreadState::Running | ThreadState::Done);
        let forged = if !ThreadState::is_known(pulse.state) {
            Some(ForgedStatus::UnknownState)
        } else if state < watch.state || is_early {
            Some(ForgedStatus::ImpossibleState)
        } else if heartbeat > now.saturating_add(skew) {
            Some(ForgedStatus::Future)
        } else if heartbeat < watch.heartbeat.saturating_sub(skew) {
            Some(ForgedStatus::Past)
        } else {
            None
        };
        if forged.is_some() {
            watch.forged = watch.forged.or(forged);
        } else {
            if (heartbeat, state) != (watch.heartbeat, watch.state) {
                watch.is_starting &= heartbeat == 0;
                watch.deadline = self.deadline(now, watch.is_starting);
                (watch.samples, watch.last_disk_wait, watch.held_since) = (None, 0, None);
            }
            (watch.state, watch.heartbeat) = (state, heartbeat);
        }
        self.watches[thread] = watch;
    }

    /// Returns `true` if the CPU time of a thread with this heartbeat is needed at the tick `now`,
    /// to decide whether the thread hangs.
    pub fn needs_cpu_account(&self, thread: usize, pulse: &LivenessSample, now: u64) -> bool {
        self.is_half_over(thread, pulse, now)
    }

    /// Returns `true` if the supervisor's caller must observe whether a debugger has stopped a
    /// thread. That is when half of the thread's deadline is over, or a debugger had stopped it.
    /// The thread shows this pulse at the tick `now`.
    pub fn needs_debugger(&self, thread: usize, pulse: &LivenessSample, now: u64) -> bool {
        self.watches[thread].held_since.is_some() || self.is_half_over(thread, pulse, now)
    }

    fn is_half_over(&self, thread: usize, pulse: &LivenessSample, now: u64) -> bool {
        let watch = &self.watches[thread];
        let shown = (pulse.heartbeat_ticks, ThreadState::from_code(pulse.state));
        self.is_open
            && shown == (watch.heartbeat, watch.state)
            && now.saturating_sub(watch.deadline.since(0)) > self.ticks(self.limit / 2)
    }

    /// Returns the first thread id of the kernel that this incarnation of a thread reported as its
    /// own; 0 before that. A later one may be that of another thread, which waits for a core while
    /// this one hangs.
    pub fn tid(&self, thread: usize) -> u64 {
        self.watches[thread].tid
    }

    /// Records the kernel's CPU account of a silent thread; `None` if the kernel has none.
    pub fn record_cpu_sample(&mut self, thread: usize, sample: Option<CpuSample>) {
        let watch = &mut self.watches[thread];
        watch.samples = sample.map(|sample| (watch.samples.map_or(sample, |(first, _)| first), sample));
        if sample.is_some_and(|sample| sample.account.is_in_kernel) {
            self.record_disk_wait(thread);
        }
    }

    /// Records that a silent thread waits for the disk of its journal, according to the kernel.
    /// Ignored for a thread that writes no journal.
    pub fn record_disk_wait(&mut self, thread: usize) {
        let watch = &mut self.watches[thread];
        if watch.has_journal {
            watch.last_disk_wait = self.now;
        }
    }

    /// Records whether a debugger has stopped a thread, according to the kernel. The thread's
    /// deadline waits until the debugger has detached, and starts again then.
    pub fn record_debugger(&mut self, thread: usize, is_stopped: bool) {
        let now = self.now;
        let watch = &mut self.watches[thread];
        let was_stopped = watch.held_since.is_some();
        if !is_stopped && !was_stopped {
            return;
        }
        watch.held_since = is_stopped.then(|| watch.held_since.unwrap_or(watch.deadline.since(0)));
        watch.deadline.restart(now);
        (watch.samples, self.last_held) = (None, now);
    }

    /// Returns the ticks for which a debugger has stopped a silent thread; `None` if none has.
    pub fn held_ticks(&self, thread: usize) -> Option<u64> {
        self.watches[thread].held_since.map(|since| self.now.saturating_sub(since))
    }

    /// Returns `true` if a thread writes a journal, so that it may wait for a disk.
    pub fn has_journal(&self, thread: usize) -> bool {
        self.watches[thread].has_journal
    }

    /// Returns for how many ticks a thread was silent, if it exceeded its deadline while it waited
    /// for its disk; otherwise `None`.
    pub fn paused_ticks(&self, thread: usize) -> Option<u64> {
        let watch = &self.watches[thread];
        let silent = self.silent_ticks(watch);
        (watch.last_disk_wait > 0 && silent > self.ticks(self.limit)).then_some(silent)
    }

    /// Returns the CPU shortage that the kernel counted while a thread was silent; `None` if it was
    /// not sampled.
    pub fn shortage(&self, thread: usize) -> Option<CpuShortage> {
        let (first, last) = self.watches[thread].samples?;
        last.shortage_since(&first)
    }

    fn is_starved(&self, watch: &ThreadWatch) -> bool {
        let accounts = watch.samples.map(|(first, last)| (first.account, last.account));
        accounts
            .is_some_and(|(first, last): (CpuAccount, CpuAccount)| last.is_starved_since(&first, self.limit))
    }

    /// Returns a thread's deadline if it waits for its disk, which pauses up to a bound.
    fn disk_deadline(&self, watch: &ThreadWatch) -> Deadline {
        let limit = self.limit.as_nanos().max(1);
        let limits = (DISK_TIMEOUT.as_nanos() / limit) as u64;
        watch.deadline.stretched_to(limits.max(STARVED_LIMITS.into()))
    }

    /// Returns `true` if only the wait for a core or for a disk exempts a silent thread.
    fn is_exempt(&self, watch: &ThreadWatch) -> bool {
        let limit = self.ticks(self.limit);
        let silent = self.silent_ticks(watch);
        let is_starved = self.is_starved(watch) && silent <= limit.saturating_mul(STARVED_LIMITS.into());
        let waits_for_disk =
            watch.last_disk_wait > 0 && !self.disk_deadline(watch).is_over(self.now, watch.last_disk_wait);
        watch.state != ThreadState::Done && silent >= limit && (is_starved || waits_for_disk)
    }

    /// Returns `true` if more than one and a half liveness deadlines have passed since the tick
    /// `since`. Any thread that is not silent now has started a duty cycle since. Never while a
    /// thread is exempt.
    pub fn is_overdue(&self, since: u64) -> bool {
        self.is_open
            && self.now.saturating_sub(since.max(self.awake_since()))
                > self.ticks(self.limit + self.limit / 2)
            && !self.watches.iter().any(|watch| self.is_exempt(watch))
    }

    /// Returns the maximum interval at which [`Liveness::mark_awake`] must be called.
    pub fn max_interval(&self) -> Duration {
        self.limit / 4
    }

    /// Returns the fault of a thread. `shares`: all threads of its process.
    pub(crate) fn fault(&self, thread: usize, shares: &[u32]) -> Option<LivenessFault> {
        let watch = &self.watches[thread];
        if let Some(forgery) = watch.forged {
            return Some(LivenessFault::Forged(forgery));
        }
        if !self.is_open {
            return None;
        }
        let is_starved = self.is_starved(watch);
        let limits = if is_starved { STARVED_LIMITS } else { 1 };
        if watch.state == ThreadState::Done {
            let limit = self.limit.max(EXIT_TIMEOUT) * limits;
            let is_late = |watch: &ThreadWatch| {
                watch.state == ThreadState::Done && self.silent_ticks(watch) > self.ticks(limit)
            };
            let is_late = shares.iter().all(|thread| is_late(&self.watches[*thread as usize]));
            return is_late.then_some(LivenessFault::NotExiting(limit));
        }
        let limit = if watch.is_starting { START_TIMEOUT.max(self.limit) } else { self.limit };
        let is_over = watch.deadline.is_over(self.now, if is_starved { self.now } else { 0 })
            && self.disk_deadline(watch).is_over(self.now, watch.last_disk_wait);
        is_over.then_some(LivenessFault::Silent(limit * limits))
    }

    /// Returns how long a thread has been silent while the launcher was awake, in ticks.
    const fn silent_ticks(&self, watch: &ThreadWatch) -> u64 {
        self.now.saturating_sub(watch.deadline.since(0))
    }

    fn ticks(&self, time: Duration) -> u64 {
        (time.as_nanos() as f64 / self.ns_per_tick) as u64
    }
}

#[cfg(test)]
mod tests;
