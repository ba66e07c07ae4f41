//! Where the orders and their queues are: nodes of one cache line each, set aside at the start and
//! linked by index.
//!
//! A queue is a ring of orders through a node of its own, so that its first and its last order have
//! neighbours like any other and leave without a branch: which end of a level an order is at cannot
//! be predicted.

use crate::command::{OrderType, SelfTrade, Side, TimeInForce};

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// Which list of its book an order is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Part {
    Bids = 0,
    Offers = 1,
    BuyStops = 2,
    SellStops = 3,
    /// In none: it was triggered and waits for its turn, is the one that trades right now, or is
    /// free.
    Nowhere = 4,
}

impl Part {
    pub(crate) const ALL: [Part; 4] = [Part::Bids, Part::Offers, Part::BuyStops, Part::SellStops];

    pub(crate) fn of(side: Side) -> Part {
        match side {
            Side::Buy => Part::Bids,
            Side::Sell => Part::Offers,
        }
    }

    pub(crate) fn stops(side: Side) -> Part {
        match side {
            Side::Buy => Part::BuyStops,
            Side::Sell => Part::SellStops,
        }
    }

    /// Whether its first price is the highest.
    pub(crate) fn falls(self) -> bool {
        matches!(self, Part::Bids | Part::SellStops)
    }
}

/// An open order: what matching needs of it. Or a queue: one price level of a book, or one stop
/// price.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Node {
    /// The order's; of a queue its key.
    pub id: u64,
    /// Its place in time among those of its queue; of a queue how many orders it has.
    pub rank: u64,
    /// The price of its queue: of a waiting stop order the stop price.
    pub price: i64,
    /// All that is open of it; of a queue, of its orders together.
    pub leaves: u64,
    /// What is shown of that.
    pub shown: u64,
    pub owner: u32,
    /// The order before it, or its queue; of a queue the last order.
    pub prev: u32,
    /// The order behind it, or its queue; of a queue the first order.
    pub next: u32,
    pub queue: u32,
    pub instrument: u16,
    pub part: Part,
    pub side: Side,
    pub order_type: OrderType,
    pub time_in_force: TimeInForce,
    pub self_trade: SelfTrade,
    pub flags: u8,
}

/// Rejected rather than take liquidity.
pub(crate) const POST_ONLY: u8 = 1;
/// Shows a part at a time.
pub(crate) const ICEBERG: u8 = 2;

const _: () = assert!(size_of::<Node>() == 64 && align_of::<Node>() == 64);

impl Node {
    pub(crate) fn post_only(&self) -> bool {
        self.flags & POST_ONLY != 0
    }

    pub(crate) fn iceberg(&self) -> bool {
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
        part: Part::Nowhere,
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::GoodTillCancel,
        self_trade: SelfTrade::Allow,
        flags: 0,
    };
}

/// What few orders need: icebergs, stop-limit orders, and those that expire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details {
    /// The most that is shown at once.
    pub display: u64,
    /// Of a stop-limit order that waits: its limit price.
    pub limit: i64,
    pub expires_at: u64,
    /// When it came, among all orders.
    pub arrival: u64,
    /// Where it is in the heap of those that expire.
    pub heap: u32,
}

/// All nodes, free or not: those of the orders, then those of the queues.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    details: Vec<Details>,
    free: u32,
    used: usize,
}

impl Arena {
    /// Room for so many orders and queues. The queues' nodes are the caller's.
    pub(crate) fn new(capacity: usize, queues: usize) -> Self {
        let mut nodes = vec![Node::FREE; capacity + queues];
        let last = capacity - 1;
        for (node, next) in nodes[..last].iter_mut().zip(1..) {
            node.next = next;
        }
        // Not all zero, so that the memory is really there.
        let details = Details { display: u64::MAX, limit: 0, expires_at: 0, arrival: 0, heap: NONE };
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

    /// Takes a free node for this order, if there is one.
    pub(crate) fn allocate(&mut self, node: Node) -> u32 {
        let slot = self.free;
        debug_assert!(slot != NONE, "looked at before");
        let place = &mut self.nodes[slot as usize];
        self.free = place.next;
        *place = node;
        self.used += 1;
        slot
    }

    pub(crate) fn release(&mut self, slot: u32) {
        let node = &mut self.nodes[slot as usize];
        node.part = Part::Nowhere;
        node.queue = NONE;
        node.next = self.free;
        self.free = slot;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn node(&self, slot: u32) -> &Node {
        &self.nodes[slot as usize]
    }

    /// The node of an order or a queue, if this is one.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Node> {
        self.nodes.get(slot as usize)
    }

    /// The order's node, if this is one.
    #[inline]
    pub(crate) fn order(&self, slot: u32) -> Option<&Node> {
        if (slot as usize) < self.capacity() { self.nodes.get(slot as usize) } else { None }
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, slot: u32) -> &mut Node {
        &mut self.nodes[slot as usize]
    }

    #[inline]
    pub(crate) fn details(&self, slot: u32) -> &Details {
        &self.details[slot as usize]
    }

    #[inline]
    pub(crate) fn details_mut(&mut self, slot: u32) -> &mut Details {
        &mut self.details[slot as usize]
    }

    /// The free nodes, each once unless the list is broken; at most as many as there are.
    pub(crate) fn free_slots(&self) -> impl Iterator<Item = u32> {
        std::iter::successors((self.free != NONE).then_some(self.free), |&slot| {
            self.nodes.get(slot as usize).map(|node| node.next).filter(|&next| next != NONE)
        })
        .take(self.capacity() + 1)
    }
}
