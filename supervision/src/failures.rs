//! Conditions that end a run as failed: a hang, an uncontained violation, an abnormal exit.

use super::actions::{Action, Actions};
use super::containment::with_own_message;
use super::observations::Observations;
use super::{Phase, Supervisor};
use protocol::index::StrategyIndex;
use protocol::plan::Role;
use protocol::role::RoleKind;
use protocol::status::ThreadState;
use record::run::RunOutcome;
use std::time::Duration;

const MEMORY_LOST: &str = "memory of the run was taken away";

/// A process that fails the run, and whose last words are waited for.
#[derive(Clone, Debug)]
pub(super) struct FailedProcess {
    process: usize,
    /// What the thread that reported an error says itself.
    error: String,
    since_ns: u64,
    /// The kernel is to report how it exited: it runs a strategy, which is not believed.
    awaits_exit: bool,
}

impl FailedProcess {
    /// Returns how much of the time `wait` a failed process still has to exit; zero if its exit is
    /// not awaited.
    pub fn time_left(&self, now_ns: u64, wait: Duration) -> Duration {
        let waited = Duration::from_nanos(now_ns.saturating_sub(self.since_ns));
        if self.awaits_exit { wait.saturating_sub(waited) } else { Duration::ZERO }
    }
}

/// Returns the outcome of a run that failed because of a process, for the reason `what`.
pub fn failure(process: &str, pid: u32, what: String) -> RunOutcome {
    RunOutcome::Failed { process: process.to_owned(), pid, what }
}

/// Returns the outcome of a run that failed because shared memory was lost, with the launcher as
/// the failed process.
pub fn memory_failure(launcher: u32) -> RunOutcome {
    failure("launcher", launcher, MEMORY_LOST.into())
}

