//! What ends a run as failed: a hang, a violation that nothing contains, a process that exits abnormally.

use super::{Supervisor, failure};
use crate::runtime::standstill;
use analysis::record::Outcome;
use protocol::plan::{ProcessPlan, Role};

impl Supervisor<'_> {
    /// A quarantine that nobody contains, or damage that nobody can.
    pub(super) fn misconduct(&self) -> Option<Outcome> {
        if let Some(what) = self.repairs.damage() {
            let engine = self.plan.thread_of(Role::Orchestrator)?;
            let what = format!(
                "{what}: a strategy has damaged memory that all of them write ({}), nobody can trade on; with spsc-mux \
                 each has its own",
                self.plan.technique
            );
            return Some(self.failure_of(engine, what));
        }
        let is_contained = |strategy| {
            let incidents = self.incidents.as_ref();
            incidents.is_some_and(|incidents| !incidents.has_ended(strategy, &self.processes))
        };
        if let Some((role, what)) = standstill::verdict(&self.repairs, &self.liveness, is_contained) {
            return Some(self.failure_of(self.plan.thread_of(role)?, what));
        }
        if self.incidents.is_some() {
            return None;
        }
        let quarantined = |index: u16| Some((index, self.repairs.of(index).quarantined?.1));
        let (index, why) = (0..self.plan.trading().strategies).find_map(quarantined)?;
        let thread = self.plan.thread_of(Role::Strategy(index))?;
        Some(self.failure_of(thread, format!("strategy {index} was quarantined: {why}")))
    }

    /// The failure of the process that a thread belongs to.
    pub(super) fn failure_of(&self, thread: usize, what: String) -> Outcome {
        let owner = self.plan.processes.iter().position(|process| process.threads.contains(&(thread as u32)));
        let process = &self.processes.all[owner.unwrap_or(0)];
        failure(&process.name, process.pid(), what)
    }

    /// The first thread that hangs or lies about itself, but for those whose deaths are contained.
    pub(super) fn suspect(&self) -> Option<Outcome> {
        let others = self.plan.processes.iter().enumerate().filter(|(index, _)| !self.contains(*index));
        for (index, process) in others {
            let is_there = self.processes.all[index].status.is_none();
            let threads = process.threads.iter().map(|thread| *thread as usize).filter(|_| is_there);
            let mut found = threads.filter_map(|thread| {
                let suspicion = self.liveness.suspicion(thread, &process.threads)?;
                if process.threads.len() == 1 {
                    // It will not end by itself. Of a process with several threads the others may.
                    self.processes.all[index].kill();
                }
                Some(self.failure_of(thread, format!("{}{suspicion}", self.name_within(process, thread))))
            });
            if let Some(outcome) = found.next() {
                return Some(outcome);
            }
        }
        None
    }

    /// Which of a process's threads is meant, if it has several.
    pub(super) fn name_within(&self, process: &ProcessPlan, thread: usize) -> String {
        match process.threads.len() {
            1 => String::new(),
            _ => format!("thread {} ", self.plan.threads[thread].name),
        }
    }

    /// A strategy that has overwritten a header, where no death is contained; elsewhere it is an incident.
    pub(super) fn forged_header(&self) -> Option<Outcome> {
        let forged = |strategy| Some((strategy, self.segments.headers.forgery(strategy)?));
        let (strategy, forgery) = (0..self.plan.trading().strategies).find_map(forged)?;
        Some(self.failure_of(self.plan.thread_of(Role::Strategy(strategy))?, forgery))
    }

    /// A process that had to be killed at the end, or died then, is a failure too.
    pub(super) fn ended_in_order(&self, outcome: Outcome) -> Outcome {
        let is_excused = |index: usize| {
            self.incidents.as_ref().is_some_and(|incidents| incidents.excuses(index))
                || self.comebacks.as_ref().is_some_and(|comebacks| comebacks.is_done(index))
                || self.outages.as_ref().is_some_and(|outages| outages.excuses(index))
        };
        let mut ends = self.processes.all.iter().enumerate();
        let bad = ends.find(|(index, process)| {
            !process.status.is_some_and(|status| status.success()) && !is_excused(*index)
        });
        let bad = bad.map(|(_, process)| process);
        if let (Outcome::Complete, None, None) = (&outcome, bad, &self.incidents) {
            return self.forged_header().unwrap_or(outcome);
        }
        match (outcome, bad) {
            (Outcome::Complete, Some(process)) => {
                failure(&process.name, process.pid(), format!("exited abnormally: {}", process.how()))
            }
            (outcome, _) => outcome,
        }
    }
}
