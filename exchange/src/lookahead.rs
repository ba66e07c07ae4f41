//! How much an order would trade, before it does: for fill or kill and minimum quantity.

use crate::arena::{NONE, Node};
use crate::book::Book;
use crate::command::SelfTrade;
use crate::levels::Levels;
use crate::matching::Taker;
use crate::store::Store;

/// What one queue would give.
enum Answer {
    /// So much, and the order would go on.
    On(u64),
    /// So much, and self-trade prevention would end the order.
    End(u64),
}

impl<L: Levels> Book<L> {
    /// Whether the order would trade at least that much.
    pub(crate) fn would_trade(&self, store: &Store<L>, taker: &Taker, needed: u64) -> bool {
        let part = taker.other();
        let mut taker = *taker;
        let mut traded = 0;
        let mut queue = self.first[part as usize];
        while queue != NONE && traded < needed && taker.leaves > 0 {
            let level = store.arena.node(queue);
            if !taker.accepts(level.price) {
                break;
            }
            match store.look(level, &mut taker) {
                Answer::On(quantity) => traded += quantity,
                Answer::End(quantity) => return traded + quantity >= needed,
            }
            queue = self.next(store, part, queue);
        }
        traded >= needed
    }
}

impl<L: Levels> Store<L> {
    fn look(&self, queue: &Node, taker: &mut Taker) -> Answer {
        let nodes = self.orders(queue);
        let owner = taker.owner;
        match taker.self_trade {
            SelfTrade::Allow => Answer::On(taker.take(queue.leaves)),
            SelfTrade::CancelOldest => {
                let others = nodes.filter(|node| node.owner != owner).map(|node| node.leaves).sum();
                Answer::On(taker.take(others))
            }
            SelfTrade::CancelNewest | SelfTrade::CancelBoth => {
                let mut shown = 0;
                for node in nodes {
                    if node.owner == owner {
                        // The next parts of icebergs come behind this order, so they do not count.
                        return Answer::End(taker.take(shown));
                    }
                    shown += node.shown;
                }
                Answer::On(taker.take(queue.leaves))
            }
            SelfTrade::Decrement => {
                let (mut traded, mut hidden) = (0, 0);
                for node in nodes {
                    let lost = taker.leaves.min(if node.owner == owner { node.leaves } else { node.shown });
                    taker.leaves -= lost;
                    if node.owner != owner {
                        traded += lost;
                        hidden += node.leaves - node.shown;
                    }
                }
                // The own orders are gone or the aggressor is; the next parts of the others come
                // after them.
                let rest = taker.leaves.min(hidden);
                taker.leaves -= rest;
                Answer::On(traded + rest)
            }
        }
    }
}

impl Taker {
    /// Uses up to that much of what is open of it, and says how much.
    fn take(&mut self, quantity: u64) -> u64 {
        let taken = self.leaves.min(quantity);
        self.leaves -= taken;
        taken
    }
}
