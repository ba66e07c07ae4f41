//! Keeps a run going when one of its processes dies, hangs or violates the protocol. A strategy's
//! death is an incident, a gateway's is an outage of its venue, and the engine and exchanges
//! recover from their journals.
//!
//! ```text
//! running ── past its deadline, quarantined ──▶ killed ─┐
//!    │                                                  ├─ proof of death ─▶ fenced
//!    └── its process has ended ─────────────────────────┘
//!
//! fenced ── repaired by the engine ─┬─▶ down
//!    ▲                              └─▶ (pause) ─▶ starting ─▶ running
//!    └──── cannot be started ─────────────────────────┘
//! ```
//!
//! The liveness deadline is the only step that depends on time. Fencing requires the kernel's proof
//! that the process is gone, and the memory of a dead process is reset only after the engine has
//! reported that it no longer reads it. [`RestartPolicy`] decides whether and when a strategy or
//! gateway is restarted; one that stays down does not end the run. Engine and exchanges are not
//! fenced: see `journaled.rs`.
//!
//! [`RestartPolicy`]: crate::runtime::restart_policy::RestartPolicy

mod gateways;
mod journaled;
mod strategies;
mod supervised;

pub use strategies::with_own_message;

use crate::runtime::restart_policy::ProcessControl;
use crate::runtime::setup::{self, Segments};
use crate::runtime::stuck::{Liveness, LivenessFault};
use analysis::record::{Incident, Outage, RoleRestart};
use anyhow::{Result, anyhow};
use protocol::labels::Counter;
use protocol::plan::{Isolation, OnDeath, Role};
use protocol::status::{self, GAPS, ThreadState};
use protocol::supervision::{ProofOfDeath, Repairs};
use shm::bell::Doorbell;
use std::time::Duration;
use supervised::{SupervisedProcess, SupervisedRoles, SupervisionStage};
use system::clock::Clock;

/// Number of strategies whose headers are checked in one poll: a few cache lines each.
const HEADERS_PER_POLL: u16 = 32;

/// The processes of a run whose deaths it survives, and the deaths so far.
pub struct Containment<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    engine_bell: Option<Doorbell>,
    start_ticks: u64,
    /// Strategies in order, if their deaths are contained; then engine, exchanges and gateways.
    processes: Vec<SupervisedProcess>,
    incidents: Vec<Incident>,
    restarts: Vec<RoleRestart>,
    outages: Vec<Outage>,
    /// Orders that dead strategies had sent, and how many of them were settled.
    past_orders: (u64, u64),
    steps: u64,
    /// First strategy whose header this poll checks, round-robin.
    first_inspected: u16,
    notes: Vec<String>,
}

impl<'a> Containment<'a> {
    /// Contains no death: before the start barrier has opened.
    pub fn inactive(segments: &'a Segments) -> Self {
        Self {
            segments,
            repairs: Repairs::new(segments.repairs().into()),
            engine_bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
            start_ticks: 0,
            processes: Vec::new(),
            incidents: Vec::new(),
            restarts: Vec::new(),
            outages: Vec::new(),
            past_orders: (0, 0),
            steps: 0,
            first_inspected: 0,
            notes: Vec::new(),
        }
    }

