//! Exchanges and engines that die or hang and come back from their journals while the run goes on.
//!
//! ```text
//! living ── hangs ──▶ killed ─┐ ◀──────── killed by a signal ─────────┐
//!    │                        ├─ the kernel says so ─▶ starting ────────┴─ in its duty cycles ─▶ living
//!    └── killed by a signal ──┘      one that hangs there is killed, too
//! ```
//! Nobody else has to know: the rings to its peers live on, and its successor finds there what it
//! needs. One that says why it ends is not started again, it would say so again; nor is one that is
//! killed before it is back, again and again (`TRIES` times).

use crate::runtime::incidents::Children;
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::RoleRestart;
use anyhow::{Context as _, Result};
use protocol::labels::{ExchangeCounter, OrchestratorCounter};
use protocol::plan::{Plan, Role};
use protocol::status::{self, ThreadState};
use system::clock::Clock;

/// So many times in a row an exchange is started that is killed before it is back: recovery itself
/// may be what kills it.
const TRIES: u32 = 16;

/// Where an exchange is; the place is that of its comeback in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Living,
    Killed(usize),
    Starting(usize),
    /// It does not come back; the run ends.
    Gone,
}

struct Case {
    /// The role that it comes back for: a venue's exchange, or the engine's orchestrator.
    role: Role,
    /// The places of its process and of that one's threads in the plan.
    process: usize,
    threads: Vec<usize>,
    stage: Stage,
    /// Starts since it was last alive.
    tries: u32,
    /// When a fault was last done to it, in ticks.
    fault: Option<u64>,
}

/// The processes of a run that come back.
pub struct Comebacks<'a> {
    segments: &'a Segments,
    cases: Vec<Case>,
    list: Vec<RoleRestart>,
    start_ticks: u64,
}

