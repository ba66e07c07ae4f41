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
        for DueFault { kind, target, .. } in due {
            let stops = kind == FaultKind::Stop;
            let role = match target {
                Victim::Launcher if stops => {
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
            if let (Some(incidents), Victim::Strategy(index)) = (&mut self.incidents, target) {
                incidents.fault(index, done_at);
            }
            if let (Some(comebacks), Role::Exchange(_) | Role::Orchestrator) = (&mut self.comebacks, role) {
                comebacks.fault(role, done_at);
            }
        }
    }

    /// Whether a strategy is there to have a fault.
    fn presence(&self, strategy: u16) -> Presence {
        let is_living = self.incidents.as_ref().is_none_or(|incidents| incidents.is_living(strategy));
        let is_there =
            || self.process_of(Role::Strategy(strategy)).is_some_and(|child| child.status.is_none());
        match self.plan.thread_of(Role::Strategy(strategy)).map(|thread| self.state(thread)) {
            Some(ThreadState::Running) if is_living => Presence::There,
            Some(ThreadState::Ready) if is_living && is_there() => Presence::Begins,
            _ => Presence::Gone,
        }
    }

    /// The process that runs a role.
    fn process_of(&self, role: Role) -> Option<&Process> {
        let thread = self.plan.thread_of(role)? as u32;
        let place = self.plan.processes.iter().position(|process| process.threads.contains(&thread))?;
        self.processes.all.get(place)
    }
}
