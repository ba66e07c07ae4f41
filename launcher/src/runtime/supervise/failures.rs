//! Conditions that end a run as failed: a hang, an uncontained violation, an abnormal exit.

use super::{Supervisor, failure};
use crate::runtime::incidents::with_own_words;
use crate::runtime::process::Process;
use crate::runtime::stuck::blocked_slot;
use analysis::record::RunOutcome;
use anyhow::Result;
use protocol::plan::Role;
use protocol::role::RoleKind;
use protocol::status::{ThreadState, ThreadStatus};
use std::time::Duration;

/// How long a strategy that gives up has to end, so that the kernel can say how.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Supervisor<'_> {
    /// The place in the plan of the process that a thread belongs to.
    pub(super) fn owner_index(&self, thread: usize) -> usize {
        let owns = |process: &protocol::plan::ProcessPlan| process.threads.contains(&(thread as u32));
        self.plan.processes.iter().position(owns).unwrap_or(0)
    }

    pub(super) fn owner_of(&self, thread: usize) -> Option<&Process> {
        self.processes.all.get(self.owner_index(thread))
    }

    /// The failure of the process that a thread belongs to.
    pub(super) fn failure_of(&self, thread: usize, what: String) -> RunOutcome {
        let process = &self.processes.all[self.owner_index(thread)];
        failure(&process.name, process.pid(), what)
    }

    /// The failure of a process that has ended before its threads were done, or of which a thread
    /// has failed, but for those whose deaths are contained.
    pub(super) fn ended_early(&mut self) -> Result<Option<RunOutcome>> {
        for (index, process) in self.plan.processes.iter().enumerate() {
            if self.contained.owns(index) {
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

    /// Why the process at this place of the plan failed, in words: what the kernel says of it, and
    /// what it says itself. `failed`: what a thread of it says that gave up. Where a strategy can
    /// have written that, it comes last.
    fn cause(&mut self, process: usize, failed: Option<ThreadStatus>) -> Result<String> {
        let words = failed.map(|status| status.error()).filter(|error| !error.is_empty());
        let planned = &self.plan.processes[process];
        let has_strategy = self.plan.roles_of(planned).any(|role| role.kind() == RoleKind::Strategy);
        let thread = planned.threads.first().map_or(0, |thread| *thread as usize);
        let is_ready = self.state(thread) >= ThreadState::Ready;
        let unattached = if is_ready { String::new() } else { self.unattached(thread) };
        let child = &mut self.processes.all[process];
        if has_strategy {
            child.await_end(LAST_WORDS)?;
            let how = match child.status {
                Some(status) if status.success() => format!("{} before it had finished", child.how()),
                Some(_) => child.how(),
                None => "gave up".into(),
            } + &unattached;
            return Ok(with_own_words(&how, &words.unwrap_or_else(|| child.last_words())));
        }
        let what = words.unwrap_or_else(|| child.how());
        Ok(match child.last_words() {
            words if words.is_empty() || words.contains(&what) => what,
            words => format!("{what}: {words}"),
        })
    }

    /// A quarantine that nobody contains, or damage that nobody can.
    pub(super) fn misconduct(&self) -> Option<RunOutcome> {
        if let Some(what) = self.repairs.damage() {
            let engine = self.plan.thread_of(Role::Orchestrator)?;
            let what = format!(
                "{what}: a strategy has damaged memory that all of them write ({}), nobody can trade on; with spsc-mux \
                 each has its own",
                self.plan.technique
            );
            return Some(self.failure_of(engine, what));
        }
        let incidents = self.contained.incidents.as_ref();
        let is_contained =
            |strategy| incidents.is_some_and(|incidents| !incidents.has_ended(strategy, &self.processes));
        if let Some((role, what)) = blocked_slot(&self.repairs, &self.liveness, is_contained) {
            return Some(self.failure_of(self.plan.thread_of(role)?, what));
        }
        if incidents.is_some() {
            return None;
        }
        let quarantined = |index: u16| Some((index, self.repairs.strategy_repair(index).quarantined?.1));
        let (index, why) = (0..self.plan.trading().strategies).find_map(quarantined)?;
        let thread = self.plan.thread_of(Role::Strategy(index))?;
        Some(self.failure_of(thread, format!("strategy {index} was quarantined: {why}")))
    }

    /// The first thread that hangs or lies about itself, but for those whose deaths are contained.
    pub(super) fn suspect(&self) -> Option<RunOutcome> {
        let others = self.plan.processes.iter().enumerate().filter(|(index, _)| !self.contained.owns(*index));
        for (index, process) in others.filter(|(index, _)| self.processes.all[*index].status.is_none()) {
            for thread in process.threads.iter().map(|thread| *thread as usize) {
                let Some(suspicion) = self.liveness.suspicion(thread, &process.threads) else { continue };
                let what = if process.threads.len() == 1 {
                    // It will not end by itself. Of a process with several threads the others may.
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

    /// A strategy that has overwritten a header, where no death is contained; elsewhere it is an
    /// incident.
    fn forged_header(&self) -> Option<RunOutcome> {
        let forged = |strategy| Some((strategy, self.segments.headers.forgery(strategy)?));
        let (strategy, forgery) = (0..self.plan.trading().strategies).find_map(forged)?;
        Some(self.failure_of(self.plan.thread_of(Role::Strategy(strategy))?, forgery))
    }

    /// A process that had to be killed at the end, or died then, is a failure too.
    pub(super) fn ended_in_order(&self, outcome: RunOutcome) -> RunOutcome {
        if outcome != RunOutcome::Complete {
            return outcome;
        }
        let mut ends = self.processes.all.iter().enumerate();
        let bad = ends.find(|(index, process)| {
            !process.status.is_some_and(|status| status.success()) && !self.contained.excuses(*index)
        });
        match bad {
            Some((_, process)) => {
                failure(&process.name, process.pid(), format!("exited abnormally: {}", process.how()))
            }
            None if self.contained.incidents.is_none() => self.forged_header().unwrap_or(outcome),
            None => outcome,
        }
    }
}
