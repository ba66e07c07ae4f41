//! Whether anything moves: what the engine counts, held against what the schedules say is to come,
//! and what the kernel says of silent threads ([`crate::runtime::stuck`] says how it is judged).

use super::{Supervisor, at_venues, moves};
use crate::runtime::stuck::{CpuAccount, Deadline, Moved, StallWatch};
use protocol::plan::{Pacing, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::time::Duration;

/// The wait for the last reports of a run that was interrupted.
pub(super) struct Drain {
    deadline: Deadline,
    /// How much had moved at the last look, and when that last changed.
    moved: (u64, u64),
}

impl Supervisor<'_> {
    pub(super) fn deadline(&self, limit: Duration) -> Deadline {
        Deadline::within(limit, self.now_ns())
    }

    /// Returns `true` if that wait is over.
    pub(super) fn has_waited(&self, deadline: &mut Deadline) -> bool {
        let now = self.now_ns();
        deadline.look(now);
        deadline.is_over(now, self.ns(self.liveness.starved()))
    }

    /// Begins the wait for the last reports.
    pub(super) fn drain(&self, limit: Duration) -> Drain {
        Drain { deadline: self.deadline(limit), moved: (0, self.now_ns()) }
    }

    /// Returns `true` if the last reports had their time: on a machine with too few cores they come
    /// late, and are waited for as long as more of them come. Not without end: a hostile strategy
    /// could make them.
    pub(super) fn has_drained(&self, drain: &mut Drain) -> bool {
        let now = self.now_ns();
        if let Some(Moved { count, .. }) = self.moved().filter(|moved| moved.count != drain.moved.0) {
            drain.moved = (count, now);
        }
        drain.deadline.look(now);
        drain.deadline.is_over(now, self.ns(self.liveness.starved()).max(drain.moved.1))
    }

    /// Takes the kernel's account of every thread that has been silent for half of its deadline.
    pub(super) fn ask_the_kernel(&mut self) {
        for thread in 0..self.threads.len() {
            if self.liveness.asks_the_kernel(thread) {
                // Only of a process that still lives: its number may be another's else.
                let process = self.owner_of(thread).filter(|process| process.status.is_none());
                let account = process.and_then(|it| CpuAccount::of(it.pid(), self.liveness.tid(thread)));
                self.liveness.account(thread, account);
            }
        }
    }

    /// Returns what is said of a run in which nothing moves although something should.
    pub(super) fn stalls(&self, stall: &mut StallWatch) -> Option<String> {
        let names =
            || self.awaited().map(|strategy| Role::Strategy(strategy).to_string()).collect::<Vec<_>>();
        self.is_silent(stall).then(|| {
            format!(
                "stalled: no progress for {:?}; {} orders without a report, waiting: {}",
                stall.limit(),
                self.sent_and_open().1,
                names().join(", ")
            )
        })
    }

    /// Returns `true` if nothing has moved for as long as the watch waits, although something
    /// should.
    pub(super) fn is_silent(&self, stall: &mut StallWatch) -> bool {
        let Some(moved) = self.moved() else { return false };
        let [awake_since, starved] =
            [self.liveness.awake_since(), self.liveness.starved()].map(|at| self.ns(at));
        let due_after =
            |since| self.awaited().map(|strategy| self.due_after(strategy, since)).min().flatten();
        stall.look(self.now_ns(), awake_since, starved, moved, due_after)
            && !self.contained.waits_for_a_process()
    }

    pub(super) fn awaited(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.plan.trading().strategies).filter(|strategy| self.awaits(*strategy))
    }

    fn moved(&self) -> Option<Moved> {
        let engine = self.engine()?;
        let count = moves(&engine).wrapping_add(self.contained.steps());
        Some(Moved { count, open: at_venues(&engine) })
    }

    /// When a strategy's first order after that time is due; `None` if none is. In nanoseconds
    /// since the start.
    pub(super) fn due_after(&self, strategy: u16, since_ns: u64) -> Option<u64> {
        let trading = self.plan.trading();
        if trading.pacing_of(strategy) == Pacing::Closed {
            return None;
        }
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
