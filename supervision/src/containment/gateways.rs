//! Gateway processes that die or hang while the run continues.
//!
//! While its gateway is dead a venue is down. The engine rejects orders for it (`venue-down`) and
//! closes those that were open there (`venue-unknown`). No other process waits for it. The next
//! incarnation gets its own memory reset, and orders once it runs duty cycles.
//!
//! A gateway whose successor resumes its session with an exchange closes nothing, and its inbox
//! stays. Open orders are closed once the gateway is not restarted any more: then one more
//! incarnation, [`GIVEN_UP`], is fenced that never ran.

use super::Containment;
use super::supervised::{SupervisedProcess, SupervisedRoles, SupervisionStage};
use crate::actions::{Action, Actions};
use crate::observations::Observations;
use crate::restart_policy::{IncarnationEnd, MAX_RESTARTS};
use crate::stuck::Liveness;
use protocol::index::GatewayIndex;
use protocol::plan::Role;
use protocol::status::ThreadState;
use protocol::supervision::{GIVEN_UP, GatewayCounts};
use record::run::{Outage, StayedDown};
use std::time::Duration;

impl SupervisedProcess {
    fn gateways(&self) -> &[GatewayIndex] {
        if let SupervisedRoles::Gateways(gateways) = &self.roles { gateways } else { &[] }
    }
}

