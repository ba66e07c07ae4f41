//! Restarts exchanges and the engine that die or hang; they recover from their journals while the
//! run continues.
//!
//! ```text
//! running ─ hangs ──▶ killed ─┐ ◀────── killed by a signal ──────┐
//!    │                        ├─ proof of death ─▶ starting ─────┴─ first duty cycle ─▶ running
//!    └── killed by a signal ──┘     one that hangs there is killed, too
//! ```
//! The other processes are not involved: the rings stay, and the successor continues from them. A
//! process that reports an error before it exits is not restarted, since it would fail again; nor
//! is one that is killed `MAX_ATTEMPTS` times in a row before it has recovered.

use crate::runtime::incidents::ProcessControl;
use crate::runtime::setup::Segments;
use crate::runtime::stuck::Liveness;
use analysis::record::RoleRestart;
use anyhow::{Context as _, Result};
use protocol::labels::{ExchangeCounter, OrchestratorCounter};
use protocol::plan::{Plan, Role};
use protocol::status::{self, ThreadState};
use system::clock::Clock;

/// Maximum restarts in a row of a role that is killed before it has recovered: recovery itself may
/// be what kills it.
const MAX_ATTEMPTS: u32 = 16;

/// State of a role; the index refers to its entry in the list of restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestartStage {
    Running,
    Killed(usize),
    Starting(usize),
    /// The role is not restarted; the run ends.
    Failed,
}

struct SupervisedRole {
    /// The restarted role: a venue's exchange, or the engine's orchestrator.
    role: Role,
    /// Indices of its process and of that process's threads in the plan.
    process: usize,
    threads: Vec<usize>,
    stage: RestartStage,
    /// Restarts since it last ran.
    attempts: u32,
    /// When a fault was last injected, in ticks.
    fault: Option<u64>,
}

/// The exchanges and the engine of a run, which are restarted from their journals.
pub struct RoleRestarts<'a> {
    segments: &'a Segments,
    roles: Vec<SupervisedRole>,
    restarts: Vec<RoleRestart>,
    start_ticks: u64,
}

impl<'a> RoleRestarts<'a> {
    /// Returns `true` if the plan has exchanges or an engine that are restarted from their
    /// journals.
    pub fn is_enabled(plan: &Plan) -> bool {
        plan.exchanges_are_restartable()
    }

    pub fn new(segments: &'a Segments, start_ticks: u64) -> Self {
        let plan = &segments.plan;
        let case = |role| {
            let process = plan.process_of(role)?;
            let threads = plan.processes[process].threads.iter().map(|thread| *thread as usize).collect();
            Some(SupervisedRole {
                role,
                process,
                threads,
                stage: RestartStage::Running,
                attempts: 0,
                fault: None,
            })
        };
        let engine = Some(Role::Orchestrator).filter(|_| plan.engine_is_restartable());
        let cases =
            engine.into_iter().chain(plan.trading().books().map(Role::Exchange)).filter_map(case).collect();
        Self { segments, roles: cases, restarts: Vec::new(), start_ticks }
    }

    /// Returns `true` if the death of a process is handled by a restart from its journal.
    pub fn supervises(&self, process: usize) -> bool {
        self.roles.iter().any(|case| case.process == process && case.stage != RestartStage::Failed)
    }

    /// Returns `true` while an engine or exchange is restarting, or an injected fault has not been
    /// detected yet.
    pub fn is_busy(&self) -> bool {
        let is_away = |case: &SupervisedRole| match case.stage {
            RestartStage::Killed(_) | RestartStage::Starting(_) => true,
            RestartStage::Running => {
                case.fault.is_some() && !self.all_threads_are(case, |state| state == ThreadState::Done)
            }
            RestartStage::Failed => false,
        };
        self.roles.iter().any(is_away)
    }

    /// Returns `true` while a process is about to exit or is restarting. Each of these waits has
    /// its own timeout.
    pub fn has_pending_process(&self) -> bool {
        self.roles
            .iter()
            .any(|case| matches!(case.stage, RestartStage::Killed(_) | RestartStage::Starting(_)))
    }

    /// Returns the number of deaths and recoveries of engine and exchanges so far.
    pub fn steps(&self) -> u64 {
        let returned = self.restarts.iter().filter(|one| one.recovered_ns.is_some()).count();
        (self.restarts.len() + returned) as u64
    }

    /// Returns `true` if a process has reported that it is done, so that its exit cannot fail the
    /// run.
    pub fn is_done(&self, process: usize) -> bool {
        let of = |case: &&SupervisedRole| case.process == process && case.stage == RestartStage::Running;
        self.roles
            .iter()
            .find(of)
            .is_some_and(|case| self.all_threads_are(case, |state| state == ThreadState::Done))
    }

