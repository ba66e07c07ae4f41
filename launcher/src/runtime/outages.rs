//! Handles gateway processes that die or hang while the run continues: fence, wait until the engine
//! has closed the open orders, restart.
//!
//! ```text
//! running ── hangs ──▶ killed ─┐
//!    │                         ├─ proof of death ─▶ fenced ── repaired ─┬─▶ down
//!    └── has ended ────────────┘                                        └─▶ (pause) ─▶ starting
//!    ▲                                                                                     │
//!    └───────────────────────────────── its first duty cycle ──────────────────────────────┘
//! ```
//!
//! While its gateway is dead a venue is down. The engine rejects orders for it (`venue-down`) and
//! closes those that were open there (`venue-unknown`). No other process waits for it. The next
//! incarnation gets its own memory reset, and orders once it runs duty cycles.
//!
//! A gateway whose successor resumes its session with an exchange closes nothing, and its inbox
//! stays. Open orders are closed once the gateway is not restarted any more: then one more
//! incarnation, [`GIVEN_UP`], is fenced that never ran.

use crate::runtime::incidents::ProcessControl;
use crate::runtime::restart_policy::{IncarnationEnd, RestartDecision, RestartPolicy};
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::{Outage, StayedDown};
use anyhow::Result;
use protocol::labels::GatewayCounter;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::status::{self, ThreadState};
use protocol::supervision::{GIVEN_UP, GatewayCounts, ProofOfDeath, Repairs};
use shm::bell::Doorbell;
use std::time::Duration;
use system::clock::Clock;

/// State of a gateway process; the index refers to its outage in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageStage {
    Running,
    /// SIGKILL was sent, or the process has exited; its death is not proven yet.
    Killed(usize),
    /// Proven dead; the engine takes its last reports.
    Fenced(usize),
    /// The process is restarted at that time, in nanoseconds since the start of the run.
    Paused(usize, u64),
    /// The process was restarted and has not completed a duty cycle.
    Starting(usize),
    /// The process stays down, and its venues with it, until the run ends.
    Down,
}

struct SupervisedGateways {
    /// Its index among the plan's processes, and those of its threads.
    process: usize,
    threads: Vec<usize>,
    gateways: Vec<u16>,
    stage: OutageStage,
    /// The running incarnation, or the one that died last.
    epoch: u16,
    /// When it completed its first duty cycle, in nanoseconds since the start of the run.
    running_ns: u64,
    policy: RestartPolicy,
    /// When a fault was last injected, in ticks.
    fault: Option<u64>,
    /// When its death was detected, in ticks.
    killed_ticks: u64,
    /// How the last incarnation ended, and why.
    end: IncarnationEnd,
    last_cause: String,
    /// The engine's counts for each gateway at the last death.
    counts: Vec<GatewayCounts>,
}

/// The state of a run's gateway processes, and the handling of their deaths.
pub struct Outages<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    engine_bell: Option<Doorbell>,
    processes: Vec<SupervisedGateways>,
    list: Vec<Outage>,
    start_ticks: u64,
    steps: u64,
    /// Notes for the user about venues that have just gone down.
    notes: Vec<String>,
}

