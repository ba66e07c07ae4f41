//! How an order trades: the best price first, at a price the order that came first.

use crate::arena::{NONE, Part};
use crate::book::Book;
use crate::command::{NewOrder, SelfTrade, Side};
use crate::event::{CancelReason, Event, Events};
use crate::levels::Levels;
use crate::store::Store;

/// An order that trades now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub id: u64,
    pub owner: u32,
    pub side: Side,
    pub self_trade: SelfTrade,
    /// The worst price that it accepts.
    pub limit: i64,
    /// What is open of it.
    pub leaves: u64,
}

/// The limit of an order that accepts every price.
pub(crate) fn any_price(side: Side) -> i64 {
    match side {
        Side::Buy => i64::MAX,
        Side::Sell => i64::MIN,
    }
}

impl Taker {
    pub(crate) fn new(order: &NewOrder, limit: i64) -> Self {
        Taker {
            id: order.id,
            owner: order.owner,
            side: order.side,
            self_trade: order.self_trade,
            limit,
            leaves: order.quantity,
        }
    }

    /// Where its counterparties are.
    #[inline]
    pub(crate) fn other(&self) -> Part {
        match self.side {
            Side::Buy => Part::Offers,
            Side::Sell => Part::Bids,
        }
    }

    #[inline]
    pub(crate) fn accepts(&self, price: i64) -> bool {
        match self.side {
            Side::Buy => price <= self.limit,
            Side::Sell => price >= self.limit,
        }
    }
}

impl<L: Levels> Book<L> {
    /// Trades until the order is done, nothing is left that it accepts, or self-trade prevention
    /// cancels it. Says whether that happened.
    pub(crate) fn trade(&mut self, store: &mut Store<L>, taker: &mut Taker, out: &mut impl Events) -> bool {
        let part = taker.other();
        while taker.leaves > 0 {
            let first = self.first[part as usize];
            if first == NONE {
                break;
            }
            let price = self.edge[part as usize];
            if !taker.accepts(price) {
                break;
            }
            let slot = store.arena.node(first).head();
            let node = store.arena.node_mut(slot);
            if taker.self_trade != SelfTrade::Allow && node.owner == taker.owner {
                if self.prevent(store, taker, slot, out) {
                    return true;
                }
                continue;
            }
            let quantity = taker.leaves.min(node.shown);
            taker.leaves -= quantity;
            node.leaves -= quantity;
            node.shown -= quantity;
            out.on(Event::Trade {
                number: store.trades,
                instrument: self.number,
                maker: node.id,
                taker: taker.id,
                taker_side: taker.side,
                price,
                quantity,
                maker_leaves: node.leaves,
                taker_leaves: taker.leaves,
            });
            let (leaves, shown) = (node.leaves, node.shown);
            store.trades += 1;
            let queue = store.arena.node_mut(first);
            queue.leaves -= quantity;
            queue.shown -= quantity;
            if leaves == 0 {
                self.remove(store, slot);
            } else if shown == 0 {
                self.refresh(store, slot);
            }
            self.last = price;
            if price >= self.edge[Part::BuyStops as usize] || price <= self.edge[Part::SellStops as usize] {
                self.trigger(store, price);
            }
        }
        false
    }

    /// Shows the next part of an iceberg order, at the end of its queue.
    #[cold]
    fn refresh(&mut self, store: &mut Store<L>, slot: u32) {
        let node = *store.arena.node(slot);
        // The queue stays in its list even if the order is alone in it.
        store.arena.unlink(slot);
        store.arena.node_mut(slot).shown = store.shown_of(slot, node.leaves);
        let rank = store.arrive();
        store.arena.append(node.queue, slot, rank);
    }

    /// Does what the aggressor wants instead of a trade with its own owner's order. Says whether
    /// that ends the aggressor.
    #[cold]
    fn prevent(&mut self, store: &mut Store<L>, taker: &mut Taker, slot: u32, out: &mut impl Events) -> bool {
        let maker = *store.arena.node(slot);
        let reason = CancelReason::SelfTrade;
        let (oldest, newest) = match taker.self_trade {
            SelfTrade::Allow => (false, false),
            SelfTrade::CancelNewest => (false, true),
            SelfTrade::CancelOldest => (true, false),
            SelfTrade::CancelBoth => (true, true),
            SelfTrade::Decrement => (maker.leaves <= taker.leaves, taker.leaves <= maker.leaves),
        };
        if oldest {
            self.remove(store, slot);
            out.on(Event::Cancelled { id: maker.id, leaves: maker.leaves, reason });
        } else if taker.self_trade == SelfTrade::Decrement {
            let leaves = maker.leaves - taker.leaves;
            self.shrink(store, slot, leaves);
            out.on(Event::Reduced { id: maker.id, leaves });
        }
        if newest {
            out.on(Event::Cancelled { id: taker.id, leaves: taker.leaves, reason });
        } else if taker.self_trade == SelfTrade::Decrement {
            taker.leaves -= maker.leaves;
            out.on(Event::Reduced { id: taker.id, leaves: taker.leaves });
        }
        newest
    }

    /// Lowers what is open of a resting order, which keeps its place; hidden quantity goes first.
    pub(crate) fn shrink(&mut self, store: &mut Store<L>, slot: u32, leaves: u64) {
        let before = *store.arena.node(slot);
        let shown = before.shown.min(leaves);
        let node = store.arena.node_mut(slot);
        node.shown = shown;
        node.leaves = leaves;
        let queue = store.arena.node_mut(before.queue);
        queue.shown -= before.shown - shown;
        queue.leaves -= before.leaves - leaves;
    }
}
