//! The engine as an agent: what one duty cycle polls and in which order, and the counters that it
//! publishes.

use crate::engine::Core;
use crate::fences::Supervision;
use crate::outputs::Outputs;
use crate::shell::Orchestrator;
use journal::InputLog;
use protocol::agent::{Agent, Cycle};
use protocol::commands::CommandChannel;
use protocol::counters::CounterSlots;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::labels::OrchestratorCounter as Counter;
use protocol::stamps::StampLog;
use shm::prefetch::prefetch_lines;
use shm::ring::Consumer;
use system::clock::Clock;

const VALUE_LINES: usize = 8;
/// Cache lines of the agent that are prefetched: all of them.
const AGENT_LINES: usize = 64;

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
        if self.core.has_retirements() {
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
            || self.core.has_retirements()
            || self.outputs.has_queued_reports
            || !self.outputs.deferred.is_empty();
        if is_waiting { 0 } else { u64::MAX }
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn seal(&self, log: &mut StampLog) {
        append_final_records(&self.core, log);
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
        self.core.book_last_order();
        let (counts, outputs) = (self.core.counts(), &self.outputs);
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
        let (submit, completion) =
            (self.hand_offs.submit.allocation(), self.hand_offs.completion.allocation());
        slot.set(Counter::BlocksFresh, submit.fresh.saturating_add(completion.fresh));
        slot.set(Counter::BlocksReused, submit.reused.saturating_add(completion.reused));
    }
}

/// Appends the checksums of all link ends and all positions to a log. Not generic: compiled once.
#[inline(never)]
fn append_final_records(core: &Core, log: &mut StampLog) {
    core.checksums().for_each(|(end, sum)| log.append_checksum(end, sum));
    core.position_records().for_each(|record| log.append_record(record));
}
