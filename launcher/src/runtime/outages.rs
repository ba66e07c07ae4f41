//! Processes of gateways that die or hang while the run goes on: fence, and wait until the engine has closed what was open there.
//!
//! ```text
//! living ── hangs ──▶ killed ─┐
//!    │                        ├─ the kernel says so ─▶ fenced ── the engine says so ─▶ down
//!    └── has ended ───────────┘
//! ```
//!
//! A venue whose gateway is dead is down until the run ends. The engine rejects orders for it (`venue-down`), and has closed those that
//! were open there (`venue-unknown`). Nobody else waits for it.

use crate::runtime::incidents::Children;
use crate::runtime::liveness::Liveness;
use crate::runtime::setup::Segments;
use analysis::record::Outage;
use anyhow::{Context as _, Result, bail};
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::status::{self, ThreadState};
use protocol::supervision::{Death, Repairs};
use shm::bell::Bell;
use shm::clock::Clock;
use std::time::Duration;

/// How long the kernel may take to end a process that was killed. Nothing is certain of one that does not end.
const DYING: Duration = Duration::from_secs(30);

/// Where a process of gateways is; the index is that of its outage in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutageStage {
    Living,
    /// It was sent SIGKILL, or has ended; its death is not certain yet.
    Killed(usize),
    /// It is dead for certain, and the engine takes its last reports.
    Fenced(usize),
    /// Its venues are down until the run ends.
    Down,
}

struct Case {
    /// Its index among the plan's processes, and those of its threads.
    process: usize,
    threads: Vec<usize>,
    gateways: Vec<u16>,
    stage: OutageStage,
    /// When a fault was last done to it, in ticks.
    fault: Option<u64>,
    /// When its death was noticed, in ticks.
    killed_ticks: u64,
}

/// The processes of gateways whose deaths a run outlives.
pub struct Outages<'a> {
    segments: &'a Segments,
    repairs: Repairs,
    bell: Option<Bell>,
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
            fault: None,
            killed_ticks: 0,
        };
        let outlived = plan.processes.iter().enumerate().filter(|(_, process)| plan.outlives(process));
        Self {
            segments,
            repairs: Repairs::new(segments.repairs.clone().expect("created before").into()),
            bell: segments.engine_bell.as_ref().map(Bell::from_outside),
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

    /// Returns `true` if a death or its repair is on its way, or a fault has not shown yet.
    pub fn is_busy(&self) -> bool {
        self.cases.iter().any(|case| match case.stage {
            OutageStage::Killed(_) | OutageStage::Fenced(_) => true,
            OutageStage::Living => case.fault.is_some(),
            OutageStage::Down => false,
        })
    }

    /// Returns `true` if the kernel is about to end a process.
    pub fn waits_for_a_process(&self) -> bool {
        self.cases.iter().any(|case| matches!(case.stage, OutageStage::Killed(_)))
    }

    /// Returns the number of steps taken so far.
    pub const fn steps(&self) -> u64 {
        self.steps
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
        liveness: &Liveness,
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
        liveness: &Liveness,
        clock: &impl Clock,
    ) -> Result<bool> {
        let case = &self.cases[place];
        let process = case.process;
        match case.stage {
            OutageStage::Living => {
                let of_process = &self.segments.plan.processes[process].threads;
                let state = |thread: &usize| status::state(&self.segments.threads[*thread]);
                let is_done = case.threads.iter().all(|thread| state(thread) == ThreadState::Done);
                let cause = match children.ended(process) {
                    Some(true) if is_done => return Ok(false),
                    Some(_) => children.how(process),
                    None => {
                        let mut threads = case.threads.iter();
                        let found = threads.find_map(|thread| liveness.suspicion(*thread, of_process));
                        let Some(suspicion) = found else { return Ok(false) };
                        children.kill(process);
                        suspicion.to_string()
                    }
                };
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
                if repairs.iter().any(|repair| repair.repaired.is_none()) {
                    return Ok(false);
                }
                let repaired = repairs.iter().map(|repair| repair.repaired_ticks).max().unwrap_or(0);
                let unknown = repairs.iter().map(|repair| repair.unknown).sum();
                self.segments.control.ended(process);
                self.list[outage].repaired_ns = Some(self.ns(repaired));
                self.list[outage].unknown = unknown;
                self.cases[place].stage = OutageStage::Down;
            }
            OutageStage::Down => return Ok(false),
        }
        Ok(true)
    }

    /// Notes an outage. Returns its index in the list.
    fn begin(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let plan = &self.segments.plan;
        let case = &mut self.cases[place];
        case.killed_ticks = detected;
        let fault = case.fault.take();
        let (process, gateways) = (plan.processes[case.process].name.clone(), case.gateways.clone());
        let outage = Outage {
            process,
            gateways,
            pid,
            cause,
            fault_ns: fault.map(|ticks| self.ns(ticks)),
            detected_ns: self.ns(detected),
            fenced_ns: 0,
            repaired_ns: None,
            unknown: 0,
        };
        self.notes.push(format!("note: {}", outage.in_words(plan)));
        self.list.push(outage);
        self.list.len() - 1
    }

    /// The death of the process is certain: the engine is to take what its gateways have left.
    fn fence(&mut self, place: usize, outage: usize, death: &Death, now: u64) {
        let case = &mut self.cases[place];
        case.stage = OutageStage::Fenced(outage);
        for gateway in &case.gateways {
            self.segments.control.fence_gateway(*gateway, 0, death);
        }
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self.list[outage].fenced_ns = self.ns(now);
    }
}
