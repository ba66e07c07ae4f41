//! `crossbeam-array-queue`: the real `crossbeam_queue::ArrayQueue`, one for all producers, on the
//! heap of one process.
//!
//! The reference that `array-queue` is measured against. Its buffer is a `Box`, so it cannot live
//! in shared memory.

use crate::element::LineMessage;
use core::ops::ControlFlow;
use crossbeam_queue::ArrayQueue;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};
use std::sync::Arc;

/// The technique `crossbeam-array-queue`.
pub struct CrossbeamArrayQueue;

/// A sending or the receiving end of `crossbeam-array-queue`.
pub struct QueueEnd(Arc<ArrayQueue<LineMessage>>);

impl shm::ring::Producer for QueueEnd {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(LineMessage(*message)).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for QueueEnd {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().map(|message| (None, message.0))
    }
}

fn end(spec: &LinkSpec, attached: &mut Attached<'_>) -> QueueEnd {
    QueueEnd(attached.shared(spec.name, || ArrayQueue::new(spec.capacity as usize)))
}

impl Link for CrossbeamArrayQueue {
    const INFO: TechniqueInfo = TechniqueInfo::new("crossbeam-array-queue", Home::Heap).twin("array-queue");

    type Producer = QueueEnd;
    type Consumer = QueueEnd;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<QueueEnd, RegionError> {
        Ok(end(spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<QueueEnd, RegionError> {
        Ok(end(spec, attached))
    }
}
