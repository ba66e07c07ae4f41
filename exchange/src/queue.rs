//! The FIFO queue of one price: a circular list through orders' nodes and the queue's own.

use crate::arena::{Arena, NONE, Node};

impl Node {
    pub(crate) fn key(&self) -> u64 {
        self.id
    }

    pub(crate) fn orders(&self) -> u32 {
        self.rank as u32
    }

    pub(crate) fn head(&self) -> u32 {
        self.next
    }

    pub(crate) fn leaf(&self) -> u32 {
        self.owner
    }

    pub(crate) fn tail(&self) -> u32 {
        self.prev
    }
}

/// The free list of the prices' queues, whose nodes are in the arena after the orders'.
#[derive(Debug)]
pub(crate) struct Queues {
    /// First free queue, linked through `next`.
    free: u32,
    used: usize,
    capacity: usize,
}

impl Queues {
    /// Creates `capacity` free queues in an arena with space for them.
    pub(crate) fn new(arena: &mut Arena, capacity: usize) -> Self {
        let first = arena.capacity() as u32;
        let last = first + capacity as u32 - 1;
        for number in first..last {
            arena.node_mut(number).next = number + 1;
        }
        Queues { free: first, used: 0, capacity }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Counts the free queues of the arena by walking their list.
    pub(crate) fn free_count(&self, arena: &Arena) -> usize {
        let some = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(some(self.free), |&number| some(arena.node(number).next))
            .take(self.capacity + 1)
            .count()
    }

    pub(crate) fn allocate(&mut self, arena: &mut Arena, key: u64, price: i64) -> u32 {
        let number = self.free;
        debug_assert!(number != NONE, "checked by admission");
        let queue = arena.node_mut(number);
        self.free = queue.next;
        *queue = Node { id: key, price, prev: number, next: number, queue: number, ..Node::FREE };
        self.used += 1;
        number
    }

    pub(crate) fn release(&mut self, arena: &mut Arena, number: u32) {
        arena.node_mut(number).next = self.free;
        self.free = number;
        self.used -= 1;
    }
}

impl Arena {
    #[inline]
    pub(crate) fn append(&mut self, number: u32, slot: u32, rank: u64) {
        let tail = self.node(number).prev;
        let node = self.node_mut(slot);
        node.rank = rank;
        node.queue = number;
        node.prev = tail;
        node.next = number;
        let (shown, leaves) = (node.shown, node.leaves);
        self.node_mut(tail).next = slot;
        let queue = self.node_mut(number);
        queue.prev = slot;
        queue.shown += shown;
        queue.leaves += leaves;
        queue.rank += 1;
    }

    /// Removes an order from the queue of its price. Returns the number of orders left.
    #[inline]
    pub(crate) fn unlink(&mut self, slot: u32) -> u64 {
        let &Node { prev, next, queue, shown, leaves, .. } = self.node(slot);
        self.node_mut(prev).next = next;
        self.node_mut(next).prev = prev;
        let queue = self.node_mut(queue);
        queue.shown -= shown;
        queue.leaves -= leaves;
        queue.rank -= 1;
        queue.rank
    }
}
