//! A strategy's session: the current incarnation and its next order.

use protocol::checksum::Checksum;
use protocol::index::StrategyIndex;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{MAX_SEQUENCE, OrderId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionState {
    #[default]
    Alive,
    Quarantined,
    Dying {
        /// Time at which the fence was seen, in ticks since the run's start.
        noticed: u64,
    },
    Dead,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StrategySession {
    /// Id of the next order as a word; [`NO_ORDER`] while none is accepted. One comparison proves
    /// that an order is from the current incarnation and not skipped, repeated or forged.
    expected: u64,
    pub epoch: u16,
    pub state: SessionState,
    pub strategy: StrategyIndex,
    next: u64,
    /// Remaining number of orders that all incarnations may send by the plan: the stamp logs have
    /// no capacity for more.
    pub budget: u64,
    pub violation: Option<ProtocolViolation>,
    pub offenses: u32,
    /// Whether an operator has ended the strategy; its kill switch is then turned off for its
    /// successor.
    pub is_ending: bool,
    /// Whether the strategy is dead and an operator adds its successor.
    pub is_added: bool,
    pub refused: u64,
    pub orphaned: u64,
    pub taken: Checksum,
    pub returned: Checksum,
}

const NO_ORDER: u64 = u64::MAX;

impl StrategySession {
    pub(crate) fn new(strategy: StrategyIndex, budget: u64) -> Self {
        Self { expected: OrderId::new(strategy.0, 0, 0).word(), strategy, budget, ..Self::default() }
    }

    /// Returns the session as after a death that is repaired: a spare strategy's first incarnation
    /// never runs.
    pub(crate) fn retired(mut self) -> Self {
        self.end_incarnation(SessionState::Dead);
        self
    }

    #[inline(always)]
    pub(crate) const fn is_next(&self, id: OrderId) -> bool {
        id.word() == self.expected
    }

    #[inline(always)]
    pub(crate) const fn advance(&mut self, id: OrderId) {
        self.expected = id.word() + 1;
    }

    #[inline(always)]
    pub(crate) const fn is_current(&self, id: OrderId) -> bool {
        // Strategy and epoch are above the sequence.
        (id.word() ^ self.expected) <= MAX_SEQUENCE
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.state == SessionState::Dead
    }

    pub(crate) fn is_begun_by(&self, life: Incarnation) -> bool {
        self.is_retired() && life.epoch > self.epoch
    }

    pub(crate) fn is_ended_by(&self, life: Incarnation) -> bool {
        self.is_served() && life.fenced && life.epoch == self.epoch
    }

    pub(crate) fn is_dying(&self) -> bool {
        matches!(self.state, SessionState::Dying { .. })
    }

    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, SessionState::Alive | SessionState::Quarantined)
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_order().map_or(self.next, OrderId::sequence)
    }

    pub(crate) fn next_order(&self) -> Option<OrderId> {
        (self.expected != NO_ORDER).then(|| OrderId::from_word(self.expected))
    }

    pub(crate) fn skip(&mut self, id: OrderId) {
        if id.epoch() == self.epoch {
            self.next = self.next.max(id.sequence() + 1);
        }
    }

    pub(crate) fn end_incarnation(&mut self, state: SessionState) {
        self.next = self.next_sequence();
        self.expected = NO_ORDER;
        self.state = state;
    }

    pub(crate) fn begin_incarnation(&mut self, epoch: u16) {
        *self = Self {
            expected: OrderId::new(self.strategy.0, epoch, 0).word(),
            epoch,
            refused: self.refused,
            orphaned: self.orphaned,
            ..Self::new(self.strategy, self.budget)
        };
    }
}
