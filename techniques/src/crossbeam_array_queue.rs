//! `crossbeam-array-queue`: the real `crossbeam_queue::ArrayQueue`, one for all producers, on the
//! heap of one process.
//!
//! The reference that `array-queue` is measured against. Its buffer is a `Box`, so it cannot live
//! in shared memory.

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

/// The technique `crossbeam-array-queue`: one `crossbeam_queue::ArrayQueue` for all producers. `E`
/// is the form in which it carries messages.
pub struct CrossbeamArrayQueue<E = LineMessage>(PhantomData<E>);

/// A sending or the receiving end of `crossbeam-array-queue`.
pub struct QueueEnd<E>(Arc<ArrayQueue<E>>);

impl<E: Element> shm::ring::Producer for QueueEnd<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(E::from_message(message)).map_err(|_| Full))
    }
}

impl<E: Element> shm::ring::Consumer for QueueEnd<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().map(|message| (None, message.message()))
    }
}

fn end<E: Element>(spec: &LinkSpec, attached: &mut Attached<'_>) -> QueueEnd<E> {
    QueueEnd(attached.shared(spec.name, || ArrayQueue::new(spec.capacity as usize)))
}

impl<E: Element> Link for CrossbeamArrayQueue<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("crossbeam-array-queue", Home::Heap).twin("array-queue");

    type Producer = QueueEnd<E>;
    type Consumer = QueueEnd<E>;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<QueueEnd<E>, RegionError> {
        Ok(end(spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<QueueEnd<E>, RegionError> {
        Ok(end(spec, attached))
    }
}
