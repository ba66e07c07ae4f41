//! The orders at one price, first come first served: a doubly linked list through their nodes.

use crate::arena::{Arena, NONE};

/// A queue: one price level of a book, or one stop price.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Queue {
    pub key: u64,
    pub price: i64,
    /// What its orders show together.
    pub shown: u64,
    /// What is open of them together.
    pub total: u64,
    pub head: u32,
    pub tail: u32,
    pub orders: u32,
}

const _: () = assert!(size_of::<Queue>() == 64);

const FREE: Queue = Queue { key: 0, price: 0, shown: 0, total: 0, head: NONE, tail: NONE, orders: 0 };

/// All queues, free or not.
#[derive(Debug)]
pub(crate) struct Queues {
    queues: Vec<Queue>,
    /// The first free one; the next is in its `head`.
    free: u32,
    used: usize,
}

impl Queues {
    pub(crate) fn new(capacity: usize) -> Self {
        let mut queues = vec![FREE; capacity];
        let last = capacity - 1;
        for (queue, next) in queues[..last].iter_mut().zip(1..) {
            queue.head = next;
        }
        Queues { queues, free: 0, used: 0 }
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    pub(crate) fn capacity(&self) -> usize {
        self.queues.len()
    }

    /// Walks the free ones.
    pub(crate) fn free_count(&self) -> usize {
        std::iter::successors(self.queues.get(self.free as usize), |queue| {
            self.queues.get(queue.head as usize)
        })
        .take(self.queues.len() + 1)
        .count()
    }

    pub(crate) fn allocate(&mut self, key: u64, price: i64) -> u32 {
        let number = self.free;
        debug_assert!(number != NONE, "looked at before");
        let queue = &mut self.queues[number as usize];
        self.free = queue.head;
        *queue = Queue { key, price, ..FREE };
        self.used += 1;
        number
    }

    pub(crate) fn release(&mut self, number: u32) {
        let queue = &mut self.queues[number as usize];
        queue.head = self.free;
        self.free = number;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Queue {
        &self.queues[number as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Queue {
        &mut self.queues[number as usize]
    }

    /// Appends an order.
    #[inline]
    pub(crate) fn append(&mut self, arena: &mut Arena, number: u32, slot: u32, rank: u64) {
        let queue = &mut self.queues[number as usize];
        let tail = queue.tail;
        let node = arena.node_mut(slot);
        node.rank = rank;
        node.queue = number;
        node.prev = tail;
        node.next = NONE;
        queue.shown += node.shown;
        queue.total += node.leaves;
        queue.orders += 1;
        queue.tail = slot;
        if tail == NONE {
            queue.head = slot;
        } else {
            arena.node_mut(tail).next = slot;
        }
    }

    /// Takes an order out, and says how many are left.
    #[inline]
    pub(crate) fn unlink(&mut self, arena: &mut Arena, slot: u32) -> u32 {
        let node = arena.node(slot);
        let (prev, next) = (node.prev, node.next);
        let queue = &mut self.queues[node.queue as usize];
        queue.shown -= node.shown;
        queue.total -= node.leaves;
        queue.orders -= 1;
        if prev == NONE {
            queue.head = next;
        } else {
            arena.node_mut(prev).next = next;
        }
        if next == NONE {
            queue.tail = prev;
        } else {
            arena.node_mut(next).prev = prev;
        }
        queue.orders
    }
}
