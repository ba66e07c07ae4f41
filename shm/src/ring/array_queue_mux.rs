//! `array-queue-mux`: a real `crossbeam_queue::ArrayQueue` for every producer, scanned round-robin, on the heap of one
//! process. The seed benchmark's own fourth technique.
//!
//! It is a mux over queues that many could push to and pop from: each push and each pop pays a CAS that nobody
//! contends for, and each look into an empty queue pays a fence. `spsc-mux` is what it stood for there.

use super::{Full, Link, LinkSpec, PeerFault, SegmentSpec};
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::ring::Message;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// The technique.
pub struct ArrayQueueMux;

type Queue = Arc<ArrayQueue<Message>>;

/// The sending end: its own queue.
pub struct Sender(Queue);

/// The receiving end: all queues and where the next scan begins.
pub struct Mux {
    queues: Vec<Queue>,
    next: usize,
}

impl super::Producer for Sender {
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        self.0.push(*message).map_err(|_| Full)
    }
}

impl super::Consumer for Mux {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // The same scan as `spsc_mux`, so that only the queues differ.
        for place in (self.next..self.queues.len()).chain(0..self.next) {
            if let Some(message) = self.queues[place].pop() {
                self.next = if place + 1 == self.queues.len() { 0 } else { place + 1 };
                return Some((Some(place), message));
            }
        }
        None
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        None
    }
}

fn queue(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Queue {
    attached.shared(&format!("{}-{index}", spec.name), || ArrayQueue::new(spec.capacity as usize))
}

impl Link for ArrayQueueMux {
    type Producer = Sender;
    type Consumer = Mux;

    fn segments(_: &LinkSpec) -> Vec<SegmentSpec> {
        Vec::new()
    }

    fn producer(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Result<Sender, RegionError> {
        Ok(Sender(queue(spec, index, attached)))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Mux, RegionError> {
        let queues = (0..spec.producers).map(|index| queue(spec, index, attached)).collect();
        Ok(Mux { queues, next: 0 })
    }
}
