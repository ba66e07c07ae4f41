//! `array-queue-mux`: a real `crossbeam_queue::ArrayQueue` for every producer, scanned round-robin,
//! on the heap of one process. The seed benchmark's own fourth technique.
//!
//! It is a mux over MPMC queues: each push and each pop pays an uncontended CAS, and checking a
//! queue loads two cursors. `spsc-mux` is its counterpart in shared memory.

use crate::element::LineMessage;
use core::ops::ControlFlow;
use crossbeam_queue::ArrayQueue;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};
use std::sync::Arc;

/// The technique `array-queue-mux`.
pub struct ArrayQueueMux;

type Queue = Arc<ArrayQueue<LineMessage>>;

/// The sending end: the producer's own queue.
pub struct QueueSender(Queue);

/// The receiving end: all queues and the start of the next scan.
pub struct QueueMux {
    queues: Vec<Queue>,
    next: usize,
}

impl shm::ring::Producer for QueueSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(LineMessage(*message)).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for QueueMux {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // The same scan as `spsc_mux`, so that only the queues differ: two passes of read-only
        // checks. `is_empty` is two loads; `pop` itself would add a fence for each empty queue.
        let (start, rest) = self.queues.split_at(self.next);
        let place = match rest.iter().position(|queue| !queue.is_empty()) {
            Some(place) => self.next + place,
            None => start.iter().position(|queue| !queue.is_empty())?,
        };
        let message = self.queues[place].pop()?;
        self.next = if place + 1 == self.queues.len() { 0 } else { place + 1 };
        Some((Some(place), message.0))
    }
}

fn queue(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Queue {
    attached.shared(&format!("{}-{index}", spec.name), || ArrayQueue::new(spec.capacity as usize))
}

impl Link for ArrayQueueMux {
    const INFO: TechniqueInfo = TechniqueInfo::new("array-queue-mux", Home::Heap).apart().twin("spsc-mux");

    type Producer = QueueSender;
    type Consumer = QueueMux;

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<QueueSender, RegionError> {
        Ok(QueueSender(queue(spec, index, attached)))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<QueueMux, RegionError> {
        let queues = (0..spec.producers).map(|index| queue(spec, index, attached)).collect();
        Ok(QueueMux { queues, next: 0 })
    }
}
