//! The deaths that a run outlives, of whatever kind: a strategy's is an incident, an engine's or
//! exchange's ends in its comeback, a gateway's is an outage of its venue.

use crate::runtime::comebacks::Comebacks;
use crate::runtime::incidents::Incidents;
use crate::runtime::outages::Outages;
use crate::runtime::restarts::Children;
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::RunRecord;
use anyhow::Result;
use protocol::plan::Role;
use system::clock::Clock;

/// All of them; each is there where the plan contains such deaths, from the open barrier on.
#[derive(Default)]
pub struct Containment<'a> {
    /// The strategies'.
    pub incidents: Option<Incidents<'a>>,
    comebacks: Option<Comebacks<'a>>,
    /// The gateways'.
    pub outages: Option<Outages<'a>>,
}

impl<'a> Containment<'a> {
    /// The barrier opens at that tick, and everybody lives.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        Self {
            incidents: Incidents::contains(plan).then(|| Incidents::new(segments, start_ticks)),
            comebacks: Comebacks::contains(plan).then(|| Comebacks::new(segments, start_ticks)),
            outages: Outages::contains(plan).then(|| Outages::new(segments, start_ticks)),
        }
    }

    /// Takes everybody who died as far as they can go now. Returns what is to be said of it.
    pub fn look(
        &mut self,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if let Some(incidents) = &mut self.incidents {
            incidents.look(children, liveness, clock)?;
            notes.extend(incidents.take_notes());
        }
        if let Some(comebacks) = &mut self.comebacks {
            comebacks.look(children, liveness, clock)?;
        }
        if let Some(outages) = &mut self.outages {
            outages.look(children, liveness, clock)?;
            notes.extend(outages.take_notes());
        }
        Ok(notes)
    }

    /// A fault was done to the process of that role on purpose.
    pub fn fault(&mut self, role: Role, ticks: u64) {
        match (role, &mut self.incidents, &mut self.comebacks, &mut self.outages) {
            (Role::Strategy(index), Some(incidents), ..) => incidents.fault(index, ticks),
            (Role::Gateway(index), .., Some(outages)) => outages.fault(index, ticks),
            (Role::Exchange(_) | Role::Orchestrator, _, Some(comebacks), _) => comebacks.fault(role, ticks),
            _ => {}
        }
    }

    /// Returns `true` if the run goes on when that process dies or hangs.
    pub fn owns(&self, process: usize) -> bool {
        self.incidents.as_ref().is_some_and(|incidents| incidents.owns(process))
            || self.comebacks.as_ref().is_some_and(|comebacks| comebacks.owns(process))
            || self.outages.as_ref().is_some_and(|outages| outages.owns(process))
    }

    /// Returns `true` if it is no failure of the run how that process ended.
    pub fn excuses(&self, process: usize) -> bool {
        self.incidents.as_ref().is_some_and(|incidents| incidents.excuses(process))
            || self.comebacks.as_ref().is_some_and(|comebacks| comebacks.is_done(process))
            || self.outages.as_ref().is_some_and(|outages| outages.excuses(process))
    }

    /// Returns `true` if an engine or exchange is on its way back, or a fault of one has not shown
    /// yet.
    pub fn is_coming_back(&self) -> bool {
        self.comebacks.as_ref().is_some_and(Comebacks::is_busy)
    }

    /// The same of an engine, an exchange or a gateway.
    pub fn is_returning(&self) -> bool {
        self.is_coming_back() || self.outages.as_ref().is_some_and(Outages::is_busy)
    }

    /// Returns `true` if a process is about to end, to be started or to get ready. Each has a bound
    /// of its own.
    pub fn waits_for_a_process(&self) -> bool {
        self.incidents.as_ref().is_some_and(Incidents::waits_for_a_process)
            || self.comebacks.as_ref().is_some_and(Comebacks::waits_for_a_process)
            || self.outages.as_ref().is_some_and(Outages::waits_for_a_process)
    }

    /// Counts everything that was done about deaths.
    pub fn steps(&self) -> u64 {
        let incidents = self.incidents.as_ref().map_or(0, Incidents::steps);
        let comebacks = self.comebacks.as_ref().map_or(0, Comebacks::steps);
        incidents.wrapping_add(comebacks).wrapping_add(self.outages.as_ref().map_or(0, Outages::steps))
    }

    /// At the end of the run: a strategy that had to be killed, or died then, is an incident too.
    pub fn end(&mut self, children: &impl Children, clock: &impl Clock) {
        if let Some(incidents) = &mut self.incidents {
            incidents.end(children, clock);
        }
    }

    /// Writes down what has happened.
    pub fn record(self, record: &mut RunRecord) {
        record.incidents = self.incidents.map(Incidents::into_list).unwrap_or_default();
        record.role_restarts = self.comebacks.map(Comebacks::into_list).unwrap_or_default();
        record.outages = self.outages.map(Outages::into_list).unwrap_or_default();
    }
}
