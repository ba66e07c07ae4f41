//! Cancel on disconnect and on a kill switch: the orders concerned leave their venue at once, a few
//! in each duty cycle, so that nobody else's order waits for it.

use crate::venue::Sweep;
use protocol::wire::{CancelScope, MAX_STRATEGIES};
use std::collections::VecDeque;

/// Orders that one duty cycle looks at: about as much work as a batch of orders.
pub(crate) const LOOKS: usize = 64;

/// The sweeps that are due, in the order in which they were asked for.
pub(crate) struct Disconnects(VecDeque<Sweep>);

impl Disconnects {
    /// None; with room for one of each strategy, so that a death allocates nothing.
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(MAX_STRATEGIES))
    }

    /// All orders of the scope are to be cancelled. Orders that come later are not: the
    /// orchestrator sends none any more.
    #[cold]
    pub(crate) fn add(&mut self, scope: CancelScope) {
        self.0.push_back(Sweep { scope, cursor: 0, looks: 0, now: 0 });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does the sweeps in their order with so many looks, as far as they come, at `now` (ticks).
    /// `step` says whether one has come to its end. Whether anything was looked at, or has come to
    /// its end.
    pub(crate) fn work(
        &mut self,
        mut looks: usize,
        now: u64,
        mut step: impl FnMut(&mut Sweep) -> bool,
    ) -> bool {
        let all = looks;
        while let Some(sweep) = self.0.front_mut() {
            (sweep.looks, sweep.now) = (looks, now);
            if !step(sweep) {
                return sweep.looks < all;
            }
            looks = sweep.looks;
            self.0.pop_front();
        }
        true
    }
}
