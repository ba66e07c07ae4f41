//! Engine and exchanges that die or hang: they recover from their journals while the run continues.
//!
//! ```text
//! running ─ hangs ──▶ killed ─┐ ◀────── killed by a signal ──────┐
//!    │                        ├─ proof of death ─▶ starting ─────┴─ first duty cycle ─▶ running
//!    └── killed by a signal ──┘     one that hangs there is killed, too
//! ```
//! The other processes are not involved: the rings stay, and the successor continues from them. A
//! process that reports an error before it exits is not restarted, since it would fail again; nor
//! is one that is killed `MAX_ATTEMPTS` times in a row before it has recovered, or hangs then after
//! `MAX_HANGING_ATTEMPTS`.

use super::Containment;
use super::supervised::SupervisionStage;
use crate::actions::{Action, Actions};
use crate::observations::Observations;
use crate::stuck::Liveness;
use protocol::plan::Role;
use protocol::status::ThreadState;
use record::run::{RestartSteps, RoleRestart};

/// Maximum restarts in a row of a role that is killed during recovery, which may be the cause.
const MAX_ATTEMPTS: u32 = 16;
/// Maximum restarts in a row of a role that hangs during recovery. Each takes half a minute, in
/// which the run does not count as stalled.
const MAX_HANGING_ATTEMPTS: u32 = 4;

impl Containment<'_> {
    /// Kills an engine or exchange that hangs, and records its death and when a restarted one runs.
    /// Returns `true` if it was killed by a signal, so that its death can be handled now.
    pub(super) fn watch_journaled(
        &mut self,
        place: usize,
        role: Role,
        observed: &Observations,
        liveness: &Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) -> bool {
        use SupervisionStage::{Down, Killed, Running, Starting};
        let case = &self.processes[place];
        let process = case.process;
        let is_done = case.is_done(observed);
        let is_failed = !case.all_threads_are(observed, |state| state != ThreadState::Failed);
        if let Some(error) = &observed.processes[process].failed_start {
            let name = &self.plan.processes[process].name;
            self.error = Some(format!("cannot start {name} again: {error}"));
            return false;
        }
        let (ended, was_killed) = (observed.exited_normally(process), observed.was_killed(process));
        let suspicion = self.liveness_fault(case, liveness).filter(|_| ended.is_none());
        let next = match case.stage {
            // It had reported that it was done.
            Running if was_killed && is_done => return false,
            Running if was_killed => {
                let ending = observed.exit_text(process);
                Killed(self.record_death(place, role, ending, observed, now))
            }
            // It has reported an error: the supervisor handles that.
            Running if is_failed || ended == Some(false) => Down,
            Running if is_done || ended.is_some() => return false,
            Running => {
                let Some(suspicion) = suspicion else {
                    out.perform(Action::KeepStandby(process));
                    return false;
                };
                out.perform(Action::Kill(process));
                Killed(self.record_death(place, role, suspicion.to_string(), observed, now))
            }
            Starting(death) if suspicion.is_some() && case.attempts < MAX_HANGING_ATTEMPTS => {
                // No other check covers it.
                out.perform(Action::Kill(process));
                Killed(death)
            }
            Starting(death) if was_killed && !is_failed && case.attempts < MAX_ATTEMPTS => Killed(death),
            Starting(_) if ended.is_some() || is_failed || suspicion.is_some() => Down,
            Starting(death) if case.all_threads_are(observed, |state| state >= ThreadState::Running) => {
                let recovery = observed.recovery(role);
                let since_start = |ticks: u64| (ticks > 0).then(|| self.ns_since_start(ticks));
                let RestartSteps { restarted_ns, proven_early, .. } = self.restarts[death].steps;
                let steps = RestartSteps {
                    restarted_ns,
                    proven_early,
                    begun_ns: since_start(recovery.begun_ticks),
                    replayed_ns: since_start(recovery.ended_ticks),
                    running_ns: since_start(recovery.running_ticks),
                };
                let recovered_ns = Some(self.ns_since_start(now));
                let restart = &mut self.restarts[death];
                (restart.recovered_ns, restart.steps) = (recovered_ns, steps);
                (restart.records, restart.replayed) = (recovery.records, recovery.replayed);
                // A fault injected during recovery has had its effect.
                (self.processes[place].attempts, self.processes[place].fault) = (0, None);
                self.last_step = now;
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

    /// Returns why the last incarnation of an engine or exchange is not restarted, if that is
    /// because too many before it were killed during recovery.
    pub(crate) fn reason_for_no_restart(&self, process: usize) -> Option<String> {
        let case = self.processes.iter().find(|case| case.is_process(process) && case.is_journaled())?;
        (case.attempts >= MAX_ATTEMPTS).then(|| {
            format!(
                "killed {MAX_ATTEMPTS} times in a row before it had recovered; if a fault did that, give it a longer \
                 `every`"
            )
        })
    }

    /// Restarts an engine or exchange whose death is proven: nothing writes its memory any more.
    pub(super) fn restart_journaled(
        &mut self,
        place: usize,
        death: usize,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let case = &mut self.processes[place];
        case.attempts += 1;
        case.stage = SupervisionStage::Starting(death);
        self.restarts[death].steps.restarted_ns = Some(self.ns_since_start(now));
        self.restart(place, liveness, now, out);
    }

    fn record_death(
        &mut self,
        place: usize,
        role: Role,
        cause: String,
        observed: &Observations,
        detected: u64,
    ) -> usize {
        let pid = observed.processes[self.processes[place].process].pid;
        self.last_step = detected;
        let fault_ns = self.processes[place].fault.take().map(|ticks| self.ns_since_start(ticks));
        self.restarts.push(RoleRestart {
            role,
            pid,
            cause,
            fault_ns,
            detected_ns: self.ns_since_start(detected),
            recovered_ns: None,
            steps: RestartSteps::default(),
            records: 0,
            replayed: 0,
        });
        self.restarts.len() - 1
    }
}
