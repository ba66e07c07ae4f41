//! Whether anything moves: what the engine counts, held against what the schedules say is to come.

use super::patience::Patience;
use super::stall::{Moved, StallWatch};
use super::{Comebacks, Incidents, Outages, Supervisor, at_venues, moves};
use protocol::plan::{Pacing, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use system::clock::Clock;

impl Supervisor<'_> {
    /// Whether nothing moves although something should, and what is said then.
    pub(super) fn stalls(&self, stall: &mut StallWatch) -> Option<String> {
        let names = || {
            let awaited = (0..self.plan.trading().strategies).filter(|strategy| self.awaits(*strategy));
            awaited.map(|strategy| Role::Strategy(strategy).to_string()).collect::<Vec<_>>()
        };
        self.is_silent(stall).then(|| {
            format!(
                "stalled: no progress for {:?}; {} orders without a report, waiting: {}",
                stall.limit(),
                self.sent_and_open().1,
                names().join(", ")
            )
        })
    }

    /// Whether nothing has moved for as long as the watch waits, although something should.
    pub(super) fn is_silent(&self, stall: &mut StallWatch) -> bool {
        let Some(moved) = self.moved() else { return false };
        let [awake_since, starved] =
            [self.liveness.awake_since(), self.liveness.starved()].map(|at| self.ns(at));
        let awaited = || (0..self.plan.trading().strategies).filter(|strategy| self.awaits(*strategy));
        let due_after = |since| awaited().map(|strategy| self.due_after(strategy, since)).min().flatten();
        let waits_for_a_process = self.incidents.as_ref().is_some_and(Incidents::waits_for_a_process)
            || self.comebacks.as_ref().is_some_and(Comebacks::waits_for_a_process)
            || self.outages.as_ref().is_some_and(Outages::waits_for_a_process);
        stall.look(self.ns(self.plan.clock.now()), awake_since, starved, moved, due_after)
            && !waits_for_a_process
    }

    /// Whether the last reports had their time: on a machine with too little processor they come late, and are waited for as long as more of
    /// them come.
    pub(super) fn has_drained(&self, drain: &mut Patience) -> bool {
        if let Some(moved) = self.moved() {
            drain.see(moved.count, self.now_ns());
        }
        self.has_waited(drain)
    }

    /// What has moved so far.
    fn moved(&self) -> Option<Moved> {
        let engine = self.engine()?;
        let steps = self.incidents.as_ref().map_or(0, Incidents::steps);
        let returns = self.comebacks.as_ref().map_or(0, Comebacks::steps);
        let outages = self.outages.as_ref().map_or(0, Outages::steps);
        let count = moves(&engine).wrapping_add(steps).wrapping_add(returns).wrapping_add(outages);
        Some(Moved { count, open: at_venues(&engine) })
    }

    /// When a strategy's first order after that time is due; `None` if none is. In nanoseconds since the start.
    pub(super) fn due_after(&self, strategy: u16, since_ns: u64) -> Option<u64> {
        if self.plan.trading().pacing_of(strategy) == Pacing::Closed {
            return None;
        }
        let trading = self.plan.trading();
        let schedule = &self.schedules[usize::from(strategy)];
        let orders = trading.orders_a_lap(strategy) as usize;
        let (laps, lap_ns) = (u64::from(trading.laps), trading.lap_ns);
        let lap = since_ns.checked_div(lap_ns).unwrap_or(0).min(laps - 1);
        // The time when it is due is an entry's first word, and entries come in its order.
        let due = |lap: u64, entry: usize| {
            let fire_ns = schedule.load(HEADER_WORDS + entry * SCHEDULE_ENTRY_WORDS, Ordering::Relaxed);
            fire_ns.saturating_add(lap.saturating_mul(lap_ns))
        };
        let (mut from, mut to) = (0, orders);
        while from < to {
            let middle = from.midpoint(to);
            if due(lap, middle) <= since_ns { from = middle + 1 } else { to = middle }
        }
        let next_lap = || (lap + 1 < laps && orders > 0).then(|| due(lap + 1, 0));
        (from < orders).then(|| due(lap, from)).or_else(next_lap)
    }
}