    fn all_threads_are(&self, case: &SupervisedRole, is_so: impl Fn(ThreadState) -> bool) -> bool {
        case.threads.iter().all(|thread| is_so(status::state(&self.segments.threads[*thread])))
    }

    /// Records that a fault was injected into the engine or an exchange.
    pub fn record_fault(&mut self, role: Role, ticks: u64) {
        if let Some(case) = self.roles.iter_mut().find(|case| case.role == role) {
            case.fault = Some(ticks);
        }
    }

    pub fn into_list(self) -> Vec<RoleRestart> {
        self.restarts
    }

    /// Returns how many journal records a restarted role found, and how many of them it replayed.
    fn recovery_counts(&self, role: Role) -> (u64, u64) {
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

    /// Advances the restart of engine and exchanges as far as possible without waiting.
    pub fn poll(
        &mut self,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        (0..self.roles.len()).try_for_each(|place| self.step(place, children, liveness, clock))
    }

    fn step(
        &mut self,
        place: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        let plan = &self.segments.plan;
        let case = &self.roles[place];
        let SupervisedRole { role, process, stage, attempts: tries, .. } = *case;
        let is_done = self.all_threads_are(case, |state| state == ThreadState::Done);
        let is_failed = !self.all_threads_are(case, |state| state != ThreadState::Failed);
        let (ended, was_killed) = (children.exited_normally(process), children.was_killed(process));
        let shares = &plan.processes[process].threads;
        let suspicion = case.threads.iter().find_map(|thread| liveness.fault(*thread, shares));
        let next = match stage {
            // It had reported that it was done.
            RestartStage::Running if was_killed && is_done => stage,
            RestartStage::Running if was_killed => {
                let how = children.exit_text(process);
                let incident = self.record_death(place, children.pid(process), how, clock.now());
                self.roles[place].stage = RestartStage::Killed(incident);
                return self.step(place, children, liveness, clock);
            }
            // It has reported an error: the supervisor handles that.
            RestartStage::Running if is_failed || ended == Some(false) => RestartStage::Failed,
            RestartStage::Running if is_done || ended.is_some() => stage,
            RestartStage::Running => match suspicion {
                Some(suspicion) => {
                    let incident =
                        self.record_death(place, children.pid(process), suspicion.to_string(), clock.now());
                    children.kill(process);
                    RestartStage::Killed(incident)
                }
                None => {
                    children.keep_standby(self.segments, process);
                    stage
                }
            },
            RestartStage::Killed(incident) => {
                // Confirmed by the kernel: nothing writes its memory any more.
                let death = children.proof_of_death(process).context("cannot watch a process")?;
                if ended.is_none() || death.is_none() {
                    return Ok(());
                }
                for thread in &case.threads {
                    self.segments.reset_thread(*thread);
                    liveness.reset_thread(*thread, clock.now());
                }
                children
                    .restart(self.segments, process)
                    .with_context(|| format!("cannot start {} again", plan.processes[process].name))?;
                self.roles[place].attempts += 1;
                RestartStage::Starting(incident)
            }
            RestartStage::Starting(incident) if suspicion.is_some() && ended.is_none() => {
                // No other check covers it.
                children.kill(process);
                RestartStage::Killed(incident)
            }
            RestartStage::Starting(incident) if was_killed && !is_failed && tries < MAX_ATTEMPTS => {
                RestartStage::Killed(incident)
            }
            RestartStage::Starting(_) if ended.is_some() || is_failed => RestartStage::Failed,
            RestartStage::Starting(incident)
                if self.all_threads_are(case, |state| state >= ThreadState::Running) =>
            {
                let (records, again) = self.recovery_counts(role);
                let recovered_ns = Some(self.ns_since_start(clock.now()));
                self.restarts[incident] =
                    RoleRestart { recovered_ns, records, replayed: again, ..self.restarts[incident].clone() };
                // A fault injected during recovery has had its effect.
                (self.roles[place].attempts, self.roles[place].fault) = (0, None);
                RestartStage::Running
            }
            RestartStage::Starting(_) | RestartStage::Failed => stage,
        };
        self.roles[place].stage = next;
        Ok(())
    }

    fn ns_since_start(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.start_ticks) as f64 * self.segments.plan.ns_per_tick) as u64
    }

    /// Records a death. Returns its index in the list.
    fn record_death(&mut self, place: usize, pid: u32, cause: String, detected: u64) -> usize {
        let fault_ns = self.roles[place].fault.take().map(|ticks| self.ns_since_start(ticks));
        self.restarts.push(RoleRestart {
            role: self.roles[place].role,
            pid,
            cause,
            fault_ns,
            detected_ns: self.ns_since_start(detected),
            recovered_ns: None,
            records: 0,
            replayed: 0,
        });
        self.restarts.len() - 1
    }
}
