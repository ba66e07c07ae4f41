//! Processes of gateways that die or hang while the run goes on: fence, wait until the engine has
//! closed what was open there, start again.
//!
//! ```text
//! living ── hangs ──▶ killed ─┐
//!    │                        ├─ the kernel says so ─▶ fenced ── the engine says so ─┬─▶ down
//!    └── has ended ───────────┘                                                      └─▶ (pause) ─▶ starting ─▶ living
//!                          ▲                                                                           │ dies or hangs
//!                          └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! While its gateway is dead a venue is down. The engine rejects orders for it (`venue-down`), and
//! has closed those that were open there (`venue-unknown`). Nobody else waits for it. The next
//! incarnation gets its own memory anew, and orders once it is in its duty cycles.
//!
//! A gateway whose successor resumes its session with an exchange closes nothing, and its inbox
//! stays. What is open there is closed once the gateway is not started again: then one more
//! incarnation is fenced, [`GIVEN_UP`], which never was.

use crate::runtime::incidents::Children;
use crate::runtime::restarts::{IncarnationEnd, RestartDecision, RestartPolicy};
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::{Outage, StayedDown};
use anyhow::{Context as _, Result, bail};
use protocol::labels::GatewayCounter;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::status::{self, ThreadState};
use protocol::supervision::{GIVEN_UP, GatewayCounts, ProofOfDeath, Repairs};
use shm::bell::Doorbell;
use std::time::Duration;
use system::clock::Clock;

/// How long the kernel may take to end a process that was killed. Nothing is certain of one that
/// does not end.
const DYING: Duration = Duration::from_secs(30);

/// Where a process of gateways is; the index is that of its outage in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageStage {
    Living,
    /// It was sent SIGKILL, or has ended; its death is not certain yet.
    Killed(usize),
    /// It is dead for certain, and the engine takes its last reports.
    Fenced(usize),
    /// It is started again at that time, in nanoseconds since the start of the run.
    Paused(usize, u64),
    /// It was started again and is not in its duty cycles yet.
    Starting(usize),
    /// Its venues are down until the run ends.
    Down,
}

struct Case {
    /// Its index among the plan's processes, and those of its threads.
    process: usize,
    threads: Vec<usize>,
    gateways: Vec<u16>,
    stage: OutageStage,
    /// The incarnation that lives, or died last.
    epoch: u16,
    /// Since when it is in its duty cycles, in nanoseconds since the start of the run.
    running_ns: u64,
    policy: RestartPolicy,
    /// When a fault was last done to it, in ticks.
    fault: Option<u64>,
    /// When its death was noticed, in ticks.
    killed_ticks: u64,
    /// How the last incarnation ended, and why.
    end: IncarnationEnd,
    last_cause: String,
    /// What the engine had counted of each gateway at the last death.
    counts: Vec<GatewayCounts>,
}

/// The processes of gateways whose deaths a run outlives.
pub struct Outages<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    bell: Option<Doorbell>,
    cases: Vec<Case>,
    list: Vec<Outage>,
    start_ticks: u64,
    steps: u64,
    /// What is to be said of venues that have just gone down.
    notes: Vec<String>,
}

