//! Messages that found their gateway's inbox full, in a queue for each gateway, so that a venue that takes nothing delays no other.
//!
//! All queues share one arena, which is allocated before the start and grows only beyond the orders that may be open. A message keeps its
//! turn: what comes for the same gateway is queued after it.

use protocol::wire::{MESSAGE_WORDS, Message};

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node {
    message: Message,
    /// The next node of the queue, or the next free one.
    next: u32,
}

/// One gateway's queue.
#[derive(Clone, Copy)]
struct GatewayQueue {
    first: u32,
    last: u32,
    len: u32,
}

/// The queues of all gateways.
pub(crate) struct PendingMessages {
    nodes: Vec<Node>,
    free: u32,
    queues: Vec<GatewayQueue>,
    len: u64,
}

impl PendingMessages {
    /// Empty queues for `gateways`, with memory for `capacity` messages together.
    pub fn new(gateways: usize, capacity: u32) -> Self {
        let mut pending = Self {
            nodes: Vec::with_capacity(capacity as usize),
            free: NONE,
            queues: vec![GatewayQueue { first: NONE, last: NONE, len: 0 }; gateways],
            len: 0,
        };
        // Written here, so that no page is touched for the first time in the middle of a run.
        for _ in 0..capacity.min(NONE - 1) {
            pending.add_node();
        }
        pending
    }

    /// Adds a free node.
    fn add_node(&mut self) {
        self.nodes.push(Node { message: [u64::MAX; MESSAGE_WORDS], next: self.free });
        self.free = self.nodes.len() as u32 - 1;
    }

    /// Messages in all queues.
    #[inline(always)]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether a message for this gateway is queued.
    #[inline(always)]
    pub fn has(&self, gateway: usize) -> bool {
        self.queues[gateway].len > 0
    }

    /// Appends a message to a gateway's queue.
    pub fn push(&mut self, gateway: usize, message: &Message) {
        if self.free == NONE {
            self.add_node();
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = Node { message: *message, next: NONE };
        let queue = &mut self.queues[gateway];
        match queue.last {
            NONE => queue.first = index,
            last => self.nodes[last as usize].next = index,
        }
        queue.last = index;
        queue.len += 1;
        self.len += 1;
    }

    /// The first message of a gateway's queue.
    pub fn front(&self, gateway: usize) -> Option<&Message> {
        Some(&self.nodes.get(self.queues[gateway].first as usize)?.message)
    }

    /// Removes the first message of a gateway's queue.
    pub fn pop(&mut self, gateway: usize) -> Option<Message> {
        self.find(gateway, |_| true).map(|found| self.remove(gateway, found))
    }

    /// Finds the first message of a gateway's queue that `is_meant`.
    pub fn find(&self, gateway: usize, is_meant: impl Fn(&Message) -> bool) -> Option<Found> {
        let (mut before, mut index) = (NONE, self.queues[gateway].first);
        while let Some(node) = self.nodes.get(index as usize) {
            if is_meant(&node.message) {
                return Some(Found { before, index });
            }
            (before, index) = (index, node.next);
        }
        None
    }

    /// The message that was found.
    pub fn get(&self, found: &Found) -> &Message {
        &self.nodes[found.index as usize].message
    }

    /// Removes a message that was found since the last change of the queue.
    pub fn remove(&mut self, gateway: usize, Found { before, index }: Found) -> Message {
        let Node { message, next } = self.nodes[index as usize];
        let queue = &mut self.queues[gateway];
        match before {
            NONE => queue.first = next,
            before => self.nodes[before as usize].next = next,
        }
        if queue.last == index {
            queue.last = before;
        }
        queue.len -= 1;
        self.len -= 1;
        self.nodes[index as usize].next = self.free;
        self.free = index;
        message
    }
}

/// A message in a gateway's queue.
pub(crate) struct Found {
    before: u32,
    index: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn message(n: u64) -> Message {
        [n; MESSAGE_WORDS]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        /// Removes every message that this divides.
        Remove(usize, u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0usize..3).prop_map(Step::Push),
            3 => (0usize..3).prop_map(Step::Pop),
            1 => (0usize..3, 1u64..4).prop_map(|(gateway, every)| Step::Remove(gateway, every)),
        ]
    }

    proptest! {
        /// Against plain queues, which are obviously right.
        #[test]
        fn each_gateway_has_a_queue_and_no_node_is_lost(
            steps in prop::collection::vec(any_step(), 0..200), capacity in 0u32..12,
        ) {
            let mut pending = PendingMessages::new(3, capacity);
            let mut naive: [VecDeque<u64>; 3] = Default::default();
            let mut peak = 0;
            for (n, step) in (0u64..).zip(steps) {
                match step {
                    Step::Push(gateway) => {
                        pending.push(gateway, &message(n));
                        naive[gateway].push_back(n);
                    }
                    Step::Pop(gateway) => {
                        prop_assert_eq!(pending.front(gateway).copied(), naive[gateway].front().copied().map(message));
                        prop_assert_eq!(pending.pop(gateway), naive[gateway].pop_front().map(message));
                    }
                    Step::Remove(gateway, every) => {
                        let is_meant = |message: &Message| message[0].is_multiple_of(every);
                        let mut removed = Vec::new();
                        while let Some(found) = pending.find(gateway, is_meant) {
                            removed.push(pending.remove(gateway, found)[0]);
                        }
                        let (meant, others): (Vec<u64>, Vec<u64>) =
                            naive[gateway].iter().partition(|n| n.is_multiple_of(every));
                        prop_assert_eq!(removed, meant);
                        naive[gateway] = others.into();
                    }
                }
                for (gateway, queue) in naive.iter().enumerate() {
                    prop_assert_eq!(pending.has(gateway), !queue.is_empty());
                }
                let all: usize = naive.iter().map(VecDeque::len).sum();
                peak = peak.max(all);
                prop_assert_eq!(pending.len(), all as u64);
            }
            prop_assert!(pending.nodes.len() <= peak.max(capacity as usize), "nodes are used again");
        }
    }
}
