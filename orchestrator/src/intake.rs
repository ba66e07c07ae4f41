//! Polls the two contended hand-offs and the control segment, recalls queued orders, and turns what
//! arrives into inputs of the core.

use crate::engine::Input;
use crate::outputs::BATCH;
use crate::shell::Orchestrator;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::supervision::ProtocolViolation;
use protocol::wire::{Message, Report};
use shm::ring::{Consumer, PeerFault};
use system::clock::Clock;

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    #[inline(always)]
    pub(crate) fn poll_completion<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = next_message::<J>(&mut self.hand_offs.completion) else { break };
            let input = Input::Report { gateway: from.map(|gateway| GatewayIndex(gateway as u16)), message };
            if !self.record_and_apply(
                input,
                |engine| release_slot::<J>(&mut engine.hand_offs.completion),
                cycle,
            ) {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Takes all reports that are in the completion hand-off.
    #[cold]
    pub(crate) fn drain_completion<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        while let Some((from, message)) = next_message::<J>(&mut self.hand_offs.completion) {
            let input = Input::Report { gateway: from.map(|gateway| GatewayIndex(gateway as u16)), message };
            let release = |engine: &mut Self| release_slot::<J>(&mut engine.hand_offs.completion);
            if !self.record_and_apply_off_path(input, release, cycle) {
                break;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn poll_submit<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = next_message::<J>(&mut self.hand_offs.submit) else { break };
            let input = self.order_input(from, message, cycle);
            if !self.record_and_apply(input, |engine| release_slot::<J>(&mut engine.hand_offs.submit), cycle)
            {
                break;
            }
            taken += 1;
        }
        if let Some((from, fault)) = self.hand_offs.submit.take_fault() {
            self.record_peer_fault(from, fault, cycle);
        }
        taken
    }

    /// Turns a message into an order input, after reading changed incarnations if it may be a new
    /// one's.
    #[inline(always)]
    pub(crate) fn order_input<C: Clock>(
        &mut self,
        from: Option<usize>,
        message: Message,
        cycle: &mut Cycle<C>,
    ) -> Input {
        if !self.core.is_next_order(&message) {
            self.poll_fences(cycle);
        }
        self.sender_is_authenticated = from.is_some();
        Input::Order { from: from.map(|strategy| StrategyIndex(strategy as u16)), message }
    }

    #[cold]
    fn record_peer_fault<C: Clock>(&mut self, from: Option<usize>, fault: PeerFault, cycle: &mut Cycle<C>) {
        let why = match fault {
            PeerFault::Framing { .. } => ProtocolViolation::Garbage,
            PeerFault::InvalidIndex { .. } | PeerFault::Stranger { .. } => ProtocolViolation::ForeignId,
            _ => ProtocolViolation::BadCursor,
        };
        let from = from.map(|index| StrategyIndex(index as u16));
        self.record_and_apply_off_path(Input::Violation { from, why }, |_| (), cycle);
    }

    #[cold]
    pub(crate) fn report_overflow<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(strategy) = self.outputs.overflowed.take() else { return };
        let from = self.sender_is_authenticated.then_some(strategy);
        self.record_and_apply_off_path(
            Input::Violation { from, why: ProtocolViolation::Flood },
            |_| (),
            cycle,
        );
    }

    #[cold]
    pub(crate) fn recall_pending<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        self.outputs.recall_is_due = false;
        for gateway in self.outputs.gateways.indices() {
            while let Some(&message) =
                self.outputs.gateways[gateway].find(|message| self.core.should_recall(message))
            {
                let remove = |engine: &mut Self| engine.outputs.recall(gateway, &message);
                if !self.record_and_apply_off_path(Input::Recalled { message }, remove, cycle) {
                    return;
                }
            }
        }
    }

    #[inline(never)]
    pub(crate) fn release_durable_reports<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        if let Some(error) = self.journal.failure() {
            self.failed = Some(format!("stops: its journal fails: {error}"));
            return;
        }
        let durable = self.journal.durable();
        while let Some((_, message)) = self.outputs.deferred.pop_front_if(|(record, _)| *record <= durable) {
            let Ok(report) = Report::from_message(message) else { continue };
            self.outputs.return_report(&report, &message, self.core.is_current(report.id), cycle);
        }
    }
}

/// Returns the next message. With a journal its slot is released only once it is recorded: until
/// then a successor takes it again.
#[inline(always)]
fn next_message<J: InputLog>(from: &mut impl Consumer) -> Option<(Option<usize>, Message)> {
    if J::IS_ENABLED { from.take() } else { from.try_pop() }
}

#[inline(always)]
fn release_slot<J: InputLog>(to: &mut impl Consumer) {
    if J::IS_ENABLED {
        to.release();
    }
}
