//! `crossbeam-array-queue`: the real `crossbeam_queue::ArrayQueue`, one for all producers, on the heap of one process.
//!
//! The reference that `array-queue` is measured against. Its buffer is a `Box`, so it cannot live in shared memory.

use super::{Full, Link, LinkSpec, PeerFault, SegmentSpec};
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::ring::Message;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// The technique.
pub struct CrossbeamArrayQueue;

/// Either end.
pub struct End(Arc<ArrayQueue<Message>>);

impl super::Producer for End {
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        self.0.push(*message).map_err(|_| Full)
    }
}

impl super::Consumer for End {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().map(|message| (None, message))
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        None
    }
}

fn end(spec: &LinkSpec, attached: &mut Attached<'_>) -> End {
    End(attached.shared(spec.name, || ArrayQueue::new(spec.capacity as usize)))
}

impl Link for CrossbeamArrayQueue {
    type Producer = End;
    type Consumer = End;

    fn segments(_: &LinkSpec) -> Vec<SegmentSpec> {
        Vec::new()
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<End, RegionError> {
        Ok(end(spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<End, RegionError> {
        Ok(end(spec, attached))
    }
}
