//! The arena of orders and queues: nodes of one cache line each, linked by index.
//!
//! A queue is a circular list through a node of its own (a sentinel), so that its first and its
//! last order are unlinked like any other, without an unpredictable branch.

use crate::command::{OrderType, SelfTrade, Side, TimeInForce};

pub(crate) const NONE: u32 = u32::MAX;

/// The list of an order book that an order is in: bids, offers, stop orders of a side, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BookPart {
    Bids = 0,
    Offers = 1,
    BuyStops = 2,
    SellStops = 3,
    /// In no list: triggered and about to act, trading now, or a free node.
    Unlisted = 4,
}

impl BookPart {
    pub(crate) const ALL: [BookPart; 4] =
        [BookPart::Bids, BookPart::Offers, BookPart::BuyStops, BookPart::SellStops];

    #[inline]
    pub(crate) fn for_side(side: Side) -> BookPart {
        // A table, as a side cannot be predicted.
        const PARTS: [BookPart; 2] = [BookPart::Bids, BookPart::Offers];
        PARTS[side as usize]
    }

    pub(crate) fn stops_for_side(side: Side) -> BookPart {
        match side {
            Side::Buy => BookPart::BuyStops,
            Side::Sell => BookPart::SellStops,
        }
    }

    /// Returns -1 for lists whose best price is the highest, otherwise 0. After an exclusive or
    /// with it, the better of two prices is the lower number, without a branch on the side.
    pub(crate) fn price_mask(self) -> i64 {
        if matches!(self, BookPart::Bids | BookPart::SellStops) { -1 } else { 0 }
    }
}

/// An open order, or the queue of a price, in one cache line of the arena.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    /// The order's id, or the queue's key.
    pub id: u64,
    /// Arrival rank within the queue; of a queue, its number of orders.
    pub rank: u64,
    /// Price of the queue; of a waiting stop order, the stop price.
    pub price: i64,
    /// Open quantity; of a queue, the sum of its orders.
    pub leaves: u64,
    /// Displayed part of `leaves`.
    pub shown: u64,
    /// Owner of the order; of a queue, its leaf in its price levels.
    pub owner: u32,
    /// Previous order, or the queue; of a queue, its last order.
    pub prev: u32,
    /// Next order, or the queue; of a queue, its first order.
    pub next: u32,
    pub queue: u32,
    pub instrument: u16,
    pub part: BookPart,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub self_trade: SelfTrade,
    pub flags: u8,
}

/// Flag of a post-only order, which is rejected rather than take liquidity.
pub(crate) const POST_ONLY: u8 = 1;
/// Flag of an iceberg order, which displays a part at a time.
pub(crate) const ICEBERG: u8 = 2;

const _: () = assert!(size_of::<Node>() == 64 && align_of::<Node>() == 64);

impl Node {
    pub(crate) fn is_post_only(&self) -> bool {
        self.flags & POST_ONLY != 0
    }

    pub(crate) fn is_iceberg(&self) -> bool {
        self.flags & ICEBERG != 0
    }

    pub(crate) const FREE: Node = Node {
        id: 0,
        rank: 0,
        price: 0,
        leaves: 0,
        shown: 0,
        owner: 0,
        prev: NONE,
        next: NONE,
        queue: NONE,
        instrument: 0,
        part: BookPart::Unlisted,
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::GoodTillCancel,
        self_trade: SelfTrade::Allow,
        flags: 0,
    };
}

/// Attributes of the few orders that are icebergs, stop orders or that expire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrderDetails {
    /// Maximum displayed quantity.
    pub display: u64,
    /// Limit price of a waiting stop-limit order.
    pub limit: i64,
    pub expires_at: u64,
    /// Arrival rank among all orders.
    pub arrival: u64,
    /// Index in the expiry heap.
    pub heap: u32,
}

/// All memory for open orders and for the queues of prices, as nodes of one cache line.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    details: Vec<OrderDetails>,
    free: u32,
    used: usize,
}

impl Arena {
    /// Creates an arena for orders and for queues, whose nodes the caller manages.
    pub(crate) fn new(capacity: usize, queues: usize) -> Self {
        let mut nodes = vec![Node::FREE; capacity + queues];
        let last = capacity - 1;
        for (node, next) in nodes[..last].iter_mut().zip(1..) {
            node.next = next;
        }
        // Not all zero: zeroed pages would be mapped only when first written.
        let details = OrderDetails { display: u64::MAX, limit: 0, expires_at: 0, arrival: 0, heap: NONE };
        Arena { nodes, details: vec![details; capacity], free: 0, used: 0 }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn capacity(&self) -> usize {
        self.details.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free == NONE
    }

    /// Moves an order into a free node, of which there must be one.
    pub(crate) fn allocate(&mut self, node: Node) -> u32 {
        let slot = self.free;
        debug_assert!(slot != NONE, "checked by admission");
        let free = &mut self.nodes[slot as usize];
        self.free = free.next;
        *free = node;
        self.used += 1;
        slot
    }

    pub(crate) fn release(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.part = BookPart::Unlisted;
        node.queue = NONE;
        node.next = self.free;
        self.free = slot;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn node(&self, slot: u32) -> &Node {
        &self.nodes[slot as usize]
    }

    /// Returns the node at an index, if it is in use: an order or a queue.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Node> {
        self.nodes.get(slot as usize)
    }

    #[inline]
    pub(crate) fn order(&self, slot: u32) -> Option<&Node> {
        if (slot as usize) < self.capacity() { self.nodes.get(slot as usize) } else { None }
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.nodes[slot as usize]
    }

    #[inline]
    pub(crate) fn details(&self, slot: u32) -> &OrderDetails {
        &self.details[slot as usize]
    }

    #[inline]
    pub(crate) fn details_mut(&mut self, slot: u32) -> &mut OrderDetails {
        &mut self.details[slot as usize]
    }

    pub(crate) fn free_slots(&self) -> impl Iterator<Item = u32> {
        std::iter::successors((self.free != NONE).then_some(self.free), |&slot| {
            self.nodes.get(slot as usize).map(|node| node.next).filter(|&next| next != NONE)
        })
        .take(self.capacity() + 1)
    }
}
