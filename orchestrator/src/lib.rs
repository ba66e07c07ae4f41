//! The orchestrator: the central event loop that every order passes through, twice.
//!
//! Outward: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3).
//! Homeward: take from the completion hand-off (t6), settle, return to the strategy (t7). One
//! thread owns all of it, so positions and limits need no lock.
//!
//! `docs/src/architecture.md` has the picture. [`Core`] decides, and is pure. What takes inputs and
//! carries effects out is around it: this module, live. A journal's [`Replica`] applies the same
//! inputs to a core of its own, and is what a crashed engine's successor continues from.
#![forbid(unsafe_code)]

pub mod core;
mod intake;
mod ledger;
mod live;
mod outputs;
mod positions;
mod replica;
pub mod risk;
#[cfg(test)]
mod snapshots;
mod successor;
mod supervision;

pub use self::core::{Core, Input, TOLERATED_OFFENCES, log_records};
pub use ledger::{GatewayPast, OutputWatermarks, Recovered};
pub use outputs::Outputs;
pub use positions::{Account, Change, Positions};
pub use replica::Replica;
pub use successor::Successor;
pub use supervision::Supervision;

use journal::InputLog;
use live::Live;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::desk::CommandChannel;
use protocol::labels::OrchestratorCounter as Counter;
use protocol::stamps::StampLog;
use shm::prefetch::prefetch_lines;
use shm::ring::Consumer;
use system::clock::Clock;

/// Messages of each kind that one duty cycle takes, so that neither direction starves the other.
const BATCH: usize = 16;

/// Cache lines of a per-strategy or per-gateway value that a prefetch asks for.
const VALUE_LINES: usize = 8;
/// Cache lines of the agent that a prefetch asks for: all of them.
const AGENT_LINES: usize = 64;

/// The agent. `R` is the receiving end of the technique under test, for both contended hand-offs;
/// `J` records inputs.
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
    /// An orchestrator that records its inputs in `journal`, or nowhere. Unless it is
    /// [`supervised`](Orchestrator::supervised) no strategy is ever retired or started again.
    ///
    /// # Panics
    /// If core and outputs are for other numbers of strategies and gateways.
    pub fn new(submit: R, completion: R, core: Core, outputs: Outputs, journal: J) -> Self {
        assert!(
            core.sessions.len() == outputs.strategies.len() && core.gateways.len() == outputs.gateways.len(),
            "core and outputs are of one run"
        );
        Self { submit, completion, core, outputs, supervision: None, journal, failed: None }
    }

    /// Records an input and applies it. Returns `false` if it could not be recorded, and was not
    /// applied.
    #[inline(always)]
    fn take<C: Clock>(
        &mut self,
        input: Input,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        let now = cycle.now.saturating_sub(cycle.time.start_ticks);
        if J::IS_ENABLED && !self.record(&input, now) {
            return false;
        }
        release(self);
        let Self { submit, completion, core, outputs, journal, .. } = self;
        core.apply(input, now, &mut Live { submit, completion, outputs, journal, cycle });
        true
    }

    #[inline(never)]
    fn record(&mut self, input: &Input, now: u64) -> bool {
        let recorded = input.append(&mut self.journal, now);
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
        if J::IS_ENABLED && !self.release_durable_reports(cycle) {
            return 0;
        }
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.poll_fences(cycle);
        }
        if self.core.dying > 0 {
            self.poll_retirements(cycle);
        }
        if self.outputs.desk.as_ref().is_some_and(CommandChannel::has_news) {
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
        if self.outputs.pending > 0 {
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
        let is_waiting = self.outputs.pending > 0
            || self.core.dying > 0
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
        let Outputs { gateways, strategies, .. } = &self.outputs;
        if let Some(gateway) = round.checked_rem(gateways.len()) {
            prefetch_lines(&gateways[gateway], VALUE_LINES);
        }
        if let Some(strategy) = round.checked_rem(strategies.len()) {
            prefetch_lines(&strategies[strategy], VALUE_LINES);
            self.core.prefetch(strategy, VALUE_LINES);
        }
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.core.book();
        let (counts, outputs) = (&self.core.counts, &self.outputs);
        let slot = slots.take();
        slot.set(Counter::Dispatched, counts.dispatched);
        slot.set(Counter::Settled, counts.settled);
        slot.set(Counter::Reports, counts.reports);
        slot.set(Counter::Returned, outputs.returned);
        slot.set(Counter::Rejected, counts.rejected);
        slot.set(Counter::Full, outputs.full);
        slot.set(Counter::ProtocolErrors, counts.faults);
        slot.set(Counter::Work, outputs.work.achieved_picos());
        slot.set(Counter::Waiting, outputs.pending);
        slot.set(Counter::WaitingPeak, outputs.pending_peak);
        if J::IS_ENABLED {
            let (last, recovered) = self.journal.progress();
            slot.set(Counter::Journalled, last);
            slot.set(Counter::Recovered, recovered.map_or(0, |end| end.last));
            slot.set(Counter::Replayed, recovered.map_or(0, |end| end.records));
        }
        let (submit, completion) = (self.submit.allocation(), self.completion.allocation());
        slot.set(Counter::BlocksFresh, submit.fresh.saturating_add(completion.fresh));
        slot.set(Counter::BlocksReused, submit.reused.saturating_add(completion.reused));
    }
}

#[cfg(test)]
mod tests;
