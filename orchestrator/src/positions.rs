//! What each strategy has open and what it holds.

use crate::sign;
use protocol::wire::Report;

/// One strategy's position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Orders dispatched and not yet settled.
    pub open: u64,
    /// Net filled quantity in 1e-8 units, bought minus sold; wraps rather than stop the engine.
    pub net: i64,
}

/// All strategies' positions.
pub struct Positions {
    by_strategy: Vec<Position>,
}

impl Positions {
    pub(crate) fn new(strategies: usize) -> Self {
        Self { by_strategy: vec![Position::default(); strategies] }
    }

    /// A strategy's position.
    #[inline]
    pub fn of(&self, strategy: usize) -> Position {
        self.by_strategy[strategy]
    }

    /// An order goes to its venue.
    #[inline]
    pub(crate) fn open(&mut self, strategy: usize) {
        self.by_strategy[strategy].open += 1;
    }

    /// An order that was to go to its venue does not go.
    pub(crate) fn withdraw(&mut self, strategy: usize) {
        let position = &mut self.by_strategy[strategy];
        position.open = position.open.saturating_sub(1);
    }

    /// A strategy begins again: orders of its last incarnation do not count as its own open ones.
    pub(crate) fn reopen(&mut self, strategy: usize) {
        self.by_strategy[strategy].open = 0;
    }

    /// A venue's report comes back; `is_current`: it is about an order of the living incarnation. What a dead one has
    /// bought or sold it has bought or sold all the same.
    #[inline]
    pub(crate) fn settle(&mut self, strategy: usize, report: &Report, is_current: bool) {
        let position = &mut self.by_strategy[strategy];
        position.open = position.open.saturating_sub(u64::from(is_current && report.is_last));
        position.net = position.net.wrapping_add(sign(report.side).wrapping_mul(report.filled as i64));
    }
}
