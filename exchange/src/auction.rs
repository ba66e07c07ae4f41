//! The uncross at the end of a call auction: one price for all orders that cross.

use crate::arena::{BookPart, NONE};
use crate::book::Book;
use crate::command::Side;
use crate::event::{Event, Events};
use crate::store::OrderStore;
use std::cmp::Reverse;

/// The rank of a price; the maximum is the auction's price.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PricePriority {
    volume: u64,
    surplus: Reverse<u64>,
    distance: Reverse<u64>,
    price: i64,
}

impl Book {
    /// Trades all orders that cross, at one price, at the end of a call auction.
    pub(crate) fn uncross(&mut self, store: &mut OrderStore, out: &mut impl Events) {
        let best = self.auction_price(store);
        let (price, volume) = best.map_or((0, 0), |priority| (priority.price, priority.volume));
        out.on(Event::Uncrossed { instrument: self.number, price, volume });
        let mut remaining = volume;
        while remaining > 0 {
            let head = |part: BookPart| store.arena.node(self.first[part as usize]).head();
            let (bid, offer) = (head(BookPart::Bids), head(BookPart::Offers));
            let (buyer, seller) = (*store.arena.node(bid), *store.arena.node(offer));
            let quantity = remaining.min(buyer.leaves).min(seller.leaves);
            remaining -= quantity;
            out.on(Event::Trade {
                number: store.trades,
                instrument: self.number,
                maker: seller.id,
                taker: buyer.id,
                taker_side: Side::Buy,
                price,
                quantity,
                maker_leaves: seller.leaves - quantity,
                taker_leaves: buyer.leaves - quantity,
            });
            store.trades += 1;
            self.last = price;
            self.fill_in_auction(store, bid, quantity);
            self.fill_in_auction(store, offer, quantity);
        }
    }

    fn fill_in_auction(&mut self, store: &mut OrderStore, slot: u32, quantity: u64) {
        let node = *store.arena.node(slot);
        if node.leaves == quantity {
            return self.remove(store, slot);
        }
        let leaves = node.leaves - quantity;
        let shown =
            if quantity < node.shown { node.shown - quantity } else { store.displayed_part(slot, leaves) };
        let queue = store.arena.node_mut(node.queue);
        queue.leaves -= quantity;
        queue.shown = queue.shown - node.shown + shown;
        let node = store.arena.node_mut(slot);
        node.leaves = leaves;
        node.shown = shown;
    }

    /// Returns the best price, if anything crosses. Quantities change only at prices with orders,
    /// so only those between best offer and best bid are considered, and one between each two.
    fn auction_price(&self, store: &OrderStore) -> Option<PricePriority> {
        let (high, low) = (self.best(BookPart::Bids)?, self.best(BookPart::Offers)?);
        if low > high {
            return None;
        }
        // Bids from the lowest at or above `low`, offers from the lowest: both upwards.
        let mut bid = self.last_until(store, self.key(BookPart::Bids, low));
        let mut offer = self.first[BookPart::Offers as usize];
        let mut bids = self.bids_until(store, low);
        let mut offers = 0;
        let mut best: Option<PricePriority> = None;
        let mut consider = |bids: u64, offers: u64, price: i64| {
            let priority = PricePriority {
                volume: bids.min(offers),
                surplus: Reverse(bids.abs_diff(offers)),
                distance: Reverse(price.abs_diff(self.instrument.reference_price)),
                price,
            };
            best = best.max(Some(priority));
        };
        let price_of = |queue: u32| if queue == NONE { i64::MAX } else { store.arena.node(queue).price };
        loop {
            let price = price_of(bid).min(price_of(offer));
            if price > high {
                break;
            }
            if price_of(offer) == price {
                offers += store.arena.node(offer).leaves;
                offer = self.next(store, BookPart::Offers, offer);
            }
            consider(bids, offers, price);
            if price_of(bid) == price {
                let queue = store.arena.node(bid);
                bids -= queue.leaves;
                bid =
                    self.lists[BookPart::Bids as usize].last_before(&store.pool, queue.key()).unwrap_or(NONE);
            }
            let tick = self.instrument.tick;
            let (from, to) = (price + tick, price_of(bid).min(price_of(offer)).min(high) - tick);
            if from <= to {
                let reference = self.instrument.reference_price;
                let below = (reference - reference % tick).clamp(from, to);
                consider(bids, offers, below);
                consider(bids, offers, (below + tick).min(to));
            }
        }
        best.filter(|priority| priority.volume > 0)
    }

    /// Returns the bids' queue of the lowest price whose key is at most `key`.
    fn last_until(&self, store: &OrderStore, key: u64) -> u32 {
        self.lists[BookPart::Bids as usize].last_before(&store.pool, key + 1).unwrap_or(NONE)
    }

    /// Returns the quantity bid at a price or above.
    fn bids_until(&self, store: &OrderStore, price: i64) -> u64 {
        let mut total = 0;
        let mut queue = self.first[BookPart::Bids as usize];
        while queue != NONE {
            let level = store.arena.node(queue);
            if level.price < price {
                break;
            }
            total += level.leaves;
            queue = self.next(store, BookPart::Bids, queue);
        }
        total
    }
}
