//! Strategies that are threads of the engine's process, and die alone.
//!
//! A thread that panics has unwound before it publishes that, and is fenced once the kernel reports
//! it gone: what it leaves is what a dead process leaves. A thread that hangs cannot be ended:
//! every signal that ends it ends its process. It is *abandoned*: fenced without a proof, and never
//! restarted, because it would share its ring with its successor.
//!
//! The fence makes the engine refuse what an abandoned thread may push later, and the thread ends
//! itself when it finds the fence. Nothing keeps it from writing elsewhere in the memory that it
//! shares with the engine, nor from finishing a push into a slot of a shared ring that was skipped.

use super::Containment;
use super::strategies::with_own_message;
use super::supervised::SupervisedProcess;
use crate::observations::Observations;
use crate::stuck::Liveness;
use protocol::plan::Role;
use protocol::status::ThreadState;

impl Containment<'_> {
    /// Returns `true` if a strategy's thread is gone, or is abandoned now.
    pub(super) fn can_fence_thread(
        &mut self,
        place: usize,
        observed: &Observations,
        liveness: &Liveness,
    ) -> bool {
        let case = &mut self.processes[place];
        let thread = &observed.threads[case.threads[0]];
        if observed.processes[case.process].exit.is_some() {
            return false;
        }
        // One that reports its end ends within its deadline, or does not tell the truth.
        let is_ending = thread.state() == ThreadState::Failed && !liveness.is_overdue(case.killed_ticks);
        case.is_abandoned = !thread.is_gone && !is_ending;
        thread.is_gone || case.is_abandoned
    }

    /// Notes since when a strategy's thread is gone that published no end.
    pub(super) fn note_gone_thread(&mut self, place: usize, observed: &Observations, now: u64) {
        let case = &mut self.processes[place];
        let is_gone = case.is_thread && {
            let thread = &observed.threads[case.threads[0]];
            thread.is_gone && thread.state() < ThreadState::Done
        };
        // From the second sighting on: heartbeats are read before the first one, and this step's
        // time is before its observations.
        case.gone_since = match case.gone_since.filter(|_| is_gone) {
            None => is_gone.then_some(u64::MAX),
            Some(u64::MAX) => Some(now),
            since => since,
        };
    }

    /// Describes how a strategy's thread ended, unless it runs or ended as it should.
    pub(super) fn thread_end(&self, case: &SupervisedProcess, observed: &Observations) -> Option<String> {
        let thread = &observed.threads[case.threads[0]];
        // The threads of a process that dies are gone before its exit is observed: the engine then
        // has no duty cycle any more.
        let has_process_lived_on = |since: u64| {
            let engine = self.plan.thread_of(Role::Orchestrator);
            engine.is_some_and(|engine| observed.threads[engine].pulse.heartbeat_ticks > since)
        };
        if thread.state() == ThreadState::Failed {
            return Some(with_own_message("its thread ended", &thread.error));
        }
        let is_lost = case.gone_since.is_some_and(has_process_lived_on);
        is_lost.then(|| "its thread exited before it had finished".into())
    }
}
