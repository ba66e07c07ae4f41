//! The memory of typed queues: a packed ring for each producer, and the wake-up of the receiver.

use super::wake::{FIFO, FLAG};
use crate::attached::Attached;
use crate::bell::{self, BELL_WORDS};
use crate::memory::RegionError;
use crate::ring::{
    Consumer, EndRights, Full, Home, Link, LinkSpec, Message, Producer, SegmentPlace, SegmentSpec, Step,
    TechniqueInfo,
};
use core::ops::ControlFlow;

/// The memory of a typed queue. Its rings, whose size depends on that of its messages, are those of
/// [`rings`](super::rings); its ends are [`ByteSender`](super::ByteSender) and
/// [`ByteReceiver`](super::ByteReceiver), and not ends of a technique.
pub(super) struct ByteLink;

/// An end of a technique that a typed queue does not have.
pub(super) enum NoEnd {}

impl Producer for NoEnd {
    fn try_push_with(
        &mut self,
        _: &Message,
        _: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        match *self {}
    }
}

impl Consumer for NoEnd {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        match *self {}
    }
}

impl Link for ByteLink {
    const INFO: TechniqueInfo =
        TechniqueInfo::new("message-queue", Home::Memory).apart().consumer_resumable().producer_resumable();

    type Producer = NoEnd;
    type Consumer = NoEnd;

    fn segments(_: &LinkSpec) -> Vec<SegmentSpec> {
        let flag = SegmentSpec::memory(FLAG, bell::KIND, BELL_WORDS, EndRights::ALL_WRITE);
        let fifo = SegmentSpec::memory(FIFO, bell::KIND, 0, EndRights::ALL_WRITE);
        vec![flag, SegmentSpec { place: SegmentPlace::Fifo, ..fifo }]
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<NoEnd, RegionError> {
        Self::resume_producer(spec, 0, attached)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<NoEnd, RegionError> {
        Self::resume_consumer(spec, attached)
    }
}
