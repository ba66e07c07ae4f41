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

/// The technique. `E`: in which form it carries the messages.
pub struct CrossbeamArrayQueue<E = LineMessage>(PhantomData<E>);

/// Either end.
pub struct End<E>(Arc<ArrayQueue<E>>);

impl<E: Element> shm::ring::Producer for End<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(E::of(message)).map_err(|_| Full))
    }
}

impl<E: Element> shm::ring::Consumer for End<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().map(|message| (None, message.message()))
    }
}

fn end<E: Element>(spec: &LinkSpec, attached: &mut Attached<'_>) -> End<E> {
    End(attached.shared(spec.name, || ArrayQueue::new(spec.capacity as usize)))
}

impl<E: Element> Link for CrossbeamArrayQueue<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("crossbeam-array-queue", Home::Heap).twin("array-queue");

    type Producer = End<E>;
    type Consumer = End<E>;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<End<E>, RegionError> {
        Ok(end(spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<End<E>, RegionError> {
        Ok(end(spec, attached))
    }
}
