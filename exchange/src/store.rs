//! The arena of orders, the index of ids, the clock and the counters that all books share.

use crate::arena::{Arena, BookPart, ICEBERG, NONE, Node, OrderDetails, POST_ONLY};
use crate::command::{NewOrder, TimeInForce};
use crate::expiry::Expiry;
use crate::index::{Entry, HomeBucket, Index};
use crate::instrument::Capacity;
use crate::levels::LevelNodes;
use crate::queue::Queues;

/// The orders of all books, and the index by which they are found.
#[derive(Debug)]
pub(crate) struct OrderStore {
    pub arena: Arena,
    pub queues: Queues,
    pub pool: LevelNodes,
    pub index: Index,
    pub expiry: Expiry,
    /// Time of the last [`Command::Time`](crate::Command::Time).
    pub now: u64,
    /// Number of arrivals so far.
    pub sequence: u64,
    /// Number of the next trade.
    pub trades: u64,
    /// Queues reserved for waiting stop-limit orders, one for each.
    pub reserved: usize,
}

impl OrderStore {
    pub(crate) fn new(lists: usize, capacity: Capacity, keys: u64) -> Self {
        let mut arena = Arena::new(capacity.orders, capacity.levels);
        OrderStore {
            queues: Queues::new(&mut arena, capacity.levels),
            arena,
            pool: LevelNodes::new(lists, capacity.levels, keys),
            index: Index::new(capacity.orders),
            expiry: Expiry::new(capacity.orders),
            now: 0,
            sequence: 0,
            trades: 0,
            reserved: 0,
        }
    }

    /// Returns `true` if memory for `needed` more price queues is available.
    pub(crate) fn has_queues(&self, needed: usize) -> bool {
        self.queues.used() + self.reserved + needed <= self.queues.capacity()
    }

    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.find_entry(id, self.index.home(id)).map(|entry| self.index.slot(entry))
    }

    #[inline]
    pub(crate) fn find_entry(&self, id: u64, home: HomeBucket) -> Option<Entry> {
        self.index.find(id, home, |slot| self.arena.node(slot).id == id)
    }

    /// Returns the node of an open order and its index entry, if it belongs to the owner.
    #[inline(always)]
    pub(crate) fn find_owned(&self, id: u64, owner: u32) -> Option<(u32, Entry)> {
        let entry = self.find_entry(id, self.index.home(id))?;
        let slot = self.index.slot(entry);
        (self.arena.node(slot).owner == owner).then_some((slot, entry))
    }

    /// Returns the next rank, a counter by which orders are ordered by arrival.
    #[inline]
    pub(crate) fn next_rank(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Allocates an open order and adds it to the index. The order is in no list yet.
    #[inline]
    pub(crate) fn open(&mut self, order: &NewOrder, home: HomeBucket, arrival: u64, leaves: u64) -> u32 {
        let stop = order.order_type.is_stop();
        let slot = self.arena.allocate(Node {
            id: order.id,
            rank: arrival,
            price: if stop { order.stop_price } else { order.price },
            leaves,
            shown: if order.display == 0 { leaves } else { leaves.min(order.display) },
            owner: order.owner,
            prev: NONE,
            next: NONE,
            queue: NONE,
            instrument: order.instrument,
            part: BookPart::Unlisted,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            self_trade: order.self_trade,
            flags: if order.post_only { POST_ONLY } else { 0 } | if order.display == 0 { 0 } else { ICEBERG },
        });
        self.index.insert(home, slot, |slot| self.arena.node(slot).id);
        if order.display != 0 || stop || order.time_in_force == TimeInForce::GoodTillTime {
            *self.arena.details_mut(slot) = OrderDetails {
                display: order.display,
                limit: order.price,
                expires_at: order.expires_at,
                arrival,
                heap: NONE,
            };
        }
        if order.time_in_force == TimeInForce::GoodTillTime {
            self.expiry.insert(&mut self.arena, slot);
        }
        slot
    }

    /// Frees an open order that is in no queue any more.
    #[inline]
    pub(crate) fn close(&mut self, slot: u32) {
        let id = self.arena.node(slot).id;
        match self.index.find(id, self.index.home(id), |candidate| candidate == slot) {
            Some(entry) => self.close_entry(slot, entry),
            None => debug_assert!(false, "the index has all open orders"),
        }
    }

    /// Frees an open order as [`OrderStore::close`] does, given its index entry.
    #[inline(always)]
    pub(crate) fn close_entry(&mut self, slot: u32, entry: Entry) {
        if self.arena.node(slot).time_in_force == TimeInForce::GoodTillTime {
            self.expiry.remove(&mut self.arena, slot);
        }
        self.index.remove(entry);
        self.arena.release(slot);
    }

    /// Returns the displayed quantity of an order that has `leaves` open.
    #[inline]
    pub(crate) fn displayed_part(&self, slot: u32, leaves: u64) -> u64 {
        if self.arena.node(slot).is_iceberg() { leaves.min(self.arena.details(slot).display) } else { leaves }
    }

    /// Iterates over the orders of a price's queue from the first.
    pub(crate) fn orders(&self, queue: &Node) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.arena.order(queue.head()), |node| self.arena.order(node.next))
    }
}
