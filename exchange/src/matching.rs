//! Matching in price-time priority.

use crate::arena::{BookPart, NONE, Node};
use crate::book::Book;
use crate::command::{NewOrder, SelfTrade, Side};
use crate::event::{CancelReason, Event, Events};
use crate::store::OrderStore;

/// The incoming order that is being matched (aggressor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taker {
    pub id: u64,
    pub owner: u32,
    pub side: Side,
    pub self_trade: SelfTrade,
    /// Worst acceptable price.
    pub limit: i64,
    /// Open quantity.
    pub leaves: u64,
}

/// Returns the limit price with which an order of a side accepts every price.
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

    /// Returns the incoming order's limit price; 0 for a market order.
    #[inline]
    pub(crate) fn price(&self) -> i64 {
        if self.limit == any_price(self.side) { 0 } else { self.limit }
    }

    #[inline]
    pub(crate) fn opposite(&self) -> BookPart {
        BookPart::for_side(self.side.opposite())
    }

    #[inline]
    pub(crate) fn can_trade_at(&self, price: i64) -> bool {
        let mask = self.opposite().price_mask();
        price ^ mask <= self.limit ^ mask
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchEnd {
    /// The taker is filled, or no quantity is left that it accepts.
    Done,
    Prevented,
}

impl Book {
    /// Trades an order until it is filled, finds no price, or is cancelled as a self-trade.
    pub(crate) fn trade(
        &mut self,
        store: &mut OrderStore,
        taker: &mut Taker,
        out: &mut impl Events,
    ) -> MatchEnd {
        let part = taker.opposite();
        let mask = self.masks[part as usize];
        while taker.leaves > 0 {
            let first = self.first[part as usize];
            let price = self.edge[part as usize];
            if price ^ mask > taker.limit ^ mask || first == NONE {
                break;
            }
            let slot = store.arena.node(first).head();
            let node = store.arena.node_mut(slot);
            if taker.self_trade != SelfTrade::Allow && node.owner == taker.owner {
                match self.prevent(store, taker, slot, out) {
                    MatchEnd::Prevented => return MatchEnd::Prevented,
                    MatchEnd::Done => continue,
                }
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
            if price >= self.edge[BookPart::BuyStops as usize]
                || price <= self.edge[BookPart::SellStops as usize]
            {
                self.trigger(store, price);
            }
        }
        MatchEnd::Done
    }

    /// Displays the next part of an iceberg order at the end of its queue.
    #[cold]
    fn refresh(&mut self, store: &mut OrderStore, slot: u32) {
        let node = *store.arena.node(slot);
        // The queue is kept even if the order is alone in it.
        store.arena.unlink(slot);
        store.arena.node_mut(slot).shown = store.displayed_part(slot, node.leaves);
        let rank = store.next_rank();
        store.arena.append(node.queue, slot, rank);
    }

    /// Applies the aggressor's self-trade prevention to a resting order of its own owner.
    #[cold]
    fn prevent(
        &mut self,
        store: &mut OrderStore,
        taker: &mut Taker,
        slot: u32,
        out: &mut impl Events,
    ) -> MatchEnd {
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
            let Node { id, side, price, leaves, .. } = maker;
            out.on(Event::Cancelled { id, side, price, leaves, reason });
        } else if taker.self_trade == SelfTrade::Decrement {
            let leaves = maker.leaves - taker.leaves;
            self.shrink(store, slot, leaves);
            out.on(Event::Reduced { id: maker.id, leaves });
        }
        if newest {
            let (price, &mut Taker { id, side, leaves, .. }) = (taker.price(), taker);
            out.on(Event::Cancelled { id, side, price, leaves, reason });
            return MatchEnd::Prevented;
        }
        if taker.self_trade == SelfTrade::Decrement {
            taker.leaves -= maker.leaves;
            out.on(Event::Reduced { id: taker.id, leaves: taker.leaves });
        }
        MatchEnd::Done
    }

    /// Lowers the open quantity of a resting order, hidden quantity first. It keeps its priority.
    pub(crate) fn shrink(&mut self, store: &mut OrderStore, slot: u32, leaves: u64) {
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
