//! A strategy's session: which incarnation is served, and which order comes next.

use protocol::checksum::Checksum;
use protocol::supervision::Misconduct;
use protocol::wire::{MAX_SEQUENCE, OrderId};
use serde::{Deserialize, Serialize};

/// The state of a strategy's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionState {
    /// Its orders are accepted.
    Alive,
    /// It misbehaved: nothing more is accepted. Its process may still run.
    Quarantined,
    /// Its death is certain. The venues are told, and what it left in the submit hand-off is being taken.
    Dying {
        /// When the fence was seen, in ticks.
        noticed: u64,
    },
    /// Nothing of it is left.
    Dead,
}

/// One strategy's session.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StrategySession {
    /// The id that its next order must have, as a word; [`NOBODY`] while none is taken. One comparison says that an order is
    /// from the living incarnation of the right strategy and that none was left out, repeated or forged.
    expected: u64,
    /// The incarnation.
    pub epoch: u16,
    pub state: SessionState,
    pub strategy: u16,
    /// The next sequence when it was last alive.
    next: u64,
    /// Orders that the plan still has for it, all its incarnations together: so many have room in the stamp logs.
    pub budget: u64,
    /// What it was quarantined for.
    pub why: Option<Misconduct>,
    /// Orders beyond what a mistake explains.
    pub offences: u32,
    /// Orders refused because their sender was dead.
    pub refused: u64,
    /// Reports that nobody was there to take.
    pub orphaned: u64,
    /// The orders that were taken from this incarnation, word for word.
    pub taken: Checksum,
}

/// No order's id.
const NOBODY: u64 = u64::MAX;

impl StrategySession {
    pub(crate) fn new(strategy: u16) -> Self {
        Self {
            expected: OrderId::new(strategy, 0, 0).word(),
            epoch: 0,
            state: SessionState::Alive,
            strategy,
            next: 0,
            budget: u64::MAX,
            why: None,
            offences: 0,
            refused: 0,
            orphaned: 0,
            taken: Checksum::default(),
        }
    }

    /// Whether the order is the next one of the living incarnation.
    #[inline(always)]
    pub(crate) const fn is_next(&self, id: OrderId) -> bool {
        id.word() == self.expected
    }

    /// Moves on after the order with this id.
    #[inline(always)]
    pub(crate) const fn advance(&mut self, id: OrderId) {
        self.expected = id.word() + 1;
    }

    /// Whether a report goes to the living incarnation.
    #[inline(always)]
    pub(crate) const fn is_current(&self, id: OrderId) -> bool {
        // Above the sequence stand strategy and epoch.
        (id.word() ^ self.expected) <= MAX_SEQUENCE
    }

    /// It is dead, and nothing waits for it any more.
    pub(crate) fn is_retired(&self) -> bool {
        self.state == SessionState::Dead
    }

    /// Reports are returned to it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, SessionState::Alive | SessionState::Quarantined)
    }

    /// The next sequence of this incarnation.
    pub(crate) const fn next(&self) -> u64 {
        if self.expected == NOBODY { self.next } else { OrderId::from_word(self.expected).sequence() }
    }

    /// The id that its next order must have; `None` while none is taken.
    pub(crate) fn next_order(&self) -> Option<OrderId> {
        (self.expected != NOBODY).then(|| OrderId::from_word(self.expected))
    }

    /// Skips a refused order of a dead incarnation.
    pub(crate) fn skip(&mut self, id: OrderId) {
        if id.epoch() == self.epoch {
            self.next = self.next.max(id.sequence() + 1);
        }
        self.refused += 1;
    }

    /// Nothing more is taken from this incarnation.
    pub(crate) fn close(&mut self, state: SessionState) {
        self.next = self.next();
        self.expected = NOBODY;
        self.state = state;
    }

    /// The next incarnation is there.
    pub(crate) fn open(&mut self, epoch: u16) {
        *self = Self {
            expected: OrderId::new(self.strategy, epoch, 0).word(),
            epoch,
            budget: self.budget,
            refused: self.refused,
            orphaned: self.orphaned,
            ..Self::new(self.strategy)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_next_order_of_the_living_is_expected() {
        let mut line = StrategySession::new(3);
        assert!(line.is_next(OrderId::new(3, 0, 0)) && !line.is_next(OrderId::new(3, 0, 1)));
        line.advance(OrderId::new(3, 0, 0));
        assert!(line.is_next(OrderId::new(3, 0, 1)) && !line.is_next(OrderId::new(4, 0, 1)));
        assert!(line.is_current(OrderId::new(3, 0, 77)) && !line.is_current(OrderId::new(3, 1, 0)));
        line.close(SessionState::Dead);
        assert!(!line.is_next(OrderId::new(3, 0, 1)) && !line.is_current(OrderId::new(3, 0, 0)));
        assert_eq!(line.next(), 1);
        line.open(1);
        assert!(line.is_next(OrderId::new(3, 1, 0)) && line.is_current(OrderId::new(3, 1, 9)));
        assert!(!line.is_next(OrderId::new(3, 0, 1)));
    }
}
