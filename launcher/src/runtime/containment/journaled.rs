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

use super::supervised::SupervisionStage;
use super::{Containment, ProcessControl};
use crate::runtime::stuck::Liveness;
use analysis::record::RoleRestart;
use anyhow::{Context as _, Result};
use protocol::labels::{ExchangeCounter, OrchestratorCounter};
use protocol::plan::Role;
use protocol::status::ThreadState;

/// Maximum restarts in a row of a role that is killed during recovery, which may be the cause.
const MAX_ATTEMPTS: u32 = 16;

impl Containment<'_> {
    /// Kills an engine or exchange that hangs, and records its death and when a restarted one runs.
    /// Returns `true` if it was killed by a signal, so that its death can be handled now.
    pub(super) fn watch_journaled(
        &mut self,
        place: usize,
        role: Role,
        children: &mut impl ProcessControl,
        liveness: &Liveness,
        now: u64,
    ) -> bool {
        use SupervisionStage::{Down, Killed, Running, Starting};
        let case = &self.processes[place];
        let process = case.process;
        let is_done = self.is_done(case);
        let is_failed = !self.all_threads_are(case, |state| state != ThreadState::Failed);
        let (ended, was_killed) = (children.exited_normally(process), children.was_killed(process));
        let suspicion = self.liveness_fault(case, liveness).filter(|_| ended.is_none());
        let next = match case.stage {
            // It had reported that it was done.
            Running if was_killed && is_done => return false,
            Running if was_killed => {
                let how = children.exit_text(process);
                Killed(self.record_death(place, role, children.pid(process), how, now))
            }
            // It has reported an error: the supervisor handles that.
            Running if is_failed || ended == Some(false) => Down,
            Running if is_done || ended.is_some() => return false,
            Running => {
                let Some(suspicion) = suspicion else {
                    children.keep_standby(self.segments, process);
                    return false;
                };
                children.kill(process);
                Killed(self.record_death(place, role, children.pid(process), suspicion.to_string(), now))
            }
            Starting(death) if suspicion.is_some() => {
                // No other check covers it.
                children.kill(process);
                Killed(death)
            }
            Starting(death) if was_killed && !is_failed && case.attempts < MAX_ATTEMPTS => Killed(death),
            Starting(_) if ended.is_some() || is_failed => Down,
            Starting(death) if self.all_threads_are(case, |state| state >= ThreadState::Running) => {
                let (records, replayed) = match role {
                    Role::Orchestrator => (
                        self.count(role, OrchestratorCounter::Recovered),
                        self.count(role, OrchestratorCounter::Replayed),
                    ),
                    _ => (
                        self.count(role, ExchangeCounter::Recovered),
                        self.count(role, ExchangeCounter::Replayed),
                    ),
                };
                let recovered_ns = Some(self.ns_since_start(now));
                let restart = &mut self.restarts[death];
                (restart.recovered_ns, restart.records, restart.replayed) = (recovered_ns, records, replayed);
                // A fault injected during recovery has had its effect.
                (self.processes[place].attempts, self.processes[place].fault) = (0, None);
                self.steps += 1;
                Running
            }
            _ => return false,
        };
        let case = &mut self.processes[place];
        // A death is handled at once, anything else at the next poll.
        let has_died = case.stage == Running && was_killed;
        (case.stage, case.killed_ticks) = (next, now);
        has_died
    }

    /// Restarts an engine or exchange whose death is proven: nothing writes its memory any more.
    pub(super) fn restart_journaled(
        &mut self,
        place: usize,
        death: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        self.reset_threads(place, liveness, now);
        let case = &mut self.processes[place];
        let name = &self.segments.plan.processes[case.process].name;
        let restarted = children.restart(self.segments, case.process);
        restarted.with_context(|| format!("cannot start {name} again"))?;
        case.attempts += 1;
        case.stage = SupervisionStage::Starting(death);
        Ok(())
    }

    fn record_death(&mut self, place: usize, role: Role, pid: u32, cause: String, detected: u64) -> usize {
        self.steps += 1;
        let fault_ns = self.processes[place].fault.take().map(|ticks| self.ns_since_start(ticks));
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
