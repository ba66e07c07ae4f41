//! The orchestrator: the engine's event loop, which every order passes on its way out and back.
//!
//! Out: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3).
//! Back: take from the completion hand-off (t6), settle, return to the strategy (t7). One thread
//! owns all state, so positions and limits need no lock.
//!
//! [`Core`] decides, and is pure; this crate takes its inputs and performs its effects. A
//! [`Replica`] applies a journal's inputs to a core of its own: a crashed engine's successor is
//! promoted from it. `docs/src/architecture.md` has the picture.
#![forbid(unsafe_code)]

pub mod engine;
mod intake;
mod ledger;
mod live;
mod outputs;
mod positions;
mod replica;
pub mod risk;
mod supervision;

pub use self::engine::{Core, Input, TOLERATED_OFFENSES, log_records};
pub use ledger::{OutputWatermarks, Recovered, RecoveredGateway};
pub use outputs::Outputs;
pub use positions::{Account, Change, Positions};
pub use replica::{Replica, Successor};
pub use supervision::Supervision;

use journal::InputLog;
use live::Live;
use protocol::agent::{Agent, Cycle};
use protocol::commands::CommandChannel;
use protocol::counters::CounterSlots;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::labels::OrchestratorCounter as Counter;
use protocol::stamps::StampLog;
use shm::prefetch::prefetch_lines;
use shm::ring::Consumer;
use system::clock::Clock;

/// Maximum number of messages of each kind per duty cycle, so that neither direction starves the
/// other.
const BATCH: usize = 16;

const VALUE_LINES: usize = 8;
/// Cache lines of the agent that are prefetched: all of them.
const AGENT_LINES: usize = 64;

/// The agent that runs the engine: reads orders and reports, and passes them to its state machine.
/// `R` is the receiving end of the technique under test, for both contended hand-offs; `J` records
/// inputs.
pub struct Orchestrator<R, J = ()> {
    submit: R,
    completion: R,
    core: Core,
    outputs: Outputs,
    supervision: Option<Supervision>,
    journal: J,
    /// The memory of the last order identifies its sender. A successor assumes that it does not
    /// until its first order: nobody is blamed for what another strategy may have sent.
    sender_is_authenticated: bool,
    failed: Option<String>,
}

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    /// Creates an engine that records its inputs in `journal`; `()` records nothing. Unless it is
    /// [`supervised`](Orchestrator::supervised) no strategy is ever retired or restarted.
    pub fn new(submit: R, completion: R, core: Core, outputs: Outputs, journal: J) -> Self {
        assert!(
            core.sessions.len() == outputs.strategies.len() && core.gateways.len() == outputs.gateways.len(),
            "core and outputs are of one run"
        );
        let (supervision, sender_is_authenticated, failed) = (None, true, None);
        Self { submit, completion, core, outputs, supervision, journal, sender_is_authenticated, failed }
    }

    /// Records an input, then applies it. Returns `false` if recording failed: it was not applied.
    #[inline(always)]
    fn record_and_apply<C: Clock>(
        &mut self,
        input: Input,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        let now = cycle.now.saturating_sub(cycle.time.start_ticks);
        if J::IS_ENABLED && !self.try_record(&input, now) {
            return false;
        }
        release(self);
        let Self { submit, completion, core, outputs, journal, .. } = self;
        core.apply(input, now, &mut Live { submit, completion, outputs, journal, cycle });
        true
    }

    #[inline(never)]
    fn try_record(&mut self, input: &Input, now: u64) -> bool {
        let recorded = input.encode(now, |payload| self.journal.record(payload));
        if let Err(error) = &recorded {
            self.failed = Some(format!("stops: its journal fails: {error}"));
        }
        recorded.is_ok()
    }
}

impl<R: Consumer, J: InputLog, C: Clock> Agent<C> for Orchestrator<R, J> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        if J::IS_ENABLED {
            if !self.outputs.deferred.is_empty() {
                self.release_durable_reports(cycle);
            }
            if self.failed.is_some() {
                return 0;
            }
        }
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.poll_fences(cycle);
        }
        if self.core.dying > 0 {
            self.poll_retirements(cycle);
        }
        if self.outputs.commands.as_ref().is_some_and(CommandChannel::has_pending) {
            self.poll_commands(cycle);
        }
        if self.supervision.as_ref().is_some_and(|supervision| cycle.now >= supervision.next_inspection) {
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
        // Queued messages are retried at once.
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
        self.core.checksums().for_each(|(end, sum)| log.append_checksum(end, sum));
        self.core.position_records().for_each(|record| log.append_record(record));
    }

    fn prefetch_hot(&self, round: usize) {
        prefetch_lines(self, AGENT_LINES);
        let Outputs { gateways, strategies, .. } = &self.outputs;
        if let Some(gateway) = round.checked_rem(gateways.len()) {
            prefetch_lines(&gateways[GatewayIndex(gateway as u16)], VALUE_LINES);
        }
        if let Some(strategy) = round.checked_rem(strategies.len()) {
            let strategy = StrategyIndex(strategy as u16);
            prefetch_lines(&strategies[strategy], VALUE_LINES);
            self.core.prefetch(strategy, VALUE_LINES);
        }
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let (counts, outputs) = (self.core.totals(), &self.outputs);
        let slot = slots.next_agent();
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
            slot.set(Counter::Journaled, last);
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
