//! Cancel on disconnect: the orders of a strategy that died leave their venue at once, a few places in each duty cycle, so
//! that nobody else's order waits for it.

use crate::Held;
use protocol::wire::{MAX_STRATEGIES, Order, OrderId};
use std::collections::VecDeque;

/// Places that one duty cycle looks at: about as much work as a batch of orders.
pub(crate) const LOOKS: usize = 64;

/// A sweep through all places for the orders of one dead incarnation and those before it.
struct Sweep {
    id: OrderId,
    from: usize,
}

/// The sweeps that are due, in the order in which they were asked for.
pub(crate) struct Disconnects(VecDeque<Sweep>);

impl Disconnects {
    /// None; with room for one of each strategy, so that a death allocates nothing.
    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(MAX_STRATEGIES))
    }

    /// All orders of the id's strategy, up to the id's epoch, are to be cancelled. Orders that come later are not: the
    /// orchestrator sends none of that epoch any more.
    #[cold]
    pub(crate) fn add(&mut self, id: OrderId) {
        self.0.push_back(Sweep { id, from: 0 });
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next order to cancel, if one is found within what is left of `looks`.
    pub(crate) fn next(&mut self, held: &mut Held, looks: &mut usize) -> Option<Order> {
        while *looks > 0 {
            let sweep = self.0.front_mut()?;
            let dead = sweep.id;
            let found = held.cancel(&mut sweep.from, looks, |order| {
                order.id.strategy() == dead.strategy() && order.id.epoch() <= dead.epoch()
            });
            if found.is_some() {
                return found;
            }
            if sweep.from == held.places() {
                self.0.pop_front();
            }
        }
        None
    }
}
