//! The quantity that an order could trade: for fill or kill and minimum quantity.

use crate::arena::{NONE, Node};
use crate::book::Book;
use crate::command::SelfTrade;
use crate::matching::Taker;
use crate::store::OrderStore;

enum LevelFill {
    /// The quantity; the order would continue at the next level.
    Continues(u64),
    /// The quantity; self-trade prevention would then cancel the order.
    Ends(u64),
}

impl Book {
    /// Returns `true` if an incoming order would trade at least `needed`.
    pub(crate) fn can_fill(&self, store: &OrderStore, taker: &Taker, needed: u64) -> bool {
        let part = taker.opposite();
        let mut taker = *taker;
        let mut traded = 0;
        let mut queue = self.first[part as usize];
        while queue != NONE && traded < needed && taker.leaves > 0 {
            let level = store.arena.node(queue);
            if !taker.can_trade_at(level.price) {
                break;
            }
            match store.level_fill(level, &mut taker) {
                LevelFill::Continues(quantity) => traded += quantity,
                LevelFill::Ends(quantity) => return traded + quantity >= needed,
            }
            queue = self.next(store, part, queue);
        }
        traded >= needed
    }
}

impl OrderStore {
    fn level_fill(&self, queue: &Node, taker: &mut Taker) -> LevelFill {
        let nodes = self.orders(queue);
        let owner = taker.owner;
        match taker.self_trade {
            SelfTrade::Allow => LevelFill::Continues(taker.consume(queue.leaves)),
            SelfTrade::CancelOldest => {
                let others = nodes.filter(|node| node.owner != owner).map(|node| node.leaves).sum();
                LevelFill::Continues(taker.consume(others))
            }
            SelfTrade::CancelNewest | SelfTrade::CancelBoth => {
                let mut shown = 0;
                for node in nodes {
                    if node.owner == owner {
                        // Further parts of icebergs queue after this order, so they do not count.
                        return LevelFill::Ends(taker.consume(shown));
                    }
                    shown += node.shown;
                }
                LevelFill::Continues(taker.consume(queue.leaves))
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
                // Its own orders are done, or the aggressor is; further parts of icebergs follow.
                let later_parts = taker.leaves.min(hidden);
                taker.leaves -= later_parts;
                LevelFill::Continues(traded + later_parts)
            }
        }
    }
}

impl Taker {
    /// Consumes up to `quantity` of the open quantity. Returns the quantity consumed.
    fn consume(&mut self, quantity: u64) -> u64 {
        let taken = self.leaves.min(quantity);
        self.leaves -= taken;
        taken
    }
}
