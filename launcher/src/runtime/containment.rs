//! Records the deaths that did not end the run. A strategy's death is an incident, an engine's or
//! exchange's death ends in a restart, and a gateway's death is an outage of its venue.

use crate::runtime::incidents::Incidents;
use crate::runtime::outages::Outages;
use crate::runtime::restart_policy::ProcessControl;
use crate::runtime::role_restarts::RoleRestarts;
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::RunRecord;
use anyhow::Result;
use protocol::plan::Role;
use system::clock::Clock;

/// The launcher's handlers of deaths that the run survives: of strategies, roles and gateways.
#[derive(Default)]
pub struct Containment<'a> {
    /// Deaths of strategies.
    pub incidents: Option<Incidents<'a>>,
    role_restarts: Option<RoleRestarts<'a>>,
    /// Deaths of gateways.
    pub outages: Option<Outages<'a>>,
}

impl<'a> Containment<'a> {
    /// Creates the handlers of deaths for a run's plan. The barrier opens at `start_ticks`, with
    /// every process running.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        Self {
            incidents: Incidents::is_enabled(plan).then(|| Incidents::new(segments, start_ticks)),
            role_restarts: RoleRestarts::is_enabled(plan).then(|| RoleRestarts::new(segments, start_ticks)),
            outages: Outages::is_enabled(plan).then(|| Outages::new(segments, start_ticks)),
        }
    }

    /// Advances the handling of every death (fence, repair, restart) as far as possible without
    /// waiting. Returns notes for the user.
    pub fn poll(
        &mut self,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(incidents) = &mut self.incidents {
            incidents.poll(children, liveness, clock)?;
            notes.extend(incidents.take_notes());
        }
        if let Some(restarts) = &mut self.role_restarts {
            restarts.poll(children, liveness, clock)?;
        }
        if let Some(outages) = &mut self.outages {
            outages.poll(children, liveness, clock)?;
            notes.extend(outages.take_notes());
        }
        Ok(notes)
    }

    /// Records that a fault was injected into a role's process.
    pub fn record_fault(&mut self, role: Role, ticks: u64) {
        match (role, &mut self.incidents, &mut self.role_restarts, &mut self.outages) {
            (Role::Strategy(index), Some(incidents), ..) => incidents.record_fault(index, ticks),
            (Role::Gateway(index), .., Some(outages)) => outages.record_fault(index, ticks),
            (Role::Exchange(_) | Role::Orchestrator, _, Some(restarts), _) => {
                restarts.record_fault(role, ticks)
            }
            _ => {}
        }
    }

    /// Returns `true` if the run continues when a process dies or hangs.
    pub fn supervises(&self, process: usize) -> bool {
        self.incidents.as_ref().is_some_and(|incidents| incidents.supervises(process))
            || self.role_restarts.as_ref().is_some_and(|restarts| restarts.supervises(process))
            || self.outages.as_ref().is_some_and(|outages| outages.supervises(process))
    }

    /// Returns `true` if a process exited in a way that does not fail the run.
    pub fn explains_exit_of(&self, process: usize) -> bool {
        self.incidents.as_ref().is_some_and(|incidents| incidents.explains_exit_of(process))
            || self.role_restarts.as_ref().is_some_and(|restarts| restarts.is_done(process))
            || self.outages.as_ref().is_some_and(|outages| outages.explains_exit_of(process))
    }

    /// Returns `true` while an engine or exchange is restarting, or a fault injected into one has
    /// not been detected.
    pub fn is_role_restarting(&self) -> bool {
        self.role_restarts.as_ref().is_some_and(RoleRestarts::is_busy)
    }

    /// Returns `true` while an engine, exchange or gateway is restarting, or a fault injected into
    /// one has not been detected.
    pub fn is_restarting(&self) -> bool {
        self.is_role_restarting() || self.outages.as_ref().is_some_and(Outages::is_busy)
    }

    /// Returns `true` while a process is about to exit, to start or to become ready. Each of these
    /// waits has its own timeout.
    pub fn has_pending_process(&self) -> bool {
        self.incidents.as_ref().is_some_and(Incidents::has_pending_process)
            || self.role_restarts.as_ref().is_some_and(RoleRestarts::has_pending_process)
            || self.outages.as_ref().is_some_and(Outages::has_pending_process)
    }

    /// Returns the number of steps taken so far in handling deaths.
    pub fn steps(&self) -> u64 {
        let incidents = self.incidents.as_ref().map_or(0, Incidents::steps);
        let restarts = self.role_restarts.as_ref().map_or(0, RoleRestarts::steps);
        incidents.wrapping_add(restarts).wrapping_add(self.outages.as_ref().map_or(0, Outages::steps))
    }

    /// Records deaths at the end of the run: strategies that had to be killed, or died then.
    pub fn record_end(&mut self, children: &impl ProcessControl, clock: &impl Clock) {
        if let Some(incidents) = &mut self.incidents {
            incidents.record_end(children, clock);
        }
    }

    /// Writes incidents, restarts and outages into the run's record.
    pub fn write_into(self, record: &mut RunRecord) {
        record.incidents = self.incidents.map(Incidents::into_list).unwrap_or_default();
        record.role_restarts = self.role_restarts.map(RoleRestarts::into_list).unwrap_or_default();
        record.outages = self.outages.map(Outages::into_list).unwrap_or_default();
    }
}