    /// Contains the deaths that the plan allows. The barrier opens at `start_ticks`, with every
    /// process running in epoch 0.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let mut processes = Vec::new();
        let mut supervise = |role, roles| {
            let process = plan.process_of(role).expect("a valid plan runs every role");
            processes.push(SupervisedProcess::new(plan, process, roles));
        };
        if plan.on_death != OnDeath::Stop && plan.isolation != Isolation::Thread {
            for index in 0..plan.trading().strategies {
                supervise(Role::Strategy(index), SupervisedRoles::Strategy(index));
            }
        }
        if plan.exchanges_are_restartable() {
            let engine = Some(Role::Orchestrator).filter(|_| plan.engine_is_restartable());
            for role in engine.into_iter().chain(plan.trading().books().map(Role::Exchange)) {
                supervise(role, SupervisedRoles::Journaled(role));
            }
        }
        for (index, process) in plan.processes.iter().enumerate() {
            if plan.can_lose_gateways() && plan.can_lose_process(process) {
                let gateways = plan.roles_of(process).map(Role::index).collect();
                processes.push(SupervisedProcess::new(plan, index, SupervisedRoles::Gateways(gateways)));
            }
        }
        Self { start_ticks, processes, ..Self::inactive(segments) }
    }

    pub fn record_fault(&mut self, role: Role, ticks: u64) {
        if let Some(case) = self.processes.iter_mut().find(|case| case.has_role(role)) {
            case.fault = Some(ticks);
        }
    }

    /// Returns `true` if the run continues when that process dies or hangs.
    pub fn supervises(&self, process: usize) -> bool {
        let is_handled =
            |case: &SupervisedProcess| !case.is_journaled() || case.stage != SupervisionStage::Down;
        self.processes.iter().any(|case| case.process == process && is_handled(case))
    }

    /// Returns `true` if the way the process exited does not fail the run: it has exited, or will,
    /// because of its death, or it is a journaled role that has reported done.
    pub fn explains_exit_of(&self, process: usize) -> bool {
        let is_explained = |case: &SupervisedProcess| match case.stage {
            SupervisionStage::Running => case.is_journaled() && self.is_done(case),
            _ => !case.is_journaled(),
        };
        self.processes.iter().any(|case| case.process == process && is_explained(case))
    }

    /// Returns `true` while the engine repairs the death of a strategy or gateway, or such a
    /// process is about to exit or to start.
    pub fn is_repairing(&self) -> bool {
        use SupervisionStage::{Fenced, Killed, Starting};
        let is_so = |case: &SupervisedProcess| matches!(case.stage, Killed(_) | Fenced(_) | Starting(_));
        self.processes.iter().any(|case| !case.is_journaled() && is_so(case))
    }

    /// As [`Self::is_restarting`], for engine and exchanges only.
    pub fn is_role_restarting(&self) -> bool {
        self.processes.iter().any(|case| case.is_journaled() && self.is_away(case))
    }

    /// Returns `true` while an engine, exchange or gateway is restarting, or a fault injected into
    /// one has not been detected.
    pub fn is_restarting(&self) -> bool {
        self.processes.iter().any(|case| !case.is_strategy() && self.is_away(case))
    }

    fn is_away(&self, case: &SupervisedProcess) -> bool {
        match case.stage {
            SupervisionStage::Running => case.fault.is_some() && !(case.is_journaled() && self.is_done(case)),
            SupervisionStage::Down => false,
            _ => true,
        }
    }

    /// Returns `true` while a process is about to exit, to start or to become ready. Each of these
    /// waits has its own timeout.
    pub fn has_pending_process(&self) -> bool {
        use SupervisionStage::{Killed, Paused, Starting};
        self.processes.iter().any(|case| matches!(case.stage, Killed(_) | Paused(..) | Starting(_)))
    }

    /// Returns `true` while a successor of the engine attaches to the memory of all roles. Until it
    /// has, no dead role's memory is reset: half of it could be read before, half after.
    fn is_engine_recovering(&self) -> bool {
        let is_so = |case: &SupervisedProcess| {
            case.is_journaled()
                && case.has_role(Role::Orchestrator)
                && matches!(case.stage, SupervisionStage::Starting(_))
        };
        self.processes.iter().any(is_so)
    }

    /// Returns when the next paused process is restarted, in nanoseconds since the start; `None` if
    /// there is none, or it waits for the engine.
    pub fn next_restart_ns(&self) -> Option<u64> {
        if self.is_engine_recovering() {
            return None;
        }
        let due = |case: &SupervisedProcess| match case.stage {
            SupervisionStage::Paused(_, due) => Some(due),
            _ => None,
        };
        self.processes.iter().filter_map(due).min()
    }

    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Sleeps until the engine reports a repair, at most `at_most`.
    pub fn wait_for_engine(&self, at_most: Duration) {
        self.repairs.wait(self.repairs.report_count(), at_most);
    }

    /// Advances the handling of every death as far as possible now. Returns notes for the user.
    pub fn poll(
        &mut self,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<Vec<String>> {
        let strategies = self.segments.plan.trading().strategies;
        self.first_inspected = (self.first_inspected + HEADERS_PER_POLL) % strategies.max(1);
        for place in 0..self.processes.len() {
            // Several steps at once where nothing has to be waited for.
            while self.step(place, children, liveness, clock.now())? {
                self.steps += 1;
            }
        }
        Ok(std::mem::take(&mut self.notes))
    }

    /// Takes one step of a process. Returns `true` if there was one to take.
    fn step(
        &mut self,
        place: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<bool> {
        let case = &self.processes[place];
        let is_strategy = case.is_strategy();
        match case.stage {
            SupervisionStage::Running | SupervisionStage::Starting(_) => {
                return Ok(match case.roles {
                    SupervisedRoles::Strategy(_) => self.watch_strategy(place, children, liveness, now),
                    SupervisedRoles::Gateways(_) => self.watch_gateways(place, children, liveness, now),
                    SupervisedRoles::Journaled(role) => {
                        self.watch_journaled(place, role, children, liveness, now)
                    }
                });
            }
            SupervisionStage::Killed(death) => {
                let since = case.killed_ticks.max(liveness.awake_since());
                let waited_ns = self.ns_since_start(now).saturating_sub(self.ns_since_start(since));
                let name = &self.segments.plan.processes[case.process].name;
                let proof = match children.proof_of_exit(case.process, name, waited_ns) {
                    Ok(Some(proof)) => proof,
                    Ok(None) => {
                        self.sample_dying(place, children, waited_ns);
                        return Ok(false);
                    }
                    Err(error) => {
                        let why = case.dying.and_then(|(first, last)| last.shortage_since(&first));
                        return Err(match why {
                            Some(why) => anyhow!("{error:#}; {}", why.describe()),
                            None => error,
                        });
                    }
                };
                if case.is_journaled() {
                    self.restart_journaled(place, death, children, liveness, now)?;
                    return Ok(false);
                }
                self.fence(place, death, &proof, now);
            }
            SupervisionStage::Fenced(death) => {
                let is_repaired = match is_strategy {
                    true => self.try_record_strategy_repair(place, death),
                    false => self.try_record_gateway_repair(place, death),
                };
                if !is_repaired {
                    return Ok(false);
                }
                self.segments.control.record_end(self.processes[place].process);
                self.decide_restart(place, death, now);
            }
            SupervisionStage::Paused(_, due) if self.ns_since_start(now) < due => return Ok(false),
            SupervisionStage::Paused(..) if self.is_engine_recovering() => return Ok(false),
            SupervisionStage::Paused(death, _) => match is_strategy {
                true => self.restart_strategy(place, death, children, liveness, now)?,
                false => self.restart_gateways(place, death, children, liveness, now),
            },
            SupervisionStage::Down => return Ok(false),
        }
        Ok(true)
    }

    /// Fences an incarnation whose death is proven: the engine then repairs what it left.
    fn fence(&mut self, place: usize, death: usize, proof: &ProofOfDeath, now: u64) {
        let now_ns = self.ns_since_start(now);
        self.processes[place].stage = SupervisionStage::Fenced(death);
        let case = &self.processes[place];
        match &case.roles {
            SupervisedRoles::Gateways(gateways) => {
                for gateway in gateways {
                    self.segments.control.fence_gateway(*gateway, case.epoch, proof);
                }
                let outage = &mut self.outages[death];
                if outage.repaired_ns.is_none() {
                    outage.fenced_ns = now_ns;
                }
            }
            SupervisedRoles::Strategy(strategy) => {
                let (strategy, epoch) = (*strategy, case.epoch);
                self.check_headers_of_dead(strategy, death);
                self.segments.control.fence(strategy, epoch, proof);
                self.incidents[death].fenced_ns = now_ns;
            }
            SupervisedRoles::Journaled(_) => {}
        }
        self.ring_engine();
    }

    fn decide_restart(&mut self, place: usize, death: usize, now: u64) {
        let pause = match self.processes[place].is_strategy() {
            true => self.strategy_pause(place, death),
            false => self.gateways_pause(place, death, now),
        };
        if let Some(pause) = pause {
            let due = self.ns_since_start(now).saturating_add(pause.as_nanos() as u64);
            self.processes[place].stage = SupervisionStage::Paused(death, due);
        }
    }

    fn ring_engine(&self) {
        if let Some(bell) = &self.engine_bell {
            bell.ring();
        }
    }

    fn reset_threads(&self, place: usize, liveness: &mut Liveness, now: u64) {
        for thread in &self.processes[place].threads {
            // Its counters of gaps stay, as its stamp log does.
            self.segments.reset_status(*thread, GAPS);
            liveness.reset_thread(*thread, now);
        }
    }

    fn count(&self, role: Role, counter: impl Counter) -> u64 {
        setup::count(&self.segments.plan, &self.segments.threads, role, counter)
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.segments.threads[thread])
    }

    fn all_threads_are(&self, case: &SupervisedProcess, is_so: impl Fn(ThreadState) -> bool) -> bool {
        case.threads.iter().all(|thread| is_so(self.state(*thread)))
    }

    /// Returns the first fault of a process's threads.
    fn liveness_fault(&self, case: &SupervisedProcess, liveness: &Liveness) -> Option<LivenessFault> {
        let shares = &self.segments.plan.processes[case.process].threads;
        case.threads.iter().find_map(|thread| liveness.fault(*thread, shares))
    }

    fn is_done(&self, case: &SupervisedProcess) -> bool {
        self.all_threads_are(case, |state| state == ThreadState::Done)
    }

    fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Returns the incidents, restarts and outages of the run.
    pub fn into_lists(self) -> (Vec<Incident>, Vec<RoleRestart>, Vec<Outage>) {
        (self.incidents, self.restarts, self.outages)
    }
}

#[cfg(test)]
mod tests;
