//! Injects the faults that are signals ([`crate::faults::schedule`]).

use super::{BUSY_LOOK, Incidents, Supervisor};
use crate::faults::schedule::{DueFault, Presence, Victim};
use crate::runtime::process::Process;
use protocol::plan::{FaultKind, Role};
use protocol::status::ThreadState;
use std::time::Duration;
use system::clock::Clock;
use system::fault;

impl Supervisor<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        self.ns(self.plan.clock.now())
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// The time until the next fault; if it is due and still there, its victim has yet to begin,
    /// until the next look.
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

    fn process_of(&self, role: Role) -> Option<&Process> {
        self.owner_of(self.plan.thread_of(role)?)
    }
}

/// The same by what its thread says of itself, which is believed as far as it has a process and no
/// incident is open: one that says `Ready` again and again would be waited for, but the liveness
/// checks find it.
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
        use ThreadState::{Done, Failed, Ready, Running, Starting};
        let mut there = Vec::new();
        // `None`: the plan has no thread for it.
        for state in [None, Some(Starting), Some(Ready), Some(Running), Some(Done), Some(Failed)] {
            for (is_living, has_process) in [(true, true), (true, false), (false, true), (false, false)] {
                let presence = presence(state, is_living, has_process);
                if presence != Presence::Gone {
                    there.push((state.unwrap(), is_living, has_process, presence));
                }
            }
        }
        let begins = (Ready, true, true, Presence::Begins);
        let runs = [true, false].map(|has_process| (Running, true, has_process, Presence::There));
        assert_eq!(there, [begins, runs[0], runs[1]]);
    }
}