impl Containment<'_> {
    /// Returns the number of orders that a gateway without a successor had received when it died.
    /// Returns `None` if the gateway runs or has a successor.
    pub fn orders_of_dead(&self, gateway: GatewayIndex) -> Option<u64> {
        use SupervisionStage::{Down, Paused, Starting};
        let case = self.processes.iter().find(|case| case.has_role(Role::Gateway(gateway)))?;
        let is_resumed = case.epoch != GIVEN_UP && self.plan.can_resume_gateway(gateway);
        let is_over = matches!(case.stage, Down | Paused(..) | Starting(_)) && !is_resumed;
        let place = case.gateways().iter().position(|index| *index == gateway)?;
        case.counts.get(place).filter(|_| is_over).map(|counts| counts.orders)
    }

    /// Records the death of a process of gateways, and when a restarted one runs. Returns `true` if
    /// there was something to do.
    pub(super) fn watch_gateways(
        &mut self,
        place: usize,
        observed: &Observations,
        liveness: &Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) -> bool {
        let case = &self.processes[place];
        let process = &observed.processes[case.process];
        if let (SupervisionStage::Starting(outage), Some(error)) = (case.stage, &process.failed_start) {
            // No process runs: the last one has exited.
            let case = &mut self.processes[place];
            case.end = IncarnationEnd::default();
            case.last_cause = format!("cannot be started: {error}");
            self.decide_restart(place, outage, observed, now, out);
            return true;
        }
        let cause = self.detect_exit_or_hang(place, observed, liveness, out);
        let case = &self.processes[place];
        match (case.stage, cause) {
            (SupervisionStage::Starting(outage), Some(cause)) => {
                // It may have handed over reports of a resumed session.
                let case = &mut self.processes[place];
                let is_planned = case.fault.take().is_some();
                case.end = IncarnationEnd { is_planned, has_traded: false, ran: Duration::ZERO };
                case.last_cause = cause;
                case.epoch += 1;
                case.killed_ticks = now;
                case.stage = SupervisionStage::Killed(outage);
            }
            (_, Some(cause)) => {
                let outage = self.record_outage(place, cause, observed, now, out);
                self.processes[place].stage = SupervisionStage::Killed(outage);
            }
            (SupervisionStage::Starting(outage), None)
                if case.all_threads_are(observed, |state| state == ThreadState::Running) =>
            {
                self.renew_gateways(place, outage, now, out);
            }
            _ => return false,
        }
        true
    }

    /// Returns why a process is to be given up, if it has exited or hangs; kills it if it hangs.
    fn detect_exit_or_hang(
        &self,
        place: usize,
        observed: &Observations,
        liveness: &Liveness,
        out: &mut dyn Actions,
    ) -> Option<String> {
        let case = &self.processes[place];
        let process = case.process;
        match observed.exited_normally(process) {
            Some(true) if case.is_done(observed) => None,
            Some(_) => Some(observed.exit_text(process)),
            None => {
                let suspicion = self.liveness_fault(case, liveness)?;
                out.perform(Action::Kill(process));
                Some(suspicion.to_string())
            }
        }
    }

    /// Records the engine's repair of dead gateways. Returns `false` if it is not complete.
    pub(super) fn try_record_gateway_repair(
        &mut self,
        place: usize,
        outage: usize,
        observed: &Observations,
    ) -> bool {
        let case = &self.processes[place];
        let repair = |gateway: &GatewayIndex| observed.gateways[gateway.as_usize()].repair;
        let repairs: Vec<_> = case.gateways().iter().map(repair).collect();
        if repairs.iter().any(|repair| repair.repaired != Some(case.epoch)) {
            return false;
        }
        let repaired = repairs.iter().map(|repair| repair.repaired_ticks).max().unwrap_or(0);
        let counts: Vec<_> = repairs.iter().map(|repair| repair.counts).collect();
        let unknown = |counts: &[GatewayCounts]| counts.iter().map(|of| of.unknown).sum::<u64>();
        let repaired = self.ns_since_start(repaired);
        self.outages[outage].repaired_ns.get_or_insert(repaired);
        self.outages[outage].unknown += unknown(&counts) - unknown(&case.counts);
        self.processes[place].counts = counts;
        true
    }

    /// Returns the pause before dead gateways are restarted, or `None` if they stay down.
    pub(super) fn gateways_pause(
        &mut self,
        place: usize,
        outage: usize,
        now: u64,
        out: &mut dyn Actions,
    ) -> Option<Duration> {
        let plan = self.plan;
        let case = &mut self.processes[place];
        case.stage = SupervisionStage::Down;
        if case.epoch == GIVEN_UP || !plan.should_restart_gateways(&plan.processes[case.process]) {
            return None;
        }
        let pause = case.policy.charge_death(case.end);
        if pause.is_some() {
            return pause;
        }
        if case.gateways().iter().any(|gateway| plan.can_resume_gateway(*gateway)) {
            reset(case, out);
            (case.epoch, case.killed_ticks) = (GIVEN_UP, now);
            case.stage = SupervisionStage::Killed(outage);
        }
        let why = format!("none of them made progress; the last: {}", case.last_cause);
        let name = &plan.processes[case.process].name;
        let note = format!("note: {name} stayed down after {MAX_RESTARTS} restarts: {why}");
        out.perform(Action::Complain(note));
        self.outages[outage].stayed_down = Some(StayedDown { restarts: MAX_RESTARTS, why });
        None
    }

    pub(super) fn restart_gateways(
        &mut self,
        place: usize,
        outage: usize,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let case = &mut self.processes[place];
        case.stage = SupervisionStage::Starting(outage);
        reset(case, out);
        self.restart(place, liveness, now, out);
    }

    /// Records that the next incarnation runs duty cycles: the engine sends it orders again.
    fn renew_gateways(&mut self, place: usize, outage: usize, now: u64, out: &mut dyn Actions) {
        let now_ns = self.ns_since_start(now);
        let case = &mut self.processes[place];
        case.epoch += 1;
        (case.stage, case.running_ns) = (SupervisionStage::Running, now_ns);
        for gateway in case.gateways() {
            out.perform(Action::Renew(Role::Gateway(*gateway), case.epoch));
        }
        self.outages[outage].restarted_ns = Some(now_ns);
    }

    fn record_outage(
        &mut self,
        place: usize,
        cause: String,
        observed: &Observations,
        detected: u64,
        out: &mut dyn Actions,
    ) -> usize {
        let plan = self.plan;
        let detected_ns = self.ns_since_start(detected);
        let has_traded = self.have_gateways_traded(place, observed);
        let pid = observed.processes[self.processes[place].process].pid;
        let case = &mut self.processes[place];
        case.killed_ticks = detected;
        let fault = case.fault.take();
        let ran = Duration::from_nanos(detected_ns.saturating_sub(case.running_ns));
        case.end = IncarnationEnd { is_planned: fault.is_some(), has_traded, ran };
        case.last_cause.clone_from(&cause);
        let (process, gateways) = (plan.processes[case.process].name.clone(), case.gateways().to_vec());
        let outage = Outage {
            process,
            gateways,
            pid,
            cause,
            fault_ns: fault.map(|ticks| self.ns_since_start(ticks)),
            detected_ns,
            fenced_ns: 0,
            repaired_ns: None,
            unknown: 0,
            restarted_ns: None,
            served_ns: None,
            stayed_down: None,
        };
        let note = format!("note: {}: orders for it are rejected", outage.describe(self.plan));
        out.perform(Action::Complain(note));
        self.outages.push(outage);
        self.outages.len() - 1
    }

    /// Returns `true` if this incarnation of some gateway took an order or handed over a report.
    fn have_gateways_traded(&self, place: usize, observed: &Observations) -> bool {
        let case = &self.processes[place];
        case.gateways().iter().enumerate().any(|(index, gateway)| {
            let counts = &observed.gateways[gateway.as_usize()];
            // A successor continues the counters.
            let before = case.counts.get(index).copied().unwrap_or_default();
            counts.received > before.orders || counts.completed > before.reports
        })
    }
}

/// Resets the memory of dead gateways.
fn reset(case: &SupervisedProcess, out: &mut dyn Actions) {
    case.gateways().iter().for_each(|gateway| out.perform(Action::Reset(Role::Gateway(*gateway))));
}