impl Supervisor<'_> {
    pub(super) fn owner_index(&self, thread: usize) -> usize {
        let owns = |process: &protocol::plan::ProcessPlan| process.threads.contains(&(thread as u32));
        self.plan.processes.iter().position(owns).unwrap_or(0)
    }

    pub(super) fn failure_of(&self, thread: usize, what: String, observed: &Observations) -> RunOutcome {
        self.failure_of_process(self.owner_index(thread), what, observed)
    }

    fn failure_of_process(&self, process: usize, what: String, observed: &Observations) -> RunOutcome {
        failure(&self.plan.processes[process].name, observed.processes[process].pid, what)
    }

    /// Returns the failure of the launcher itself, or of a process or role that cannot continue.
    pub(super) fn find_failure(
        &mut self,
        observed: &Observations,
        out: &mut dyn Actions,
    ) -> Option<RunOutcome> {
        let own = observed.launcher_error.as_deref().or_else(|| self.containment.error());
        if let Some(error) = own {
            return Some(failure("launcher", self.plan.launcher_pid, error.to_owned()));
        }
        if let Some(failed) = self.find_early_exit(observed) {
            self.phase = Phase::Failing(failed);
            return None;
        }
        self.check_liveness(observed, out).or_else(|| self.check_violations(observed))
    }

    /// Returns a process that exited too early, or whose thread failed.
    fn find_early_exit(&self, observed: &Observations) -> Option<FailedProcess> {
        for (index, process) in self.plan.processes.iter().enumerate() {
            let is_spare = self.plan.is_spare(process);
            if is_spare || self.containment.supervises(index) || self.plan.can_lose_board_end(process) {
                continue;
            }
            // The end of a strategy that dies alone is an incident.
            let mut threads = process.threads.iter().map(|thread| *thread as usize);
            let is_failed = |thread: &usize| {
                observed.state(*thread) == ThreadState::Failed && !self.containment.supervises_thread(*thread)
            };
            let failed = threads.clone().find(is_failed);
            let done = threads.all(|thread| {
                observed.state(thread) == ThreadState::Done || self.containment.has_lost_thread(thread)
            });
            if failed.is_some() || observed.exited_normally(index).is_some_and(|in_order| !(done && in_order))
            {
                let mut roles = self.plan.roles_of(process);
                return Some(FailedProcess {
                    process: index,
                    error: failed.map_or_else(String::new, |thread| observed.threads[thread].error.clone()),
                    since_ns: self.now_ns(),
                    awaits_exit: roles.any(|role| role.kind() == RoleKind::Strategy),
                });
            }
        }
        None
    }

    /// Returns the failed process (index in the plan) whose last stderr lines the supervisor's
    /// caller must observe; `None` if no process is failing the run.
    pub const fn failing_process(&self) -> Option<usize> {
        match &self.phase {
            Phase::Failing(failed) => Some(failed.process),
            _ => None,
        }
    }

    /// Returns the outcome once a failed process has exited, or has not in time.
    pub(super) fn await_last_words(
        &self,
        failed: &FailedProcess,
        observed: &Observations,
    ) -> Option<RunOutcome> {
        let message = observed.last_words.as_deref()?;
        let runs = observed.exited_normally(failed.process).is_none();
        if failed.awaits_exit && runs && !failed.time_left(self.now_ns(), self.limits.exit_wait).is_zero() {
            return None;
        }
        let what = self.cause(failed, message, observed);
        Some(self.failure_of_process(failed.process, what, observed))
    }

    /// Returns why a process failed: how it exited according to the kernel, and its own message. A
    /// strategy's own message comes last.
    fn cause(&self, failed: &FailedProcess, last_words: &str, observed: &Observations) -> String {
        let FailedProcess { process, error, .. } = failed;
        let error = Some(error.as_str()).filter(|error| !error.is_empty());
        let exit_text = observed.exit_text(*process);
        if failed.awaits_exit {
            let thread = self.plan.processes[*process].threads.first().map_or(0, |thread| *thread as usize);
            let is_ready = observed.state(thread) >= ThreadState::Ready;
            let unattached = if is_ready { String::new() } else { self.attach_hint(thread) };
            let ending = match observed.exited_normally(*process) {
                Some(true) => format!("{exit_text} before it had finished"),
                Some(false) => exit_text,
                None => "gave up".into(),
            } + &unattached;
            return with_own_message(&ending, error.unwrap_or(last_words));
        }
        let exit_text = match self.containment.reason_for_no_restart(*process) {
            Some(reason) => format!("{exit_text}: {reason}"),
            None => exit_text,
        };
        let what = error.map_or(exit_text, ToOwned::to_owned);
        if last_words.is_empty() || last_words.contains(&what) {
            what
        } else {
            format!("{what}: {last_words}")
        }
    }

    /// Returns a hint for a thread that never became ready, if it belongs to a user's program.
    pub(super) fn attach_hint(&self, thread: usize) -> String {
        let program = self.plan.program_of(&self.plan.processes[self.owner_index(thread)]);
        program.map_or_else(String::new, |program| format!(": {program} has not attached (bh_attach)"))
    }

    /// Returns the failure because of a quarantine or of memory damage.
    fn check_violations(&self, observed: &Observations) -> Option<RunOutcome> {
        let (role, what) = self.containment.violation(&self.liveness, observed)?;
        Some(self.failure_of(self.plan.thread_of(role)?, what, observed))
    }

    /// Returns the failure of a thread that hangs or forges its status.
    fn check_liveness(&self, observed: &Observations, out: &mut dyn Actions) -> Option<RunOutcome> {
        let others =
            self.plan.processes.iter().enumerate().filter(|(index, _)| !self.containment.supervises(*index));
        for (index, process) in others.filter(|(index, _)| observed.exited_normally(*index).is_none()) {
            let own = process.threads.iter().map(|thread| *thread as usize);
            for thread in own.filter(|thread| !self.containment.supervises_thread(*thread)) {
                let Some(suspicion) = self.liveness.fault(thread, &process.threads) else { continue };
                let what = if process.threads.len() == 1 {
                    // It will not exit by itself. In a process with several threads the others may.
                    out.perform(Action::Kill(index));
                    suspicion.to_string()
                } else {
                    format!("thread {} {suspicion}", self.plan.threads[thread].name)
                };
                return Some(self.failure_of(thread, what, observed));
            }
        }
        None
    }

    /// Returns the failure of a strategy that has overwritten a header, where deaths are not
    /// contained; otherwise that is an incident.
    fn check_headers(&self, observed: &Observations) -> Option<RunOutcome> {
        let mut all = StrategyIndex::first(u16::MAX).zip(&observed.strategies);
        let (strategy, forgery) = all.find_map(|(index, of)| Some((index, of.forged_header.clone()?)))?;
        Some(self.failure_of(self.plan.thread_of(Role::Strategy(strategy))?, forgery, observed))
    }

    /// Turns the outcome into a failure if a process had to be killed at the end, or died then.
    pub(super) fn check_exits(&self, outcome: RunOutcome, observed: &Observations) -> RunOutcome {
        if outcome != RunOutcome::Complete {
            return outcome;
        }
        let mut all = 0..self.plan.processes.len();
        let bad = all.find(|index| {
            observed.exited_normally(*index) != Some(true)
                && !self.containment.explains_exit_of(*index, observed)
                && !self.plan.can_lose_board_end(&self.plan.processes[*index])
        });
        match bad {
            Some(index) => {
                let what = format!("exited abnormally: {}", observed.exit_text(index));
                self.failure_of_process(index, what, observed)
            }
            None if !self.containment.contains_strategies() => {
                self.check_headers(observed).unwrap_or(outcome)
            }
            None => outcome,
        }
    }
}