impl<'a> Outages<'a> {
    /// All of them alive.
    ///
    /// # Panics
    /// If the segments are not created yet.
    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |(index, process): (usize, &ProcessPlan)| Case {
            process: index,
            threads: process.threads.iter().map(|thread| *thread as usize).collect(),
            gateways: plan.roles_of(process).map(Role::index).collect(),
            stage: OutageStage::Living,
            epoch: 0,
            running_ns: 0,
            policy: RestartPolicy::default(),
            fault: None,
            killed_ticks: 0,
            end: IncarnationEnd::default(),
            last_cause: String::new(),
            counts: Vec::new(),
        };
        let outlived = plan.processes.iter().enumerate().filter(|(_, process)| plan.outlives(process));
        Self {
            segments,
            repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
            bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
            cases: outlived.map(case).collect(),
            list: Vec::new(),
            start_ticks,
            steps: 0,
            notes: Vec::new(),
        }
    }

    /// Returns `true` if a run outlives the death of some process of gateways.
    pub fn contains(plan: &Plan) -> bool {
        plan.gateways_may_die()
    }

    /// Returns `true` if the death of that process is dealt with here.
    pub fn owns(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process)
    }

    /// Returns `true` if that process ended, or will, because of an outage.
    pub fn excuses(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process && case.stage != OutageStage::Living)
    }

    /// Records that a fault was done to the process of a gateway on purpose.
    pub fn fault(&mut self, gateway: u16, ticks: u64) {
        if let Some(case) = self.cases.iter_mut().find(|case| case.gateways.contains(&gateway)) {
            case.fault = Some(ticks);
        }
    }

    /// Returns `true` if a death, its repair or a start is on its way, or a fault has not shown
    /// yet.
    pub fn is_busy(&self) -> bool {
        self.cases.iter().any(|case| match case.stage {
            OutageStage::Living => case.fault.is_some(),
            OutageStage::Down => false,
            _ => true,
        })
    }

    /// Returns `true` if the kernel is about to end a process, or a process is about to be started
    /// or to get ready. Each has a bound of its own.
    pub fn waits_for_a_process(&self) -> bool {
        use OutageStage::{Killed, Paused, Starting};
        self.cases.iter().any(|case| matches!(case.stage, Killed(_) | Paused(..) | Starting(_)))
    }

    /// Returns the number of steps taken so far.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns how many orders have come to a dead gateway for ever: nothing of it is left, and
    /// nobody goes on with its inbox. `None`: it lives, or has a successor that does.
    pub fn orders_of_dead(&self, gateway: u16) -> Option<u64> {
        use OutageStage::{Down, Paused, Starting};
        let case = self.cases.iter().find(|case| case.gateways.contains(&gateway))?;
        let is_resumed = case.epoch != GIVEN_UP && self.segments.plan.resumes_gateway(gateway);
        let is_over = matches!(case.stage, Down | Paused(..) | Starting(_)) && !is_resumed;
        let place = case.gateways.iter().position(|index| *index == gateway)?;
        case.counts.get(place).filter(|_| is_over).map(|counts| counts.orders)
    }

    /// Takes what is to be said of venues that have just gone down.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Returns what has happened.
    pub fn into_list(self) -> Vec<Outage> {
        self.list
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Takes each process as far as it can go now.
    ///
    /// # Errors
    /// What the system refused, or a process that does not end.
    pub fn look(
        &mut self,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        for place in 0..self.cases.len() {
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
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<bool> {
        let case = &self.cases[place];
        let process = case.process;
        match case.stage {
            OutageStage::Living => {
                let Some(cause) = self.trouble(place, children, liveness) else { return Ok(false) };
                let outage = self.begin(place, children.pid(process), cause, clock.now());
                self.cases[place].stage = OutageStage::Killed(outage);
            }
            OutageStage::Killed(outage) => {
                let death = match children.ended(process) {
                    Some(_) => children.death(process).context("cannot watch a process")?,
                    None => None,
                };
                let Some(death) = death else {
                    let since = case.killed_ticks.max(liveness.awake_since());
                    if self.ns(clock.now()).saturating_sub(self.ns(since)) > DYING.as_nanos() as u64 {
                        let name = &self.segments.plan.processes[process].name;
                        let pid = children.pid(process);
                        bail!(
                            "{name} (pid {pid}) was killed and has not ended for {DYING:?}: it may still write its memory"
                        );
                    }
                    return Ok(false);
                };
                self.fence(place, outage, &death, clock.now());
            }
            OutageStage::Fenced(outage) => {
                let repairs: Vec<_> =
                    case.gateways.iter().map(|gateway| self.repairs.of_gateway(*gateway)).collect();
                if repairs.iter().any(|repair| repair.repaired != Some(case.epoch)) {
                    return Ok(false);
                }
                let repaired = repairs.iter().map(|repair| repair.repaired_ticks).max().unwrap_or(0);
                let counts: Vec<_> = repairs.iter().map(|repair| repair.counts).collect();
                let unknown = |counts: &[GatewayCounts]| counts.iter().map(|of| of.unknown).sum::<u64>();
                self.segments.control.ended(process);
                let repaired = self.ns(repaired);
                self.list[outage].repaired_ns.get_or_insert(repaired);
                self.list[outage].unknown += unknown(&counts) - unknown(&self.cases[place].counts);
                self.cases[place].counts = counts;
                self.decide(place, outage, clock.now());
            }
            OutageStage::Paused(outage, due) => {
                if self.ns(clock.now()) < due {
                    return Ok(false);
                }
                self.restart(place, outage, children, liveness, clock.now())?;
            }
            OutageStage::Starting(outage) => {
                if let Some(cause) = self.trouble(place, children, liveness) {
                    // It may have handed over reports of a session that it resumed.
                    let case = &mut self.cases[place];
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

    /// Returns why a process is to be given up, if it has ended or hangs; one that hangs is killed.
    fn trouble(&self, place: usize, children: &mut impl Children, liveness: &Liveness) -> Option<String> {
        let case = &self.cases[place];
        let of_process = &self.segments.plan.processes[case.process].threads;
        let is_done = case.threads.iter().all(|thread| self.state(*thread) == ThreadState::Done);
        match children.ended(case.process) {
            Some(true) if is_done => None,
            Some(_) => Some(children.how(case.process)),
            None => {
                let mut threads = case.threads.iter();
                let suspicion = threads.find_map(|thread| liveness.suspicion(*thread, of_process))?;
                children.kill(case.process);
                Some(suspicion.to_string())
            }
        }
    }

    /// Decides whether a dead process is started again, and after which pause.
    fn decide(&mut self, place: usize, outage: usize, now: u64) {
        let plan = &self.segments.plan;
        let now_ns = self.ns(now);
        let case = &mut self.cases[place];
        if case.epoch == GIVEN_UP || !plan.restarts_gateways_of(&plan.processes[case.process]) {
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
                if case.gateways.iter().any(|gateway| plan.resumes_gateway(*gateway)) {
                    case.gateways.iter().for_each(|gateway| self.segments.renew_gateway(*gateway));
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

    /// Starts a process again, with its own memory made anew.
    fn restart(
        &mut self,
        place: usize,
        outage: usize,
        children: &mut impl Children,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        let case = &mut self.cases[place];
        case.gateways.iter().for_each(|gateway| self.segments.renew_gateway(*gateway));
        for thread in &case.threads {
            self.segments.renew_thread(*thread);
            liveness.restarted(*thread, now);
        }
        case.stage = OutageStage::Starting(outage);
        let Err(error) = children.restart(self.segments, case.process) else { return Ok(()) };
        // Nobody runs: the last process is known to have ended.
        case.end = IncarnationEnd::default();
        case.last_cause = format!("cannot be started: {error:#}");
        self.decide(place, outage, now);
        Ok(())
    }

    /// The next incarnation is in its duty cycles: the engine sends it orders.
    fn revive(&mut self, place: usize, outage: usize, now: u64) {
        let now_ns = self.ns(now);
        let case = &mut self.cases[place];
        case.epoch += 1;
        (case.stage, case.running_ns) = (OutageStage::Living, now_ns);
        for gateway in &case.gateways {
            self.segments.control.revive_gateway(*gateway, case.epoch);
        }
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self.list[outage].restarted_ns = Some(now_ns);
    }

    /// Notes an outage. Returns its index in the list.
    fn begin(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let plan = &self.segments.plan;
        let detected_ns = self.ns(detected);
        let has_traded = self.has_traded(place);
        let case = &mut self.cases[place];
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
            fault_ns: fault.map(|ticks| self.ns(ticks)),
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
        let case = &self.cases[place];
        (0..).zip(&case.gateways).any(|(index, gateway): (usize, _)| {
            let role = Role::Gateway(*gateway);
            let Some(thread) = plan.thread_of(role) else { return false };
            let roles = &plan.threads[thread].roles;
            let counters = status::counters_of(&self.segments.threads[thread], roles, role);
            // A successor counts on.
            let before = case.counts.get(index).copied().unwrap_or_default();
            counters.get(GatewayCounter::Received) > before.orders
                || counters.get(GatewayCounter::Completed) > before.reports
        })
    }

    /// The death of the process is certain: the engine is to take what its gateways have left.
    fn fence(&mut self, place: usize, outage: usize, death: &ProofOfDeath, now: u64) {
        let case = &mut self.cases[place];
        case.stage = OutageStage::Fenced(outage);
        for gateway in &case.gateways {
            self.segments.control.fence_gateway(*gateway, case.epoch, death);
        }
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        if self.list[outage].repaired_ns.is_none() {
            self.list[outage].fenced_ns = self.ns(now);
        }
    }
}
