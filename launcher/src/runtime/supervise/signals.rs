//! Injects the faults that are signals ([`crate::faults`]).

use super::{BUSY_POLL_INTERVAL, Supervisor};
use crate::faults::{DueFault, Presence};
use crate::runtime::process::Process;
use protocol::plan::{FaultKind, Role};
use protocol::role::RoleKind;
use protocol::status::ThreadState;
use std::time::Duration;
use system::clock::Clock;
use system::fault;

impl Supervisor<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        self.ns(self.plan.clock.now())
    }

    pub(super) fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.record.clock.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// Returns the time until the next fault is to be injected. If one is due and waits for its
    /// victim to start, until the next poll.
    pub(super) fn until_fault(&self) -> Duration {
        match self.faults.next_due_ns() {
            Some(due) if self.record.clock.start_ticks > 0 => {
                let left = due.checked_sub(self.now_ns()).filter(|left| *left > 0);
                left.map_or(BUSY_POLL_INTERVAL, Duration::from_nanos)
            }
            _ => Duration::MAX,
        }
    }

    /// Returns the time until the next waiting process is restarted.
    pub(super) fn until_restart(&self) -> Duration {
        let due = self.containment.next_restart_ns();
        due.map_or(Duration::MAX, |due| Duration::from_nanos(due.saturating_sub(self.now_ns())))
    }

    pub(super) fn signal_faults(&mut self) {
        if self.record.clock.start_ticks == 0 || self.faults.next_due_ns().is_none() {
            return;
        }
        let now = self.now_ns();
        let strategies = 0..self.plan.trading().strategies;
        let presences: Vec<Presence> = strategies.map(|strategy| self.presence(strategy)).collect();
        for DueFault { fault: which, kind, target, .. } in self.faults.take_due(now, &presences) {
            let stops = kind == FaultKind::Stop;
            let Some(role) = target else {
                if !stops {
                    fault::kill();
                }
                self.record_strike(which);
                fault::stop();
                continue;
            };
            // A role that is done gets no fault any more.
            let is_done = |thread| self.state(thread) == ThreadState::Done;
            if role.kind() != RoleKind::Strategy && self.plan.thread_of(role).is_some_and(is_done) {
                continue;
            }
            let Some(child) = self.process_of(role).filter(|child| child.status.is_none()) else { continue };
            let done_at = self.plan.clock.now();
            if stops {
                child.stop()
            } else {
                child.kill()
            }
            self.record_strike(which);
            self.containment.record_fault(role, done_at);
        }
    }

    fn record_strike(&mut self, fault: usize) {
        self.strikes[fault] = self.strikes[fault].map(|times| times + 1);
    }

    /// Returns whether a strategy can receive a fault.
    fn presence(&self, strategy: u16) -> Presence {
        let role = Role::Strategy(strategy);
        let is_living = self.containment.is_running(strategy);
        let has_process = self.process_of(role).is_some_and(|child| child.status.is_none());
        presence(self.plan.thread_of(role).map(|thread| self.state(thread)), is_living, has_process)
    }

    fn process_of(&self, role: Role) -> Option<&Process> {
        self.processes.all.get(self.plan.process_of(role)?)
    }
}

/// Decides from the thread's own state, which is trusted only if the process exists and no incident
/// is open: a strategy that keeps reporting `Ready` would be waited for, but the liveness check
/// finds it.
fn presence(state: Option<ThreadState>, is_living: bool, has_process: bool) -> Presence {
    match state {
        Some(ThreadState::Running) if is_living => Presence::Running,
        Some(ThreadState::Ready) if is_living && has_process => Presence::Starting,
        _ => Presence::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strategies_that_can_run_are_waited_for() {
        use ThreadState::{Done, Failed, Ready, Running, Starting};
        let mut found = Vec::new();
        // `None`: the plan has no thread for it.
        for state in [None, Some(Starting), Some(Ready), Some(Running), Some(Done), Some(Failed)] {
            for (is_living, has_process) in [(true, true), (true, false), (false, true), (false, false)] {
                found.push((state, is_living, has_process, presence(state, is_living, has_process)));
            }
        }
        found.retain(|(.., presence)| *presence != Presence::Gone);
        let begins = (Some(Ready), true, true, Presence::Starting);
        let runs = [true, false].map(|has_process| (Some(Running), true, has_process, Presence::Running));
        assert_eq!(found, [begins, runs[0], runs[1]]);
    }
}
