//! Cancel on disconnect and on a kill switch: cancels the orders concerned a few per duty cycle, so
//! that no other order is delayed.

use crate::venue::CancelSweep;
use protocol::wire::{CancelScope, MAX_STRATEGIES};
use std::collections::VecDeque;

/// Number of open orders visited per duty cycle by a mass cancel.
pub(crate) const SWEEP_BATCH: usize = 64;

pub(crate) struct CancelSweeps(VecDeque<CancelSweep>);

impl CancelSweeps {
    /// Creates an empty queue of mass cancels, with capacity for one per strategy. So a crash
    /// allocates nothing.
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(MAX_STRATEGIES))
    }

    /// Adds a mass cancel of the open orders in a scope. The orchestrator sends no more orders of
    /// it.
    #[cold]
    pub(crate) fn add(&mut self, scope: CancelScope) {
        self.0.push_back(CancelSweep { scope, cursor: 0, budget: 0, now: 0 });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Continues the mass cancels in order, visiting at most `budget` orders. `step` returns `true`
    /// once its sweep is complete. Returns `true` if an order was visited or a sweep completed.
    pub(crate) fn run(
        &mut self,
        mut budget: usize,
        now: u64,
        mut step: impl FnMut(&mut CancelSweep) -> bool,
    ) -> bool {
        let initial_budget = budget;
        while let Some(sweep) = self.0.front_mut() {
            (sweep.budget, sweep.now) = (budget, now);
            if !step(sweep) {
                return sweep.budget < initial_budget;
            }
            budget = sweep.budget;
            self.0.pop_front();
        }
        true
    }
}
