//! Invariants after an event outside of the run's roles: failed starts are deaths, a thread that
//! stands still for a time survives, and no role is blamed for lost memory.

use super::Judge;
use crate::kernel::{LAUNCHER_ERROR, START_ERROR};
use crate::scenario::LIVENESS_NS;
use crate::surroundings::{StandstillCause, SurroundingEvent};
use crate::{LAUNCHER_PID, START_TICKS};
use protocol::plan::Role;
use record::run::{Incident, RunOutcome};
use supervision::memory_failure;
use supervision::restart_policy::MAX_RESTARTS;
use supervision::stuck::liveness::STARVED_LIMITS;

/// The cause of an incident or a restart of what was silent for too long.
const HANGS: &str = "hangs";

impl Judge<'_> {
    /// Checks what follows from the event in the surroundings. Returns `true` if that ended the run
    /// early, so that nothing else is expected of it.
    pub(super) fn check_surroundings(&mut self) -> bool {
        let Some(event) = self.run.scenario.surroundings else { return false };
        if let Some(role) = event.exempt_role() {
            self.check_left_alone(role);
        }
        match event {
            SurroundingEvent::FailedStarts { role: Role::Strategy(_), .. } => self.check_failed_starts(),
            SurroundingEvent::Standstill { role, cause, lasts_ns: None, .. } => {
                self.check_found(role, cause);
            }
            _ => {}
        }
        let Some(outcome) = self.early_end(&event) else { return false };
        self.check_outcome(&outcome);
        self.check_valid();
        self.check_nobody_blamed();
        true
    }

    /// Returns how the run ends because of the event, if it does.
    fn early_end(&self, event: &SurroundingEvent) -> Option<RunOutcome> {
        let (seen, plan) = (&self.run.seen.surroundings, &self.run.scenario.plan);
        let failure = |what| RunOutcome::Failed { process: "launcher".into(), pid: LAUNCHER_PID, what };
        match event {
            SurroundingEvent::FailedStarts { role: Role::Strategy(_), .. } => None,
            SurroundingEvent::FailedStarts { role, .. } => {
                let name = &plan.processes[plan.process_of(*role)?].name;
                let what = format!("cannot start {name} again: {START_ERROR}");
                (seen.failed_starts > 0).then(|| failure(what))
            }
            SurroundingEvent::LauncherError { .. } => seen.ended.map(|_| failure(LAUNCHER_ERROR.into())),
            SurroundingEvent::LauncherLostMemory { .. } | SurroundingEvent::ProcessLostMemory { .. } => {
                seen.ended.map(|_| memory_failure(LAUNCHER_PID))
            }
            SurroundingEvent::Standstill { .. } | SurroundingEvent::DiskStall { .. } => None,
        }
    }

    /// Nobody is blamed once the launcher has lost memory: what it reads then may be zeros.
    fn check_nobody_blamed(&mut self) {
        let is_lost =
            matches!(self.run.scenario.surroundings, Some(SurroundingEvent::LauncherLostMemory { .. }));
        let Some(ended) = self.run.seen.surroundings.ended.filter(|_| is_lost) else { return };
        let is_blamed = |incident: &&Incident| {
            // It had to be killed at the end, or an operator ended it.
            let has_cause = ["exited abnormally", "retired by", "replaced"]
                .iter()
                .any(|cause| incident.cause.starts_with(cause));
            incident.detected_ns + START_TICKS >= ended && !has_cause
        };
        let blamed = self.run.record.incidents.iter().find(is_blamed);
        self.require(blamed.is_none(), || {
            let (strategy, cause) =
                blamed.map_or_else(Default::default, |it| (it.strategy, it.cause.clone()));
            format!("strategy {strategy} is blamed for lost memory: {cause}")
        });
    }

    /// A role that stood still for a time was not taken for hung.
    fn check_left_alone(&mut self, role: Role) {
        let record = &self.run.record;
        let incidents = record.incidents.iter().map(|it| (Role::Strategy(it.strategy), &it.cause));
        let restarts = record.role_restarts.iter().map(|it| (it.role, &it.cause));
        let hung = incidents.chain(restarts).find(|(of, cause)| *of == role && cause.starts_with(HANGS));
        self.require(hung.is_none(), || format!("{role} stood still for a time, and was taken for hung"));
    }

    /// Each failed start is a death of its own, in the words of the launcher.
    fn check_failed_starts(&mut self) {
        let cause = format!("cannot be started: {START_ERROR}");
        let recorded = self.run.record.incidents.iter().filter(|incident| incident.cause == cause).count();
        let failed = self.run.seen.surroundings.failed_starts as usize;
        self.require(recorded == failed, || {
            format!("{failed} starts of a strategy failed, and {recorded} are incidents")
        });
    }

    /// Returns `true` if a strategy may stay down, because its starts have failed too often.
    pub(super) fn may_stay_down(&self, incident: &Incident) -> bool {
        let is_its = |it: &&Incident| it.strategy == incident.strategy;
        let deaths = self.run.record.incidents.iter().filter(is_its).count();
        let can_fail = matches!(self.run.scenario.surroundings, Some(SurroundingEvent::FailedStarts { .. }));
        can_fail && incident.stayed_down.is_some() && deaths > MAX_RESTARTS as usize
    }

    /// A strategy that never runs again was found: soon if it is not runnable, within its extended
    /// limit if it is. One that exits late has the reason in its incident.
    fn check_found(&mut self, role: Role, cause: StandstillCause) {
        let (Some(still), Role::Strategy(strategy)) = (self.run.seen.standstill, role) else { return };
        let is_its = |it: &&Incident| (it.strategy, it.epoch) == (strategy, still.epoch);
        let incident = self.run.record.incidents.iter().find(is_its);
        self.require(incident.is_some(), || format!("{role} never runs again, and nobody has noticed"));
        let Some(incident) = incident.filter(|incident| incident.cause.starts_with(HANGS)) else { return };
        let silent_ns = (incident.detected_ns + START_TICKS).saturating_sub(still.since);
        // Its last duty cycle was up to a deadline earlier.
        let limits = match cause {
            StandstillCause::Starved => u64::from(STARVED_LIMITS) - 1..u64::from(STARVED_LIMITS) + 2,
            _ => 0..3,
        };
        self.require(limits.contains(&(silent_ns / LIVENESS_NS)), || {
            format!("{role} stands still ({cause:?}), and was killed after {silent_ns} ns")
        });
        let exits_late = matches!(cause, StandstillCause::Kernel { .. });
        self.require(!exits_late || incident.slow_exit.is_some(), || {
            format!("{role} took long to exit, and its incident does not say why")
        });
    }
}
