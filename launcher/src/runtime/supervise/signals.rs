//! What the launcher does to the run's processes on purpose: the faults that are signals ([`crate::faults::schedule`]).

use super::{BUSY_LOOK, Incidents, Supervisor};
use crate::faults::schedule::{DueFault, Presence, Victim};
use crate::runtime::process::Process;
use protocol::plan::{FaultKind, Role};
use protocol::status::ThreadState;
use std::time::Duration;
use system::clock::Clock;
use system::fault;

impl Supervisor<'_> {
    /// Nanoseconds since the start.
    pub(super) fn now_ns(&self) -> u64 {
        self.ns(self.plan.clock.now())
    }

    /// A tick as nanoseconds since the start.
    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// The time until the next fault; if it is due and still there, its victim has yet to begin, until the next look.
    pub(super) fn until_fault(&self) -> Duration {
        match self.faults.next_due_ns() {
            Some(due) if self.start_ticks > 0 => {
                let left = due.checked_sub(self.now_ns()).filter(|left| *left > 0);
                left.map_or(BUSY_LOOK, Duration::from_nanos)
            }
            _ => Duration::MAX,
        }
    }

    /// The time until a strategy that is paused is started again.
    pub(super) fn until_restart(&self) -> Duration {
        let due = self.contained.incidents.as_ref().and_then(Incidents::next_restart_ns);
        due.map_or(Duration::MAX, |due| Duration::from_nanos(due.saturating_sub(self.now_ns())))
    }

    /// Does the faults that are due now.
    pub(super) fn signal_faults(&mut self) {
        if self.start_ticks == 0 || self.faults.next_due_ns().is_none() {
            return;
        }
        let now = self.now_ns();
        let strategies = 0..self.plan.trading().strategies;
        let presences: Vec<Presence> = strategies.map(|strategy| self.presence(strategy)).collect();
        let mut due = Vec::new();
        while let Some(fault) = self.faults.due(now, |strategy| presences[usize::from(strategy)]) {
            due.push(fault);
        }
        for DueFault { fault: which, kind, target, .. } in due {
            let stops = kind == FaultKind::Stop;
            let role = match target {
                Victim::Launcher if stops => {
                    self.struck(which);
                    fault::stop();
                    continue;
                }
                Victim::Launcher => fault::kill(),
                Victim::Engine => Role::Orchestrator,
                Victim::Strategy(index) => Role::Strategy(index),
                Victim::Exchange(venue) => Role::Exchange(venue),
                Victim::Gateway(index) => Role::Gateway(index),
            };
            // One that has said everything has no fault any more.
            let is_done = |thread| self.state(thread) == ThreadState::Done;
            if matches!(target, Victim::Exchange(_) | Victim::Gateway(_) | Victim::Engine)
                && self.plan.thread_of(role).is_some_and(is_done)
            {
                continue;
            }
            let Some(child) = self.process_of(role).filter(|child| child.status.is_none()) else { continue };
            let done_at = self.plan.clock.now();
            if stops {
                child.stop()
            } else {
                child.kill()
            }
            self.struck(which);
            self.contained.fault(role, done_at);
        }
    }

    /// One of the plan's faults has struck.
    fn struck(&mut self, fault: usize) {
        self.strikes[fault] = self.strikes[fault].map(|times| times + 1);
    }

    /// Whether a strategy is there to have a fault.
    fn presence(&self, strategy: u16) -> Presence {
        let role = Role::Strategy(strategy);
        let is_living =
            self.contained.incidents.as_ref().is_none_or(|incidents| incidents.is_living(strategy));
        let has_process = self.process_of(role).is_some_and(|child| child.status.is_none());
        presence(self.plan.thread_of(role).map(|thread| self.state(thread)), is_living, has_process)
    }

    /// The process that runs a role.
    fn process_of(&self, role: Role) -> Option<&Process> {
        self.owner_of(self.plan.thread_of(role)?)
    }
}

/// The same by what its thread says of itself, which is believed as far as it has a process and no incident is open: one that says
/// `Ready` again and again would be waited for, but the liveness checks find it.
fn presence(state: Option<ThreadState>, is_living: bool, has_process: bool) -> Presence {
    match state {
        Some(ThreadState::Running) if is_living => Presence::There,
        Some(ThreadState::Ready) if is_living && has_process => Presence::Begins,
        _ => Presence::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is there of a strategy, by its state, whether no incident of it is open, and whether it has a process.
    type Judge = fn(Option<ThreadState>, bool, bool) -> Presence;

    /// What that judge says otherwise than it should.
    fn wrong(judge: Judge) -> Vec<(Option<ThreadState>, bool, bool)> {
        use ThreadState::{Done, Failed, Ready, Running, Starting};
        let mut wrong = Vec::new();
        // `None`: the plan has no thread for it.
        for state in [None, Some(Starting), Some(Ready), Some(Running), Some(Done), Some(Failed)] {
            for (is_living, has_process) in [(true, true), (true, false), (false, true), (false, false)] {
                let should = match (state, is_living, has_process) {
                    (Some(Running), true, _) => Presence::There,
                    (Some(Ready), true, true) => Presence::Begins,
                    _ => Presence::Gone,
                };
                if judge(state, is_living, has_process) != should {
                    wrong.push((state, is_living, has_process));
                }
            }
        }
        wrong
    }

    #[test]
    fn nobody_is_waited_for_who_will_not_come() {
        assert_eq!(wrong(presence), []);
        // Those that believe what a thread says of itself are found.
        let believes_ready: Judge = |state, is_living, _| presence(state, is_living, true);
        let believes_all: Judge = |state, _, has_process| presence(state, true, has_process);
        let waits_for_starters: Judge = |state, is_living, has_process| match state {
            Some(ThreadState::Starting) => Presence::Begins,
            _ => presence(state, is_living, has_process),
        };
        for broken in [believes_ready, believes_all, waits_for_starters] {
            assert_ne!(wrong(broken), []);
        }
    }
}
