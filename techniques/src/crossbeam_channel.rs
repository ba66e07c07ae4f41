//! `crossbeam-channel`: the real crate's bounded channel, on the heap of one process.
//!
//! The reference that `channel` is measured against; polled with `try_recv`, as the agents of a run
//! poll.

use crate::element::LineMessage;
use ::crossbeam_channel::{Receiver, Sender, bounded};
use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};

/// The technique `crossbeam-channel`.
pub struct CrossbeamChannel;

/// A sending end of `crossbeam-channel`.
pub struct ChannelSender(Sender<LineMessage>);

/// The receiving end of `crossbeam-channel`.
pub struct ChannelReceiver(Receiver<LineMessage>);

impl shm::ring::Producer for ChannelSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Disconnected counts as full: the receiver is gone, the run is ending.
        whole(at, || self.0.try_send(LineMessage(*message)).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for ChannelReceiver {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message.0))
    }
}

impl Link for CrossbeamChannel {
    const INFO: TechniqueInfo = TechniqueInfo::new("crossbeam-channel", Home::Heap).twin("channel");

    type Producer = ChannelSender;
    type Consumer = ChannelReceiver;

    fn producer(
        spec: &LinkSpec,
        _: usize,
        attached: &mut Attached<'_>,
    ) -> Result<ChannelSender, RegionError> {
        let ends = attached.shared(spec.name, || bounded(spec.capacity as usize));
        Ok(ChannelSender(ends.0.clone()))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<ChannelReceiver, RegionError> {
        let ends = attached.shared(spec.name, || bounded(spec.capacity as usize));
        Ok(ChannelReceiver(ends.1.clone()))
    }
}
