//! Engine and exchanges that die or hang: they recover from their journals while the run continues.
//!
//! ```text
//! running ─ hangs ──▶ killed ─┐ ◀────── killed by a signal ──────┐
//!    │                        ├─ proof of death ─▶ starting ─────┴─ first duty cycle ─▶ running
//!    └── killed by a signal ──┘     one that hangs there is killed, too
//! ```
//! The other processes are not involved: the rings stay, and the successor continues from them. A
//! process that reports an error before it exits is not restarted, since it would fail again; nor
//! is one that is killed `MAX_ATTEMPTS` times in a row before it has recovered.

use super::supervised::{SupervisedRoles, SupervisionStage};
use super::{Containment, ProcessControl};
use crate::runtime::stuck::Liveness;
use analysis::record::RoleRestart;
use anyhow::{Context as _, Result};
use protocol::labels::{ExchangeCounter, OrchestratorCounter};
use protocol::plan::Role;
use protocol::status::{self, ThreadState};
use system::clock::Clock;

/// Maximum restarts in a row of a role that is killed before it has recovered: recovery itself may
/// be what kills it.
const MAX_ATTEMPTS: u32 = 16;

impl Containment<'_> {
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

    /// Advances the restart of a dead role as far as possible now.
    pub(super) fn step_journaled(
        &mut self,
        place: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        clock: &impl Clock,
    ) -> Result<()> {
        let plan = &self.segments.plan;
        let case = &self.processes[place];
        let SupervisedRoles::Journaled(role) = case.roles else { return Ok(()) };
        let (process, stage, attempts) = (case.process, case.stage, case.attempts);
        let is_done = self.is_done(case);
        let is_failed = !self.all_threads_are(case, |state| state != ThreadState::Failed);
        let (ended, was_killed) = (children.exited_normally(process), children.was_killed(process));
        let shares = &plan.processes[process].threads;
        let suspicion = case.threads.iter().find_map(|thread| liveness.fault(*thread, shares));
        let next = match stage {
            // It had reported that it was done.
            SupervisionStage::Running if was_killed && is_done => stage,
            SupervisionStage::Running if was_killed => {
                let how = children.exit_text(process);
                let death = self.record_death(place, role, children.pid(process), how, clock.now());
                self.processes[place].stage = SupervisionStage::Killed(death);
                return self.step_journaled(place, children, liveness, clock);
            }
            // It has reported an error: the supervisor handles that.
            SupervisionStage::Running if is_failed || ended == Some(false) => SupervisionStage::Down,
            SupervisionStage::Running if is_done || ended.is_some() => stage,
            SupervisionStage::Running => match suspicion {
                Some(suspicion) => {
                    let (pid, why) = (children.pid(process), suspicion.to_string());
                    let death = self.record_death(place, role, pid, why, clock.now());
                    children.kill(process);
                    SupervisionStage::Killed(death)
                }
                None => {
                    children.keep_standby(self.segments, process);
                    stage
                }
            },
            SupervisionStage::Killed(death) => {
                // Confirmed by the kernel: nothing writes its memory any more.
                let proof = children.proof_of_death(process).context("cannot watch a process")?;
                if ended.is_none() || proof.is_none() {
                    return Ok(());
                }
                for thread in &case.threads {
                    self.segments.reset_thread(*thread);
                    liveness.reset_thread(*thread, clock.now());
                }
                children
                    .restart(self.segments, process)
                    .with_context(|| format!("cannot start {} again", plan.processes[process].name))?;
                self.processes[place].attempts += 1;
                SupervisionStage::Starting(death)
            }
            SupervisionStage::Starting(death) if suspicion.is_some() && ended.is_none() => {
                // No other check covers it.
                children.kill(process);
                SupervisionStage::Killed(death)
            }
            SupervisionStage::Starting(death) if was_killed && !is_failed && attempts < MAX_ATTEMPTS => {
                SupervisionStage::Killed(death)
            }
            SupervisionStage::Starting(_) if ended.is_some() || is_failed => SupervisionStage::Down,
            SupervisionStage::Starting(death)
                if self.all_threads_are(case, |state| state >= ThreadState::Running) =>
            {
                let (records, replayed) = self.recovery_counts(role);
                let recovered_ns = Some(self.ns_since_start(clock.now()));
                let restart = &mut self.restarts[death];
                (restart.recovered_ns, restart.records, restart.replayed) = (recovered_ns, records, replayed);
                // A fault injected during recovery has had its effect.
                (self.processes[place].attempts, self.processes[place].fault) = (0, None);
                self.steps += 1;
                SupervisionStage::Running
            }
            _ => stage,
        };
        self.processes[place].stage = next;
        Ok(())
    }

    /// Records a death. Returns its index in the list.
    fn record_death(&mut self, place: usize, role: Role, pid: u32, cause: String, detected: u64) -> usize {
        let fault_ns = self.processes[place].fault.take().map(|ticks| self.ns_since_start(ticks));
        self.steps += 1;
        self.restarts.push(RoleRestart {
            role,
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
