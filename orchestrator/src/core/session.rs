//! A strategy's session: which incarnation is served, and which order comes next.

use protocol::checksum::Checksum;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{MAX_SEQUENCE, OrderId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionState {
    /// Its orders are accepted.
    Alive,
    /// It misbehaved: nothing more is accepted. Its process may still run.
    Quarantined,
    /// Its death is certain. What it left in the submit hand-off is being taken.
    Dying {
        /// When the fence was seen, in ticks since the run's start.
        noticed: u64,
    },
    /// Nothing of it is left.
    Dead,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StrategySession {
    /// The id of its next order as a word; [`NOBODY`] while none is accepted. One comparison says
    /// that an order is from the living incarnation of the right strategy and that none was left
    /// out, repeated or forged.
    expected: u64,
    pub epoch: u16,
    pub state: SessionState,
    pub strategy: u16,
    /// The next sequence when it was last alive.
    next: u64,
    /// Orders that the plan still has for all its incarnations together: the stamp logs have room
    /// for no more.
    pub budget: u64,
    pub why: Option<ProtocolViolation>,
    /// Rejected orders that only a mistake explains.
    pub offences: u32,
    /// Orders refused because their sender was dead.
    pub refused: u64,
    /// Reports that no living incarnation was there to take.
    pub orphaned: u64,
    /// The orders taken from this incarnation.
    pub taken: Checksum,
    /// The reports returned to it.
    pub returned: Checksum,
}

const NOBODY: u64 = u64::MAX;

impl StrategySession {
    /// The first incarnation, which may send `budget` orders.
    pub(crate) fn new(strategy: u16, budget: u64) -> Self {
        Self {
            expected: OrderId::new(strategy, 0, 0).word(),
            epoch: 0,
            state: SessionState::Alive,
            strategy,
            next: 0,
            budget,
            why: None,
            offences: 0,
            refused: 0,
            orphaned: 0,
            taken: Checksum::default(),
            returned: Checksum::default(),
        }
    }

    /// Returns `true` if the order is the next one of the living incarnation.
    #[inline(always)]
    pub(crate) const fn is_next(&self, id: OrderId) -> bool {
        id.word() == self.expected
    }

    #[inline(always)]
    pub(crate) const fn advance(&mut self, id: OrderId) {
        self.expected = id.word() + 1;
    }

    /// Returns `true` if an order, or a report of it, is the living incarnation's.
    #[inline(always)]
    pub(crate) const fn is_current(&self, id: OrderId) -> bool {
        // Strategy and epoch are above the sequence.
        (id.word() ^ self.expected) <= MAX_SEQUENCE
    }

    /// Returns `true` if it is dead and nothing of it is left.
    pub(crate) fn is_retired(&self) -> bool {
        self.state == SessionState::Dead
    }

    /// Returns `true` if `life` is the start of the next incarnation.
    pub(crate) fn is_begun_by(&self, life: Incarnation) -> bool {
        self.is_retired() && life.epoch > self.epoch
    }

    /// Returns `true` if `life` is the death of the served incarnation.
    pub(crate) fn is_ended_by(&self, life: Incarnation) -> bool {
        self.is_served() && life.fenced && life.epoch == self.epoch
    }

    pub(crate) fn is_dying(&self) -> bool {
        matches!(self.state, SessionState::Dying { .. })
    }

    /// Returns `true` if reports are returned to it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, SessionState::Alive | SessionState::Quarantined)
    }

    pub(crate) fn next(&self) -> u64 {
        self.next_order().map_or(self.next, OrderId::sequence)
    }

    /// Returns the id of its next order; `None` while none is accepted.
    pub(crate) fn next_order(&self) -> Option<OrderId> {
        (self.expected != NOBODY).then(|| OrderId::from_word(self.expected))
    }

    /// Skips a refused order of a dead incarnation.
    pub(crate) fn skip(&mut self, id: OrderId) {
        if id.epoch() == self.epoch {
            self.next = self.next.max(id.sequence() + 1);
        }
    }

    /// Accepts nothing more from this incarnation.
    pub(crate) fn close(&mut self, state: SessionState) {
        self.next = self.next();
        self.expected = NOBODY;
        self.state = state;
    }

    pub(crate) fn open(&mut self, epoch: u16) {
        *self = Self {
            expected: OrderId::new(self.strategy, epoch, 0).word(),
            epoch,
            refused: self.refused,
            orphaned: self.orphaned,
            ..Self::new(self.strategy, self.budget)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_order_of_the_living_is_expected() {
        let mut session = StrategySession::new(3, 100);
        assert!(session.is_next(OrderId::new(3, 0, 0)) && !session.is_next(OrderId::new(3, 0, 1)));
        session.advance(OrderId::new(3, 0, 0));
        assert!(session.is_next(OrderId::new(3, 0, 1)) && !session.is_next(OrderId::new(4, 0, 1)));
        assert!(session.is_current(OrderId::new(3, 0, 77)) && !session.is_current(OrderId::new(3, 1, 0)));
        session.close(SessionState::Dead);
        assert!(!session.is_next(OrderId::new(3, 0, 1)) && !session.is_current(OrderId::new(3, 0, 0)));
        assert_eq!(session.next(), 1);
        session.open(1);
        assert!(session.is_next(OrderId::new(3, 1, 0)) && session.is_current(OrderId::new(3, 1, 9)));
        assert!(!session.is_next(OrderId::new(3, 0, 1)));
    }
}