impl<'a> Comebacks<'a> {
    /// Whether anybody comes back in such a run.
    pub fn contains(plan: &Plan) -> bool {
        plan.exchanges_are_restartable()
    }

    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |role| {
            let process = plan.process_of(role)?;
            let threads = plan.processes[process].threads.iter().map(|thread| *thread as usize).collect();
            Some(Case { role, process, threads, stage: Stage::Living, tries: 0, fault: None })
        };
        let engine = Some(Role::Orchestrator).filter(|_| plan.engine_is_restartable());
        let cases =
            engine.into_iter().chain(plan.trading().books().map(Role::Exchange)).filter_map(case).collect();
        Self { segments, cases, list: Vec::new(), start_ticks }
    }

    /// Whether a death of that process is dealt with here.
    pub fn owns(&self, process: usize) -> bool {
        self.cases.iter().any(|case| case.process == process && case.stage != Stage::Gone)
    }

    /// Whether one is on its way back, or a fault was done to it that has not been noticed.
    pub fn is_busy(&self) -> bool {
        let is_away = |case: &Case| match case.stage {
            Stage::Killed(_) | Stage::Starting(_) => true,
            Stage::Living => case.fault.is_some() && !self.are_all(case, |state| state == ThreadState::Done),
            Stage::Gone => false,
        };
        self.cases.iter().any(is_away)
    }

    /// Whether a process is about to end or on its way back. Each has a bound of its own.
    pub fn waits_for_a_process(&self) -> bool {
        self.cases.iter().any(|case| matches!(case.stage, Stage::Killed(_) | Stage::Starting(_)))
    }

    /// Counts deaths and returns.
    pub fn steps(&self) -> u64 {
        let returned = self.list.iter().filter(|one| one.recovered_ns.is_some()).count();
        (self.list.len() + returned) as u64
    }

    /// Whether that process is one that has said everything: how it dies then does not matter.
    pub fn is_done(&self, process: usize) -> bool {
        let of = |case: &&Case| case.process == process && case.stage == Stage::Living;
        self.cases.iter().find(of).is_some_and(|case| self.are_all(case, |state| state == ThreadState::Done))
    }

    fn are_all(&self, case: &Case, is_so: impl Fn(ThreadState) -> bool) -> bool {
        case.threads.iter().all(|thread| is_so(status::state(&self.segments.threads[*thread])))
    }

    /// A fault was done to one of them on purpose.
    pub fn fault(&mut self, role: Role, ticks: u64) {
        if let Some(case) = self.cases.iter_mut().find(|case| case.role == role) {
            case.fault = Some(ticks);
        }
    }

    pub fn into_list(self) -> Vec<RoleRestart> {
        self.list
    }

    /// What one that has come back found in its journal, and how much of that it carried out again.
    fn records(&self, role: Role) -> (u64, u64) {
        let plan = &self.segments.plan;
        let Some(thread) = plan.thread_of(role) else { return (0, 0) };
        let counters = status::counters_of(&self.segments.threads[thread], &plan.threads[thread].roles, role);
        match role {
            Role::Orchestrator => {
                (counters.get(OrchestratorCounter::Recovered), counters.get(OrchestratorCounter::Replayed))
            }
            _ => (counters.get(ExchangeCounter::Recovered), counters.get(ExchangeCounter::Replayed)),
        }
    }

    /// Takes each as far as it can go now.
    pub fn look(
        &mut self,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        (0..self.cases.len()).try_for_each(|place| self.step(place, children, liveness, clock))
    }

    fn step(
        &mut self,
        place: usize,
        children: &mut impl Children,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        let plan = &self.segments.plan;
        let case = &self.cases[place];
        let Case { role, process, stage, tries, .. } = *case;
        let is_done = self.are_all(case, |state| state == ThreadState::Done);
        let is_failed = !self.are_all(case, |state| state != ThreadState::Failed);
        let (ended, was_killed) = (children.ended(process), children.was_killed(process));
        let shares = &plan.processes[process].threads;
        let suspicion = case.threads.iter().find_map(|thread| liveness.suspicion(*thread, shares));
        let next = match stage {
            // It had said everything.
            Stage::Living if was_killed && is_done => stage,
            Stage::Living if was_killed => {
                let how = children.how(process);
                let incident = self.begin(place, children.pid(process), how, clock.now());
                self.cases[place].stage = Stage::Killed(incident);
                return self.step(place, children, liveness, clock);
            }
            // It has said why: that is the supervisor's matter.
            Stage::Living if is_failed || ended == Some(false) => Stage::Gone,
            Stage::Living if is_done || ended.is_some() => stage,
            Stage::Living => match suspicion {
                Some(suspicion) => {
                    let incident =
                        self.begin(place, children.pid(process), suspicion.to_string(), clock.now());
                    children.kill(process);
                    Stage::Killed(incident)
                }
                None => {
                    children.keep_spare(self.segments, process);
                    stage
                }
            },
            Stage::Killed(incident) => {
                // The kernel's word: nobody writes its memory any more.
                let death = children.death(process).context("cannot watch a process")?;
                if ended.is_none() || death.is_none() {
                    return Ok(());
                }
                for thread in &case.threads {
                    self.segments.renew_thread(*thread);
                    liveness.restarted(*thread, clock.now());
                }
                children
                    .restart(self.segments, process)
                    .with_context(|| format!("cannot start {} again", plan.processes[process].name))?;
                self.cases[place].tries += 1;
                Stage::Starting(incident)
            }
            Stage::Starting(incident) if suspicion.is_some() && ended.is_none() => {
                // Nobody else has an eye on it.
                children.kill(process);
                Stage::Killed(incident)
            }
            Stage::Starting(incident) if was_killed && !is_failed && tries < TRIES => Stage::Killed(incident),
            Stage::Starting(_) if ended.is_some() || is_failed => Stage::Gone,
            Stage::Starting(incident) if self.are_all(case, |state| state >= ThreadState::Running) => {
                let (records, again) = self.records(role);
                let recovered_ns = Some(self.ns(clock.now()));
                self.list[incident] =
                    RoleRestart { recovered_ns, records, replayed: again, ..self.list[incident].clone() };
                // A fault that was done to it while it came back has had its effect.
                (self.cases[place].tries, self.cases[place].fault) = (0, None);
                Stage::Living
            }
            Stage::Starting(_) | Stage::Gone => stage,
        };
        self.cases[place].stage = next;
        Ok(())
    }

    fn ns(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Notes a death; its place in the list.
    fn begin(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let fault_ns = self.cases[place].fault.take().map(|ticks| self.ns(ticks));
        self.list.push(RoleRestart {
            role: self.cases[place].role,
            pid,
            cause,
            fault_ns,
            detected_ns: self.ns(detected),
            recovered_ns: None,
            records: 0,
            replayed: 0,
        });
        self.list.len() - 1
    }
}
