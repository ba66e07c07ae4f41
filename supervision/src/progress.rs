//! Checks that the run makes progress: the engine's counters against the orders due by the
//! schedules ([`crate::stuck`] explains the decisions).

use super::Supervisor;
use super::observations::Observations;
use crate::stuck::{Deadline, ProgressCounters, StallWatch};
use protocol::due_times::DueTimes;
use protocol::index::StrategyIndex;
use protocol::plan::{Journaling, Pacing, Plan, Role};
use std::time::Duration;

/// Returns when the last order is due after the start; `None` if unknown, or with faults.
pub(super) fn last_due(due: DueTimes<'_>, plan: &Plan) -> Option<Duration> {
    let trading = plan.trading();
    let is_scheduled =
        StrategyIndex::first(trading.strategies).all(|index| trading.pacing_of(index) == Pacing::Scheduled);
    if !is_scheduled || !plan.faults.is_empty() {
        return None;
    }
    let last = |strategy: StrategyIndex| {
        let order = (trading.orders[strategy.as_usize()] as usize).checked_sub(1)?;
        Some(due.due_ns(strategy, order))
    };
    StrategyIndex::first(trading.strategies).filter_map(last).max().map(Duration::from_nanos)
}

/// Returns when a strategy's first order after `since_ns` is due, in nanoseconds since the start.
fn due_after(due: DueTimes<'_>, plan: &Plan, strategy: StrategyIndex, since_ns: u64) -> Option<u64> {
    let trading = plan.trading();
    if trading.pacing_of(strategy) == Pacing::Closed {
        return None;
    }
    due.first_after(strategy, trading.orders[strategy.as_usize()] as usize, since_ns)
}

/// The bounded wait for the last reports of an interrupted run.
pub(super) struct DrainWait {
    pub deadline: Deadline,
    /// Progress count at the last step, and the time at which it last changed.
    pub last_progress: (u64, u64),
}

/// Returns `true` if a process (index in the plan) writes a journal.
pub fn has_journal(plan: &Plan, process: usize) -> bool {
    let writes = |role: Role| matches!(role, Role::Orchestrator | Role::Exchange(_));
    plan.trading().journal != Journaling::None && plan.roles_of(&plan.processes[process]).any(writes)
}

impl Supervisor<'_> {
    /// Returns `true` if a bounded wait is over. Nothing extends one in an interrupted run.
    pub(super) fn is_wait_over(&self, deadline: &mut Deadline) -> bool {
        let now = self.now_ns();
        deadline.mark_awake(now);
        let starved = if self.requests > 0 { 0 } else { self.ns(self.liveness.last_starved()) };
        deadline.is_over(now, starved)
    }

    /// Returns `true` if the wait for the last reports of an interrupted run is over. On a machine
    /// with too few cores they come late, so it is extended while more arrive, up to a bound: a
    /// hostile strategy could produce them without end.
    pub(super) fn is_drain_over(&self, observed: &Observations, drain: &mut DrainWait) -> bool {
        let now = self.now_ns();
        let moved = self.progress_counters(observed).filter(|moved| moved.count > drain.last_progress.0);
        if let Some(ProgressCounters { count, .. }) = moved {
            drain.last_progress = (count, now);
        }
        drain.deadline.mark_awake(now);
        drain.deadline.is_over(now, self.last_extension().max(drain.last_progress.1))
    }

    /// Returns the message for a run that has stalled; `None` if it makes progress.
    pub(super) fn check_stall(&self, observed: &Observations, stall: &mut StallWatch) -> Option<String> {
        let names = || {
            let names = self.awaited(observed).map(|strategy| Role::Strategy(strategy).to_string());
            names.collect::<Vec<_>>().join(", ")
        };
        self.is_stalled(observed, stall).then(|| {
            format!(
                "stalled: no progress for {:?}; {} orders without a report, waiting: {}",
                stall.limit(),
                self.containment.sent_and_open(observed).1,
                names()
            )
        })
    }

    /// Returns `true` if the run has made no progress for the stall detector's limit, although
    /// orders are open or due.
    fn is_stalled(&self, observed: &Observations, stall: &mut StallWatch) -> bool {
        let Some(moved) = self.progress_counters(observed) else { return false };
        let awake_since = self.ns(self.liveness.awake_since());
        stall.allow_pauses(self.containment.futile_pauses());
        let due_after = |since| {
            let due = self.awaited(observed).map(|strategy| due_after(self.due, self.plan, strategy, since));
            due.min().flatten()
        };
        stall.check_stall(self.now_ns(), awake_since, self.last_extension(), moved, due_after)
            && !self.containment.has_pending_process()
    }

    /// Returns `true` if no more orders come and all have arrived at their venues, or none is due
    /// and nothing moves. `sent`: orders sent so far.
    pub(super) fn is_trading_over(&self, observed: &Observations, quiet: &mut StallWatch, sent: u64) -> bool {
        let now = self.now_ns();
        let is_any_due =
            || self.awaited(observed).any(|strategy| due_after(self.due, self.plan, strategy, now).is_some());
        let of_dead = |gateway| self.containment.orders_of_dead(gateway);
        (self.has_sent_all(observed) && observed.have_all_arrived(self.plan, sent, of_dead))
            || (!is_any_due() && self.is_stalled(observed, quiet))
    }

    /// Returns `true` if each strategy has sent its planned orders or sends no more: it has
    /// finished, was retired or stays down, or is a spare that was not added.
    pub(super) fn has_sent_all(&self, observed: &Observations) -> bool {
        let orders = &self.plan.trading().orders;
        let sent = |strategy| self.containment.sent_by(strategy, observed);
        self.awaited(observed).all(|strategy| sent(strategy) >= orders[strategy.as_usize()])
    }

    pub(super) fn awaited<'s>(
        &'s self,
        observed: &'s Observations,
    ) -> impl Iterator<Item = StrategyIndex> + 's {
        StrategyIndex::first(self.plan.trading().strategies)
            .filter(|strategy| self.containment.awaits(*strategy, observed))
    }

    pub(super) fn progress_counters(&self, observed: &Observations) -> Option<ProgressCounters> {
        let engine = observed.engine.as_ref()?;
        Some(ProgressCounters { count: engine.progress_count(), open: engine.at_venues() })
    }

    /// Returns when a wait for progress was last extended: a thread was starved, or the handling of
    /// a death advanced. Neither counts as progress: repeated deaths would keep a stalled run alive
    /// without end.
    fn last_extension(&self) -> u64 {
        self.ns(self.liveness.last_starved().max(self.containment.last_step()))
    }
}
