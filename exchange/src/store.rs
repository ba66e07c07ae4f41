//! State that all books share: orders, queues, index, clock and counters.

use crate::arena::{Arena, Details, ICEBERG, NONE, Node, POST_ONLY, Part};
use crate::command::{NewOrder, OrderType, TimeInForce};
use crate::expiry::Expiry;
use crate::index::Index;
use crate::instrument::Capacity;
use crate::levels::Levels;
use crate::queue::Queues;

/// The shared part of an exchange.
#[derive(Debug)]
pub(crate) struct Store<L: Levels> {
    pub arena: Arena,
    pub queues: Queues,
    pub pool: L::Pool,
    pub index: Index,
    pub expiry: Expiry,
    /// The time that the last [`Command::Time`](crate::Command::Time) gave.
    pub now: u64,
    /// Counts arrivals.
    pub sequence: u64,
    /// The next trade's number.
    pub trades: u64,
    /// Stop-limit orders that wait: each will need a queue.
    pub reserved: usize,
}

impl<L: Levels> Store<L> {
    pub(crate) fn new(lists: usize, capacity: Capacity, keys: u64) -> Self {
        let mut arena = Arena::new(capacity.orders, capacity.levels);
        Store {
            queues: Queues::new(&mut arena, capacity.levels),
            arena,
            pool: L::pool(lists, capacity.levels, keys),
            index: Index::new(capacity.orders),
            expiry: Expiry::new(capacity.orders),
            now: 0,
            sequence: 0,
            trades: 0,
            reserved: 0,
        }
    }

    /// Whether so many more queues are to be had.
    pub(crate) fn has_queues(&self, needed: usize) -> bool {
        self.queues.used() + self.reserved + needed <= self.queues.capacity()
    }

    #[inline]
    pub(crate) fn find(&self, id: u64) -> Option<u32> {
        self.index.get(id, |slot| self.arena.node(slot).id == id)
    }

    /// The node of an open order of that owner.
    #[inline]
    pub(crate) fn find_of(&self, id: u64, owner: u32) -> Option<u32> {
        self.find(id).filter(|&slot| self.arena.node(slot).owner == owner)
    }

    /// The number of the next arrival.
    #[inline]
    pub(crate) fn arrive(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Gives an order a node. It is open from now on, but in no list yet.
    pub(crate) fn open(&mut self, order: &NewOrder, arrival: u64, leaves: u64) -> u32 {
        let stop = matches!(order.order_type, OrderType::Stop | OrderType::StopLimit);
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
            part: Part::Nowhere,
            side: order.side,
            order_type: order.order_type,
            time_in_force: order.time_in_force,
            self_trade: order.self_trade,
            flags: if order.post_only { POST_ONLY } else { 0 } | if order.display == 0 { 0 } else { ICEBERG },
        });
        self.index.insert(order.id, slot);
        if order.display != 0 || stop || order.time_in_force == TimeInForce::GoodTillTime {
            *self.arena.details_mut(slot) = Details {
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

    /// Ends an order that is in no list any more.
    pub(crate) fn close(&mut self, slot: u32) {
        let node = self.arena.node(slot);
        let id = node.id;
        if node.time_in_force == TimeInForce::GoodTillTime {
            self.expiry.remove(&mut self.arena, slot);
        }
        self.index.remove(id, slot);
        self.arena.release(slot);
    }

    /// How much of an order with so much open is shown.
    #[inline]
    pub(crate) fn shown_of(&self, slot: u32, leaves: u64) -> u64 {
        if self.arena.node(slot).iceberg() { leaves.min(self.arena.details(slot).display) } else { leaves }
    }

    /// The orders of a queue, the first first.
    pub(crate) fn orders(&self, queue: &Node) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.arena.order(queue.head()), |node| self.arena.order(node.next))
    }
}
