//! Conditions that end a run as failed: a hang, an uncontained violation, an abnormal exit.

use super::{Supervisor, failure};
use crate::runtime::containment::with_own_message;
use crate::runtime::process::Process;
use analysis::record::RunOutcome;
use anyhow::Result;
use protocol::plan::Role;
use protocol::role::RoleKind;
use protocol::status::{ThreadState, ThreadStatus};
use std::time::Duration;

/// How long a failed strategy has to exit, so that the kernel can report how.
const EXIT_WAIT: Duration = Duration::from_millis(200);

impl Supervisor<'_> {
    pub(super) fn owner_index(&self, thread: usize) -> usize {
        let owns = |process: &protocol::plan::ProcessPlan| process.threads.contains(&(thread as u32));
        self.plan.processes.iter().position(owns).unwrap_or(0)
    }

    pub(super) fn owner_of(&self, thread: usize) -> Option<&Process> {
        self.processes.all.get(self.owner_index(thread))
    }

    pub(super) fn failure_of(&self, thread: usize, what: String) -> RunOutcome {
        let process = &self.processes.all[self.owner_index(thread)];
        failure(&process.name, process.pid(), what)
    }

    /// Returns the failure of a process that exited too early, or whose thread failed.
    pub(super) fn check_early_exits(&mut self) -> Result<Option<RunOutcome>> {
        for (index, process) in self.plan.processes.iter().enumerate() {
            if self.containment.supervises(index) || self.plan.can_lose_board_end(process) {
                continue;
            }
            let mut threads = process.threads.iter().map(|thread| *thread as usize);
            let failed = threads.clone().find(|thread| self.state(*thread) == ThreadState::Failed);
            let done = threads.all(|thread| self.state(thread) == ThreadState::Done);
            let status = self.processes.all[index].status;
            if failed.is_some() || status.is_some_and(|status| !(done && status.success())) {
                let what = self.cause(index, failed.map(|thread| self.status(thread)))?;
                return Ok(Some(failure(&process.name, self.processes.all[index].pid(), what)));
            }
        }
        Ok(None)
    }

    /// Returns why a process failed: how it exited according to the kernel, and its own message.
    /// `failed`: the status of a thread that reported an error. A strategy's own message comes
    /// last.
    fn cause(&mut self, process: usize, failed: Option<ThreadStatus>) -> Result<String> {
        let words = failed.map(|status| status.error()).filter(|error| !error.is_empty());
        let planned = &self.plan.processes[process];
        let has_strategy = self.plan.roles_of(planned).any(|role| role.kind() == RoleKind::Strategy);
        let thread = planned.threads.first().map_or(0, |thread| *thread as usize);
        let is_ready = self.state(thread) >= ThreadState::Ready;
        let unattached = if is_ready { String::new() } else { self.attach_hint(thread) };
        let child = &mut self.processes.all[process];
        if has_strategy {
            child.wait_for_exit(EXIT_WAIT)?;
            let how = match child.status {
                Some(status) if status.success() => format!("{} before it had finished", child.exit_text()),
                Some(_) => child.exit_text(),
                None => "gave up".into(),
            } + &unattached;
            return Ok(with_own_message(&how, &words.unwrap_or_else(|| child.stderr_tail())));
        }
        let what = words.unwrap_or_else(|| child.exit_text());
        Ok(match child.stderr_tail() {
            words if words.is_empty() || words.contains(&what) => what,
            words => format!("{what}: {words}"),
        })
    }

    /// Returns the failure because of a quarantine or of memory damage.
    pub(super) fn check_violations(&self) -> Option<RunOutcome> {
        let (role, what) = self.containment.violation(&self.liveness, &self.processes)?;
        Some(self.failure_of(self.plan.thread_of(role)?, what))
    }

    /// Returns the failure of a thread that hangs or forges its status.
    pub(super) fn check_liveness(&self) -> Option<RunOutcome> {
        let others =
            self.plan.processes.iter().enumerate().filter(|(index, _)| !self.containment.supervises(*index));
        for (index, process) in others.filter(|(index, _)| self.processes.all[*index].status.is_none()) {
            for thread in process.threads.iter().map(|thread| *thread as usize) {
                let Some(suspicion) = self.liveness.fault(thread, &process.threads) else { continue };
                let what = if process.threads.len() == 1 {
                    // It will not exit by itself. In a process with several threads the others may.
                    self.processes.all[index].kill();
                    suspicion.to_string()
                } else {
                    format!("thread {} {suspicion}", self.plan.threads[thread].name)
                };
                return Some(self.failure_of(thread, what));
            }
        }
        None
    }

    /// Returns the failure of a strategy that has overwritten a header, where deaths are not
    /// contained; otherwise that is an incident.
    fn check_headers(&self) -> Option<RunOutcome> {
        let forged = |strategy| Some((strategy, self.segments.headers.forged_by(strategy)?));
        let (strategy, forgery) = (0..self.plan.trading().strategies).find_map(forged)?;
        Some(self.failure_of(self.plan.thread_of(Role::Strategy(strategy))?, forgery))
    }

    /// Turns the outcome into a failure if a process had to be killed at the end, or died then.
    pub(super) fn check_exits(&self, outcome: RunOutcome) -> RunOutcome {
        if outcome != RunOutcome::Complete {
            return outcome;
        }
        let mut ends = self.processes.all.iter().enumerate();
        let bad = ends.find(|(index, process)| {
            !process.status.is_some_and(|status| status.success())
                && !self.containment.explains_exit_of(*index)
                && !self.plan.can_lose_board_end(&self.plan.processes[*index])
        });
        match bad {
            Some((_, process)) => {
                failure(&process.name, process.pid(), format!("exited abnormally: {}", process.exit_text()))
            }
            None if !self.containment.contains_strategies() => self.check_headers().unwrap_or(outcome),
            None => outcome,
        }
    }
}
