//! A strategy's line as the orchestrator sees it: which incarnation is there, and which order of it comes next.

use protocol::checksum::Checksum;
use protocol::supervision::Misconduct;
use protocol::wire::{MAX_SEQUENCE, OrderId};
use serde::{Deserialize, Serialize};

/// How a strategy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LineState {
    /// Its orders are taken.
    Alive,
    /// It misbehaved: nothing more is taken from it. Its process may still run.
    Quarantined,
    /// It is dead for certain. What it left is being repaired, and its venues are being told.
    Dying {
        /// When the fence was seen, in ticks.
        noticed: u64,
        /// How many venues have been told.
        told: usize,
    },
    /// All of that is done.
    Dead,
}

/// One strategy's line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StrategyLine {
    /// The id that its next order must have, as a word; [`NOBODY`] while none is taken. One comparison says that an order is
    /// from the living incarnation of the right strategy and that none was left out, repeated or forged.
    expected: u64,
    /// The incarnation.
    pub epoch: u16,
    pub state: LineState,
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

impl StrategyLine {
    pub(crate) fn new(strategy: u16) -> Self {
        Self {
            expected: OrderId::new(strategy, 0, 0).word(),
            epoch: 0,
            state: LineState::Alive,
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

    /// The order with this id was taken.
    #[inline(always)]
    pub(crate) const fn took(&mut self, id: OrderId) {
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
        self.state == LineState::Dead
    }

    /// Reports are returned to it.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.state, LineState::Alive | LineState::Quarantined)
    }

    /// The next sequence of this incarnation.
    pub(crate) const fn next(&self) -> u64 {
        if self.expected == NOBODY { self.next } else { OrderId::from_word(self.expected).sequence() }
    }

    /// The id that its next order must have; `None` while none is taken.
    pub(crate) fn next_order(&self) -> Option<OrderId> {
        (self.expected != NOBODY).then(|| OrderId::from_word(self.expected))
    }

    /// An order of the dead incarnation, which is refused, was looked at.
    pub(crate) fn passed(&mut self, id: OrderId) {
        if id.epoch() == self.epoch {
            self.next = self.next.max(id.sequence() + 1);
        }
        self.refused += 1;
    }

    /// Nothing more is taken from this incarnation.
    pub(crate) fn close(&mut self, state: LineState) {
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
        let mut line = StrategyLine::new(3);
        assert!(line.is_next(OrderId::new(3, 0, 0)) && !line.is_next(OrderId::new(3, 0, 1)));
        line.took(OrderId::new(3, 0, 0));
        assert!(line.is_next(OrderId::new(3, 0, 1)) && !line.is_next(OrderId::new(4, 0, 1)));
        assert!(line.is_current(OrderId::new(3, 0, 77)) && !line.is_current(OrderId::new(3, 1, 0)));
        line.close(LineState::Dead);
        assert!(!line.is_next(OrderId::new(3, 0, 1)) && !line.is_current(OrderId::new(3, 0, 0)));
        assert_eq!(line.next(), 1);
        line.open(1);
        assert!(line.is_next(OrderId::new(3, 1, 0)) && line.is_current(OrderId::new(3, 1, 9)));
        assert!(!line.is_next(OrderId::new(3, 0, 1)));
    }
}