impl<'a> Outages<'a> {
    /// Creates the state in which all gateways run.
    ///
    /// # Panics
    /// If the segments are not created yet.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |(index, process): (usize, &ProcessPlan)| SupervisedGateways {
            process: index,
            threads: process.threads.iter().map(|thread| *thread as usize).collect(),
            gateways: plan.roles_of(process).map(Role::index).collect(),
            stage: OutageStage::Running,
            epoch: 0,
            running_ns: 0,
            policy: RestartPolicy::default(),
            fault: None,
            killed_ticks: 0,
            end: IncarnationEnd::default(),
            last_cause: String::new(),
            counts: Vec::new(),
        };
        let outlived =
            plan.processes.iter().enumerate().filter(|(_, process)| plan.can_lose_process(process));
        Self {
            segments,
            repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
            engine_bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
            processes: outlived.map(case).collect(),
            list: Vec::new(),
            start_ticks,
            steps: 0,
            notes: Vec::new(),
        }
    }

    /// Returns `true` if the run survives the death of a gateway process.
    pub fn is_enabled(plan: &Plan) -> bool {
        plan.can_lose_gateways()
    }

    /// Returns `true` if the death of a process is handled as an outage of its venues.
    pub fn supervises(&self, process: usize) -> bool {
        self.processes.iter().any(|case| case.process == process)
    }

    /// Returns `true` if the process exited, or will, because of the outage of a gateway.
    pub fn explains_exit_of(&self, process: usize) -> bool {
        self.processes.iter().any(|case| case.process == process && case.stage != OutageStage::Running)
    }

    /// Records that a fault was injected into the process of a gateway.
    pub fn record_fault(&mut self, gateway: u16, ticks: u64) {
        if let Some(case) = self.processes.iter_mut().find(|case| case.gateways.contains(&gateway)) {
            case.fault = Some(ticks);
        }
    }

    /// Returns `true` while a gateway's death, repair or start is in progress. Also while an
    /// injected fault has not been detected.
    pub fn is_busy(&self) -> bool {
        self.processes.iter().any(|case| match case.stage {
            OutageStage::Running => case.fault.is_some(),
            OutageStage::Down => false,
            _ => true,
        })
    }

    /// Returns `true` while a process is about to exit, to start or to become ready. Each of these
    /// waits has its own timeout.
    pub fn has_pending_process(&self) -> bool {
        use OutageStage::{Killed, Paused, Starting};
        self.processes.iter().any(|case| matches!(case.stage, Killed(_) | Paused(..) | Starting(_)))
    }

    /// Returns the number of steps taken so far in handling deaths of gateways.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns how many orders a permanently dead gateway had received. Nothing of it is left, and
    /// no successor uses its inbox. `None` if it runs or has a successor.
    pub fn orders_of_dead(&self, gateway: u16) -> Option<u64> {
        use OutageStage::{Down, Paused, Starting};
        let case = self.processes.iter().find(|case| case.gateways.contains(&gateway))?;
        let is_resumed = case.epoch != GIVEN_UP && self.segments.plan.can_resume_gateway(gateway);
        let is_over = matches!(case.stage, Down | Paused(..) | Starting(_)) && !is_resumed;
        let place = case.gateways.iter().position(|index| *index == gateway)?;
        case.counts.get(place).filter(|_| is_over).map(|counts| counts.orders)
    }

    /// Returns the new notes for the user about venues that went down.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns the outages of venues during the run.
    pub fn into_list(self) -> Vec<Outage> {
        self.list
    }

    fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Advances the handling of every dead gateway process (fence, repair, restart) as far as
    /// possible without waiting.
    ///
    /// # Errors
    /// A failed system call, or a process that does not exit.
    pub fn poll(
        &mut self,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        for place in 0..self.processes.len() {
            // Several steps at once where nothing has to be waited for.
            while self.step(place, children, liveness, clock)? {
                self.steps += 1;
            }
        }
        Ok(())
    }

    /// Takes one step of one process. Returns `true` if there was one to take.
    fn step(
        &mut self,
        place: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<bool> {
        let case = &self.processes[place];
        let process = case.process;
        match case.stage {
            OutageStage::Running => {
                let Some(cause) = self.detect_exit_or_hang(place, children, liveness) else {
                    return Ok(false);
                };
                let outage = self.record_outage(place, children.pid(process), cause, clock.now());
                self.processes[place].stage = OutageStage::Killed(outage);
            }
            OutageStage::Killed(outage) => {
                let since = case.killed_ticks.max(liveness.awake_since());
                let waited_ns = self.ns_since_start(clock.now()).saturating_sub(self.ns_since_start(since));
                let name = &self.segments.plan.processes[process].name;
                let Some(death) = children.proof_of_exit(process, name, waited_ns)? else { return Ok(false) };
                self.fence(place, outage, &death, clock.now());
            }
            OutageStage::Fenced(outage) => {
                let repairs: Vec<_> =
                    case.gateways.iter().map(|gateway| self.repairs.gateway_repair(*gateway)).collect();
                if repairs.iter().any(|repair| repair.repaired != Some(case.epoch)) {
                    return Ok(false);
                }
                let repaired = repairs.iter().map(|repair| repair.repaired_ticks).max().unwrap_or(0);
                let counts: Vec<_> = repairs.iter().map(|repair| repair.counts).collect();
                let unknown = |counts: &[GatewayCounts]| counts.iter().map(|of| of.unknown).sum::<u64>();
                self.segments.control.record_end(process);
                let repaired = self.ns_since_start(repaired);
                self.list[outage].repaired_ns.get_or_insert(repaired);
                self.list[outage].unknown += unknown(&counts) - unknown(&self.processes[place].counts);
                self.processes[place].counts = counts;
                self.decide_restart(place, outage, clock.now());
            }
            OutageStage::Paused(outage, due) => {
                if self.ns_since_start(clock.now()) < due {
                    return Ok(false);
                }
                self.restart(place, outage, children, liveness, clock.now())?;
            }
            OutageStage::Starting(outage) => {
                if let Some(cause) = self.detect_exit_or_hang(place, children, liveness) {
                    // It may have handed over reports of a resumed session.
                    let case = &mut self.processes[place];
                    let is_planned = case.fault.take().is_some();
                    case.end = IncarnationEnd { is_planned, has_traded: false, ran: Duration::ZERO };
                    case.last_cause = cause;
                    case.epoch += 1;
                    case.killed_ticks = clock.now();
                    case.stage = OutageStage::Killed(outage);
                } else if case.threads.iter().all(|thread| self.state(*thread) == ThreadState::Running) {
                    self.revive(place, outage, clock.now());
                } else {
                    return Ok(false);
                }
            }
            OutageStage::Down => return Ok(false),
        }
        Ok(true)
    }

    fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.segments.threads[thread])
    }

    /// Returns why a process is to be given up, if it has exited or hangs; kills it if it hangs.
    fn detect_exit_or_hang(
        &self,
        place: usize,
        children: &mut impl ProcessControl,
        liveness: &Liveness,
    ) -> Option<String> {
        let case = &self.processes[place];
        let of_process = &self.segments.plan.processes[case.process].threads;
        let is_done = case.threads.iter().all(|thread| self.state(*thread) == ThreadState::Done);
        match children.exited_normally(case.process) {
            Some(true) if is_done => None,
            Some(_) => Some(children.exit_text(case.process)),
            None => {
                let mut threads = case.threads.iter();
                let suspicion = threads.find_map(|thread| liveness.fault(*thread, of_process))?;
                children.kill(case.process);
                Some(suspicion.to_string())
            }
        }
    }

    /// Decides whether a dead process is restarted, and after which pause.
    fn decide_restart(&mut self, place: usize, outage: usize, now: u64) {
        let plan = &self.segments.plan;
        let now_ns = self.ns_since_start(now);
        let case = &mut self.processes[place];
        if case.epoch == GIVEN_UP || !plan.should_restart_gateways(&plan.processes[case.process]) {
            case.stage = OutageStage::Down;
            return;
        }
        match case.policy.charge_death(case.end) {
            RestartDecision::RestartAfter(pause) => {
                let due = now_ns.saturating_add(pause.as_nanos() as u64);
                case.stage = OutageStage::Paused(outage, due);
            }
            RestartDecision::StayDown(restarts) => {
                case.stage = OutageStage::Down;
                if case.gateways.iter().any(|gateway| plan.can_resume_gateway(*gateway)) {
                    case.gateways.iter().for_each(|gateway| self.segments.reset_gateway(*gateway));
                    (case.epoch, case.killed_ticks) = (GIVEN_UP, now);
                    case.stage = OutageStage::Killed(outage);
                }
                let why = format!("none of them made progress; the last: {}", case.last_cause);
                let name = &plan.processes[case.process].name;
                self.notes.push(format!("note: {name} stayed down after {restarts} restarts: {why}"));
                self.list[outage].stayed_down = Some(StayedDown { restarts, why });
            }
        }
    }

    /// Restarts a process after resetting its own memory.
    fn restart(
        &mut self,
        place: usize,
        outage: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        let case = &mut self.processes[place];
        case.gateways.iter().for_each(|gateway| self.segments.reset_gateway(*gateway));
        for thread in &case.threads {
            self.segments.reset_thread(*thread);
            liveness.reset_thread(*thread, now);
        }
        case.stage = OutageStage::Starting(outage);
        let Err(error) = children.restart(self.segments, case.process) else { return Ok(()) };
        // No process runs: the last one has exited.
        case.end = IncarnationEnd::default();
        case.last_cause = format!("cannot be started: {error:#}");
        self.decide_restart(place, outage, now);
        Ok(())
    }

    /// Records that the next incarnation runs duty cycles: the engine sends it orders again.
    fn revive(&mut self, place: usize, outage: usize, now: u64) {
        let now_ns = self.ns_since_start(now);
        let case = &mut self.processes[place];
        case.epoch += 1;
        (case.stage, case.running_ns) = (OutageStage::Running, now_ns);
        for gateway in &case.gateways {
            self.segments.control.revive_gateway(*gateway, case.epoch);
        }
        if let Some(bell) = &self.engine_bell {
            bell.ring();
        }
        self.list[outage].restarted_ns = Some(now_ns);
    }

    /// Records an outage. Returns its index in the list.
    fn record_outage(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let plan = &self.segments.plan;
        let detected_ns = self.ns_since_start(detected);
        let has_traded = self.has_traded(place);
        let case = &mut self.processes[place];
        case.killed_ticks = detected;
        let fault = case.fault.take();
        let ran = Duration::from_nanos(detected_ns.saturating_sub(case.running_ns));
        case.end = IncarnationEnd { is_planned: fault.is_some(), has_traded, ran };
        case.last_cause.clone_from(&cause);
        let (process, gateways) = (plan.processes[case.process].name.clone(), case.gateways.clone());
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
        self.notes.push(format!("note: {}: orders for it are rejected", outage.describe(plan)));
        self.list.push(outage);
        self.list.len() - 1
    }

    /// Returns `true` if this incarnation of some gateway of a process has taken an order or handed
    /// over a report.
    fn has_traded(&self, place: usize) -> bool {
        let plan = &self.segments.plan;
        let case = &self.processes[place];
        (0..).zip(&case.gateways).any(|(index, gateway): (usize, _)| {
            let role = Role::Gateway(*gateway);
            let Some(thread) = plan.thread_of(role) else { return false };
            let roles = &plan.threads[thread].roles;
            let counters = status::counters_of(&self.segments.threads[thread], roles, role);
            // A successor continues the counters.
            let before = case.counts.get(index).copied().unwrap_or_default();
            counters.get(GatewayCounter::Received) > before.orders
                || counters.get(GatewayCounter::Completed) > before.reports
        })
    }

    /// Fences a process whose death is proven: the engine then takes what its gateways have left.
    fn fence(&mut self, place: usize, outage: usize, death: &ProofOfDeath, now: u64) {
        let case = &mut self.processes[place];
        case.stage = OutageStage::Fenced(outage);
        for gateway in &case.gateways {
            self.segments.control.fence_gateway(*gateway, case.epoch, death);
        }
        if let Some(bell) = &self.engine_bell {
            bell.ring();
        }
        if self.list[outage].repaired_ns.is_none() {
            self.list[outage].fenced_ns = self.ns_since_start(now);
        }
    }
}
