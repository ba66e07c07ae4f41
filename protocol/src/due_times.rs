//! When the orders of strategies are due, by the schedules in shared memory.

use crate::index::StrategyIndex;
use crate::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// The due times of all strategies' orders, read from one schedule segment for each strategy;
/// constant during a run.
#[derive(Clone, Copy)]
pub struct DueTimes<'a>(pub &'a [ReadOnlyWords]);

impl DueTimes<'_> {
    /// Returns when an order of a strategy is due, in nanoseconds since the start of the run.
    pub fn due_ns(&self, strategy: StrategyIndex, order: usize) -> u64 {
        let at = HEADER_WORDS + order * SCHEDULE_ENTRY_WORDS;
        self.0[strategy.as_usize()].load(at, Ordering::Relaxed)
    }

    /// Returns the first due time after `since_ns` among a strategy's `orders` orders, in
    /// nanoseconds since the start.
    pub fn first_after(&self, strategy: StrategyIndex, orders: usize, since_ns: u64) -> Option<u64> {
        // Entries come in the order of their times.
        let (mut from, mut to) = (0, orders);
        while from < to {
            let middle = from.midpoint(to);
            if self.due_ns(strategy, middle) <= since_ns { from = middle + 1 } else { to = middle }
        }
        (from < orders).then(|| self.due_ns(strategy, from))
    }
}
