//! What the launcher does to the run's processes on purpose: the faults that are signals ([`crate::faults::inject`]).

use super::Supervisor;
use crate::faults::inject::{Strike, Struck};
use crate::runtime::spawn::Process;
use protocol::plan::{FaultKind, Role};
use protocol::status::State;
use shm::clock::Clock;
use shm::os::process;
use std::time::Duration;

impl Supervisor<'_> {
    /// Nanoseconds since the start.
    fn now_ns(&self) -> u64 {
        (self.plan.clock.now().saturating_sub(self.start_ticks) as f64 * self.plan.ns_per_tick) as u64
    }

    /// The time until the next injected fault.
    pub(super) fn until_strike(&self) -> Duration {
        match self.injector.next_due_ns() {
            Some(due) if self.start_ticks > 0 => Duration::from_nanos(due.saturating_sub(self.now_ns())),
            _ => Duration::MAX,
        }
    }

    /// Injects the faults that are due now.
    pub(super) fn strike(&mut self) {
        if self.start_ticks == 0 || self.injector.next_due_ns().is_none() {
            return;
        }
        let now = self.now_ns();
        let living: Vec<bool> = (0..self.plan.strategies).map(|strategy| self.is_living(strategy)).collect();
        let mut strikes = Vec::new();
        while let Some(strike) = self.injector.due(now, |strategy| living[usize::from(strategy)]) {
            strikes.push(strike);
        }
        for Strike { kind, target, .. } in strikes {
            let role = match target {
                Struck::Launcher => None,
                Struck::Engine => Some(Role::Orchestrator),
                Struck::Strategy(index) => Some(Role::Strategy(index)),
            };
            let pid = match role {
                None => Some(std::process::id()),
                // Who was reaped has no pid any more: another process may have it.
                Some(role) => self.process_of(role).filter(|child| child.status.is_none()).map(Process::pid),
            };
            let Some(pid) = pid else { continue };
            if let (Some(incidents), Struck::Strategy(index)) = (&mut self.incidents, target) {
                incidents.injected(index, self.plan.clock.now());
            }
            let name = if kind == FaultKind::Stop { "STOP" } else { "KILL" };
            // Gone in the meantime is as good as struck.
            let _ = process::signal(pid, name);
        }
    }

    /// Whether a strategy is there to be struck.
    fn is_living(&self, strategy: u16) -> bool {
        let thread = self.plan.thread_of(Role::Strategy(strategy));
        thread.is_some_and(|thread| self.status(thread).state() == State::Running)
            && self.incidents.as_ref().is_none_or(|incidents| incidents.is_living(strategy))
    }

    /// The process that runs a role.
    fn process_of(&self, role: Role) -> Option<&Process> {
        let thread = self.plan.thread_of(role)? as u32;
        let place = self.plan.processes.iter().position(|process| process.threads.contains(&thread))?;
        self.processes.all.get(place)
    }
}
