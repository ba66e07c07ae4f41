//! Checks that the run makes progress: the engine's counters against the orders due by the
//! schedules, and the kernel's accounts of silent threads ([`crate::runtime::stuck`] explains the
//! decisions).

use super::{Supervisor, at_venues, progress_count};
use crate::runtime::process::Process;
use crate::runtime::stuck::{
    CpuSample, Deadline, ProgressCounters, StallWatch, has_journal_thread_in_kernel,
};
use protocol::plan::{Journaling, Pacing, Plan, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::time::Duration;

/// The bounded wait for the last reports of an interrupted run.
pub(super) struct DrainWait {
    pub deadline: Deadline,
    /// Progress count at the last poll, and when it last changed.
    pub last_progress: (u64, u64),
}

/// Returns `true` if a process of the plan writes a journal.
pub(super) fn has_journal(plan: &Plan, process: usize) -> bool {
    let writes = |role: Role| matches!(role, Role::Orchestrator | Role::Exchange(_));
    plan.trading().journal != Journaling::None && plan.roles_of(&plan.processes[process]).any(writes)
}

impl Supervisor<'_> {
    pub(super) fn deadline(&self, limit: Duration) -> Deadline {
        Deadline::within(limit, self.now_ns())
    }

    /// Returns `true` if a bounded wait is over. Nothing extends one in an interrupted run.
    pub(super) fn is_wait_over(&self, deadline: &mut Deadline) -> bool {
        let now = self.now_ns();
        deadline.mark_awake(now);
        let starved = if self.interrupts > 0 { 0 } else { self.ns(self.liveness.last_starved()) };
        deadline.is_over(now, starved)
    }

    /// Returns `true` if the wait for the last reports of an interrupted run is over. On a machine
    /// with too few cores they come late, so it is extended while more arrive, up to a bound: a
    /// hostile strategy could produce them without end.
    pub(super) fn is_drain_over(&self, drain: &mut DrainWait) -> bool {
        let now = self.now_ns();
        if let Some(ProgressCounters { count, .. }) =
            self.progress_counters().filter(|moved| moved.count != drain.last_progress.0)
        {
            drain.last_progress = (count, now);
        }
        drain.deadline.mark_awake(now);
        drain.deadline.is_over(now, self.ns(self.liveness.last_starved()).max(drain.last_progress.1))
    }

    /// Reads the CPU time of every thread that has been silent for half of its deadline.
    pub(super) fn query_cpu_accounts(&mut self) {
        for thread in 0..self.plan.threads.len() {
            if self.liveness.needs_cpu_account(thread) {
                // Only of a process that still runs: its id may be reused otherwise.
                let process = self.owner_of(thread).filter(|process| process.status.is_none());
                let pid = process.map(Process::pid);
                let sample = pid.and_then(|pid| CpuSample::of_thread(pid, self.liveness.tid(thread)));
                self.liveness.record_cpu_sample(thread, sample);
                if self.liveness.has_journal(thread) && pid.is_some_and(has_journal_thread_in_kernel) {
                    self.liveness.record_disk_wait(thread);
                }
            }
        }
    }

    /// Returns the message for a run that has stalled; `None` if it makes progress.
    pub(super) fn check_stall(&self, stall: &mut StallWatch) -> Option<String> {
        let names =
            || self.awaited().map(|strategy| Role::Strategy(strategy).to_string()).collect::<Vec<_>>();
        self.is_stalled(stall).then(|| {
            format!(
                "stalled: no progress for {:?}; {} orders without a report, waiting: {}",
                stall.limit(),
                self.containment.sent_and_open().1,
                names().join(", ")
            )
        })
    }

    /// Returns `true` if the run has made no progress for the stall detector's limit, although
    /// orders are open or due.
    pub(super) fn is_stalled(&self, stall: &mut StallWatch) -> bool {
        let Some(moved) = self.progress_counters() else { return false };
        let [awake_since, starved] =
            [self.liveness.awake_since(), self.liveness.last_starved()].map(|at| self.ns(at));
        let due_after =
            |since| self.awaited().map(|strategy| self.due_after(strategy, since)).min().flatten();
        stall.check_stall(self.now_ns(), awake_since, starved, moved, due_after)
            && !self.containment.has_pending_process()
    }

    pub(super) fn awaited(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.plan.trading().strategies).filter(|strategy| self.containment.awaits(*strategy))
    }

    fn progress_counters(&self) -> Option<ProgressCounters> {
        let engine = self.engine()?;
        let count = progress_count(&engine).wrapping_add(self.containment.steps());
        Some(ProgressCounters { count, open: at_venues(&engine) })
    }

    /// Returns when an order of a strategy is due by its schedule, in nanoseconds since the start.
    pub(super) fn due_ns(&self, strategy: u16, order: usize) -> u64 {
        let at = HEADER_WORDS + order * SCHEDULE_ENTRY_WORDS;
        self.segments.schedules[usize::from(strategy)].load(at, Ordering::Relaxed)
    }

    /// Returns when a strategy's first order after `since_ns` is due, in nanoseconds since the
    /// start.
    pub(super) fn due_after(&self, strategy: u16, since_ns: u64) -> Option<u64> {
        let trading = self.plan.trading();
        if trading.pacing_of(strategy) == Pacing::Closed {
            return None;
        }
        let orders = trading.orders[usize::from(strategy)] as usize;
        // Entries come in the order of their times.
        let (mut from, mut to) = (0, orders);
        while from < to {
            let middle = from.midpoint(to);
            if self.due_ns(strategy, middle) <= since_ns { from = middle + 1 } else { to = middle }
        }
        (from < orders).then(|| self.due_ns(strategy, from))
    }
}
