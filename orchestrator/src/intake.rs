//! Where inputs come from: the two contended hand-offs, and the queues of what has not gone out
//! yet.

use super::{BATCH, Orchestrator};
use crate::core::Input;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::record::Point;
use protocol::supervision::ProtocolViolation;
use protocol::wire::{Message, Report};
use shm::ring::{Consumer, PeerFault};
use system::clock::Clock;

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    #[inline(always)]
    pub(crate) fn poll_completion<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = next_message::<J>(&mut self.completion) else { break };
            let input = Input::Report { gateway: from.map(|gateway| gateway as u16), message };
            if !self.take(input, |engine| release::<J>(&mut engine.completion), cycle) {
                break;
            }
            taken += 1;
        }
        taken
    }

    #[inline(always)]
    pub(crate) fn poll_submit<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = next_message::<J>(&mut self.submit) else { break };
            if !self.take_order(from, message, |engine| release::<J>(&mut engine.submit), cycle) {
                break;
            }
            taken += 1;
        }
        if let Some((from, fault)) = self.submit.take_fault() {
            self.peer_fault(from, fault, cycle);
        }
        taken
    }

    #[inline(always)]
    pub(crate) fn take_order<C: Clock>(
        &mut self,
        from: Option<usize>,
        message: Message,
        release: impl FnOnce(&mut Self),
        cycle: &mut Cycle<C>,
    ) -> bool {
        // The first order of a new incarnation may be faster than its fence: in a ring that
        // strategies share, and through the kernel.
        if !self.core.expects(&message) {
            self.poll_fences(cycle);
        }
        self.take(Input::Order { from: from.map(|strategy| strategy as u16), message }, release, cycle)
    }

    #[cold]
    fn peer_fault<C: Clock>(&mut self, from: Option<usize>, fault: PeerFault, cycle: &mut Cycle<C>) {
        let why = match fault {
            PeerFault::Framing { .. } => ProtocolViolation::Garbage,
            PeerFault::InvalidIndex { .. } | PeerFault::Stranger { .. } => ProtocolViolation::ForeignId,
            _ => ProtocolViolation::BadCursor,
        };
        let from = from.map(|index| index as u16);
        self.take(Input::Violation { from, why }, |_| (), cycle);
    }

    /// A strategy has more reports queued than its open orders can have.
    #[cold]
    pub(crate) fn report_overflow<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(strategy) = self.outputs.overflowed.take() else { return };
        let from = self.core.sender_is_authenticated.then_some(strategy as u16);
        self.take(Input::Violation { from, why: ProtocolViolation::Flood }, |_| (), cycle);
    }

    /// Takes back the orders that are queued for a gateway and must not go any more.
    #[cold]
    pub(crate) fn recall_pending<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        self.outputs.recall_is_due = false;
        for gateway in 0..self.outputs.gateways.len() {
            while let Some(&message) =
                self.outputs.gateways[gateway].find(|message| self.core.must_recall(message))
            {
                let remove = |engine: &mut Self| engine.outputs.recall(gateway, |queued| *queued == message);
                if !self.take(Input::Recalled { message }, remove, cycle) {
                    return;
                }
            }
        }
    }

    /// Returns the reports whose journal records are durable. Returns `false` if the journal has
    /// failed.
    #[inline(always)]
    pub(crate) fn release_durable_reports<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> bool {
        if !self.outputs.deferred.is_empty() {
            self.return_deferred(cycle);
        }
        self.failed.is_none()
    }

    #[inline(never)]
    fn return_deferred<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        if let Some(error) = self.journal.failure() {
            self.failed = Some(format!("stops: its journal fails: {error}"));
            return;
        }
        let durable = self.journal.durable();
        while let Some((_, message)) = self.outputs.deferred.pop_front_if(|(record, _)| *record <= durable) {
            let Ok(report) = Report::from_message(message) else { continue };
            // Also one whose strategy has died since: which reports have their stamp follows from
            // their order.
            cycle.pass_with(Point::OrchReturn, report.id, report.number);
            let strategy = usize::from(report.id.strategy());
            if self.core.sessions[strategy].is_current(report.id) {
                self.outputs.send_to_strategy(strategy, &message);
            }
        }
    }
}

/// The next message. With a journal its slot is given back only once it is recorded: a successor
/// takes it again until then.
#[inline(always)]
fn next_message<J: InputLog>(from: &mut impl Consumer) -> Option<(Option<usize>, Message)> {
    if J::IS_ENABLED { from.take() } else { from.try_pop() }
}

#[inline(always)]
fn release<J: InputLog>(to: &mut impl Consumer) {
    if J::IS_ENABLED {
        to.release();
    }
}
