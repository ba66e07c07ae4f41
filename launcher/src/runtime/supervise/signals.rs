//! What the launcher does to the run's processes on purpose: the faults that are signals ([`crate::faults::schedule`]).

use super::{BUSY_LOOK, Supervisor};
use crate::faults::schedule::{DueFault, Presence, Victim};
use crate::runtime::process::Process;
use protocol::plan::{FaultKind, Role};
use protocol::status::ThreadState;
use shm::clock::Clock;
use shm::os::fault;
use std::time::Duration;

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
            };
            // One that has said everything has no fault any more.
            let is_done = |thread| self.state(thread) == ThreadState::Done;
            if matches!(target, Victim::Exchange(_) | Victim::Engine)
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
            if let (Some(incidents), Victim::Strategy(index)) = (&mut self.incidents, target) {
                incidents.fault(index, done_at);
            }
            if let (Some(comebacks), Role::Exchange(_) | Role::Orchestrator) = (&mut self.comebacks, role) {
                comebacks.fault(role, done_at);
            }
        }
    }

    /// One of the plan's faults has struck.
    fn struck(&mut self, fault: usize) {
        self.strikes[fault] = self.strikes[fault].map(|times| times + 1);
    }

    /// Whether a strategy is there to have a fault.
    fn presence(&self, strategy: u16) -> Presence {
        let role = Role::Strategy(strategy);
        let is_living = self.incidents.as_ref().is_none_or(|incidents| incidents.is_living(strategy));
        let has_process = self.process_of(role).is_some_and(|child| child.status.is_none());
        presence(self.plan.thread_of(role).map(|thread| self.state(thread)), is_living, has_process)
    }

    /// The process that runs a role.
    fn process_of(&self, role: Role) -> Option<&Process> {
        let thread = self.plan.thread_of(role)? as u32;
        let place = self.plan.processes.iter().position(|process| process.threads.contains(&thread))?;
        self.processes.all.get(place)
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

    #[test]
    fn nobody_is_waited_for_who_will_not_come() {
        let begins = |is_living, has_process| presence(Some(ThreadState::Ready), is_living, has_process);
        assert_eq!(begins(true, true), Presence::Begins);
        for (is_living, has_process) in [(false, true), (true, false), (false, false)] {
            assert_eq!(begins(is_living, has_process), Presence::Gone, "{is_living} {has_process}");
        }
        for state in [ThreadState::Starting, ThreadState::Done, ThreadState::Failed] {
            assert_eq!(presence(Some(state), true, true), Presence::Gone, "{state:?}");
        }
        assert_eq!(presence(Some(ThreadState::Running), false, true), Presence::Gone, "an incident is open");
        assert_eq!(presence(Some(ThreadState::Running), true, true), Presence::There);
        assert_eq!(presence(None, true, true), Presence::Gone, "the plan has no thread for it");
    }
}
