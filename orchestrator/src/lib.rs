//! The orchestrator: the central event loop that every order passes through, twice.
//!
//! Outward: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3). Homeward: take from the completion
//! hand-off (t6), settle, return to the strategy (t7). One thread owns all of it, so positions and limits need no lock.
//!
//! ```text
//!            take ─▶ journal (J) ─▶ release ─▶ Core::apply ─▶ Effects
//!  live      rings    write-ahead log or ()        │           rings, stamps, notices
//!  replica   journal  –                            │           ledger: what may not have gone out
//!  tests     values   –                            │           a list
//! ```
//!
//! [`Core`] decides, and is pure. What takes inputs and carries effects out is around it: this module, live. A journal's [`Replica`]
//! applies the same inputs to a core of its own, and is what a crashed engine's successor continues from.
#![forbid(unsafe_code)]

mod copy_exact;
pub mod core;
mod intake;
mod ledger;
mod live;
mod outputs;
mod pending;
mod positions;
mod record;
mod replica;
mod returns;
pub mod risk;
mod setup;
#[cfg(test)]
mod snapshots;
mod successor;
mod supervision;
pub mod work;

pub use self::core::{Core, Input, RecoveryError, TOLERATED_OFFENCES, log_records};
pub use ledger::{Estate, GatewayPast, Recovered};
pub use outputs::{Inbox, Outputs};
pub use positions::{Account, Change, Closed, Positions};
pub use record::InputLog;
pub use replica::Replica;
pub use returns::ReturnPath;
pub use successor::Successor;
pub use supervision::Supervision;

use self::core::Moment;
use live::Live;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::desk::Desk;
use protocol::labels::OrchestratorCounter;
use protocol::stamps::StampLog;
use shm::clock::Clock;
use shm::prefetch::prefetch_lines;
use shm::ring::Consumer;

/// How many messages of each kind one duty cycle takes, so that neither direction starves the other.
const BATCH: usize = 16;

/// Cache lines of a per-strategy or per-gateway value that a prefetch asks for.
const VALUE_LINES: usize = 8;
/// Cache lines of the agent itself that a prefetch asks for: all of them.
const AGENT_LINES: usize = 64;

/// The agent. `R` is the receiving end of the technique under test, for both contended hand-offs; `J` records inputs.
pub struct Orchestrator<R, J = ()> {
    submit: R,
    completion: R,
    core: Core,
    outputs: Outputs,
    supervision: Option<Supervision>,
    journal: J,
    /// Why it cannot continue.
    failed: Option<String>,
}

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    /// Records an input and applies it. Returns `false` if it could not be recorded, and was not applied.
    #[inline(always)]
    fn take<C: Clock>(
        &mut self,
        input: Input,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        if J::IS_KEPT && !self.record(&input, cycle.now) {
            return false;
        }
        release(self);
        let at = Moment { ticks: cycle.now, since_start: cycle.now.saturating_sub(cycle.time.start_ticks) };
        let Self { submit, completion, core, outputs, journal, .. } = self;
        core.apply(input, at, &mut Live { submit, completion, outputs, journal, cycle });
        true
    }

    #[inline(never)]
    fn record(&mut self, input: &Input, now: u64) -> bool {
        let recorded = self.journal.record(input, now);
        if let Err(error) = &recorded {
            self.failed = Some(format!("stops: its journal fails: {error}"));
        }
        recorded.is_ok()
    }
}

impl<R: Consumer, J: InputLog, C: Clock> Agent<C> for Orchestrator<R, J> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        // What follows looks at positions.
        self.core.book();
        if J::IS_KEPT && !self.release_durable_reports(cycle) {
            return 0;
        }
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.poll_fences(cycle);
        }
        if self.core.has_dying() {
            self.poll_retirements(cycle);
        }
        if self.outputs.desk.as_ref().is_some_and(Desk::has_news) {
            self.poll_commands(cycle);
        }
        if self.supervision.as_ref().is_some_and(|supervision| supervision.must_inspect(cycle.now)) {
            self.inspect_submit(cycle);
        }
        if self.outputs.recall_is_due {
            self.recall_pending(cycle);
        }
        let mut flushed = 0;
        if self.outputs.has_queued_reports {
            flushed += self.outputs.flush_returns();
        }
        if self.outputs.pending.len() > 0 {
            flushed += self.outputs.flush_pending();
        }
        let work = flushed + self.poll_completion(cycle) + self.poll_submit(cycle);
        if self.outputs.overflowed.is_some() {
            self.report_overflow(cycle);
        }
        if self.outputs.recall_is_due {
            self.recall_pending(cycle);
        }
        work
    }

    fn next_deadline(&self, _: bool) -> u64 {
        // What waits for room is tried again at once.
        let is_waiting = self.outputs.pending.len() > 0
            || self.core.has_dying()
            || self.outputs.has_queued_reports
            || !self.outputs.deferred.is_empty();
        if is_waiting { 0 } else { u64::MAX }
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn seal(&self, log: &mut StampLog) {
        self.core.seal(log);
    }

    fn keep_warm(&self, round: usize) {
        prefetch_lines(self, AGENT_LINES);
        let Outputs { inboxes, returns, .. } = &self.outputs;
        if let Some(inbox) = round.checked_rem(inboxes.len()) {
            prefetch_lines(&inboxes[inbox], VALUE_LINES);
        }
        if let Some(strategy) = round.checked_rem(returns.len()) {
            prefetch_lines(&returns[strategy], VALUE_LINES);
            self.core.prefetch(strategy, VALUE_LINES);
        }
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.core.book();
        let (counts, outputs) = (self.core.counts(), &self.outputs);
        let slot = slots.take();
        slot.set(OrchestratorCounter::Dispatched, counts.dispatched);
        slot.set(OrchestratorCounter::Settled, counts.settled);
        slot.set(OrchestratorCounter::Reports, counts.reports);
        slot.set(OrchestratorCounter::Returned, outputs.returned);
        slot.set(OrchestratorCounter::Rejected, counts.rejected);
        slot.set(OrchestratorCounter::Full, outputs.full);
        slot.set(OrchestratorCounter::ProtocolErrors, counts.faults);
        slot.set(OrchestratorCounter::Work, outputs.work.achieved_picos());
        slot.set(OrchestratorCounter::Waiting, outputs.pending.len());
        slot.set(OrchestratorCounter::WaitingPeak, outputs.pending_peak);
        if J::IS_KEPT {
            let (last, recovered) = self.journal.progress();
            slot.set(OrchestratorCounter::Journalled, last);
            slot.set(OrchestratorCounter::Recovered, recovered.map_or(0, |end| end.last));
            slot.set(OrchestratorCounter::Replayed, recovered.map_or(0, |end| end.records));
        }
        let (submit, completion) = (self.submit.allocation(), self.completion.allocation());
        slot.set(OrchestratorCounter::BlocksFresh, submit.fresh.saturating_add(completion.fresh));
        slot.set(OrchestratorCounter::BlocksReused, submit.reused.saturating_add(completion.reused));
    }
}

#[cfg(test)]
mod tests;
