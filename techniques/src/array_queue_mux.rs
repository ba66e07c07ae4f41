//! `array-queue-mux`: a real `crossbeam_queue::ArrayQueue` for every producer, scanned round-robin,
//! on the heap of one process. The seed benchmark's own fourth technique.
//!
//! It is a mux over queues that many could push to and pop from: each push and each pop pays a CAS
//! that nobody contends for, and a look into a queue loads two cursors. `spsc-mux` is what it stood
//! for there.

use crate::element::{Element, LineMessage};
use core::marker::PhantomData;
use core::ops::ControlFlow;
use crossbeam_queue::ArrayQueue;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};
use std::sync::Arc;

/// The technique. `E`: in which form it carries the messages.
pub struct ArrayQueueMux<E = LineMessage>(PhantomData<E>);

type Queue<E> = Arc<ArrayQueue<E>>;

/// The sending end: its own queue.
pub struct Sender<E>(Queue<E>);

/// The receiving end: all queues and where the next scan begins.
pub struct Mux<E> {
    queues: Vec<Queue<E>>,
    next: usize,
}

impl<E: Element> shm::ring::Producer for Sender<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(E::of(message)).map_err(|_| Full))
    }
}

impl<E: Element> shm::ring::Consumer for Mux<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // The same scan as `spsc_mux`, so that only the queues differ: two walks that only look.
        // `is_empty` is two loads; `pop` itself would add a fence for each empty queue.
        let (start, rest) = self.queues.split_at(self.next);
        let place = match rest.iter().position(|queue| !queue.is_empty()) {
            Some(place) => self.next + place,
            None => start.iter().position(|queue| !queue.is_empty())?,
        };
        let message = self.queues[place].pop()?;
        self.next = if place + 1 == self.queues.len() { 0 } else { place + 1 };
        Some((Some(place), message.message()))
    }
}

fn queue<E: Element>(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Queue<E> {
    attached.shared(&format!("{}-{index}", spec.name), || ArrayQueue::new(spec.capacity as usize))
}

impl<E: Element> Link for ArrayQueueMux<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("array-queue-mux", Home::Heap).apart().twin("spsc-mux");

    type Producer = Sender<E>;
    type Consumer = Mux<E>;

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Sender<E>, RegionError> {
        Ok(Sender(queue(spec, index, attached)))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Mux<E>, RegionError> {
        let queues = (0..spec.producers).map(|index| queue(spec, index, attached)).collect();
        Ok(Mux { queues, next: 0 })
    }
}
