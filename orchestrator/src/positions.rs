//! What each strategy has open and what it holds.

use crate::sign;
use shm::wire::{Report, Status};

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

    /// A venue's report comes back.
    #[inline]
    pub(crate) fn settle(&mut self, strategy: usize, report: &Report) {
        let position = &mut self.by_strategy[strategy];
        position.open = position.open.saturating_sub(1);
        if report.status == Status::Done {
            position.net = position.net.wrapping_add(sign(report.side).wrapping_mul(report.filled as i64));
        }
    }
}
