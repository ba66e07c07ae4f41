//! `crossbeam-channel`: the real crate's bounded channel, on the heap of one process.
//!
//! The reference that `channel` is measured against; polled with `try_recv`, as the agents of a run
//! poll.

use crate::element::{Element, LineMessage};
use ::crossbeam_channel::{Receiver, Sender, bounded};
use core::marker::PhantomData;
use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};

/// The technique `crossbeam-channel`: crossbeam's bounded channel. `E` is the form in which it
/// carries messages.
pub struct CrossbeamChannel<E = LineMessage>(PhantomData<E>);

/// A sending end of `crossbeam-channel`.
pub struct ChannelSender<E>(Sender<E>);

/// The receiving end of `crossbeam-channel`.
pub struct ChannelReceiver<E>(Receiver<E>);

impl<E: Element> shm::ring::Producer for ChannelSender<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Disconnected counts as full: the receiver is gone, the run is ending.
        whole(at, || self.0.try_send(E::from_message(message)).map_err(|_| Full))
    }
}

impl<E: Element> shm::ring::Consumer for ChannelReceiver<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message.message()))
    }
}

impl<E: Element> Link for CrossbeamChannel<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("crossbeam-channel", Home::Heap).twin("channel");

    type Producer = ChannelSender<E>;
    type Consumer = ChannelReceiver<E>;

    fn producer(
        spec: &LinkSpec,
        _: usize,
        attached: &mut Attached<'_>,
    ) -> Result<ChannelSender<E>, RegionError> {
        let ends = attached.shared(spec.name, || bounded::<E>(spec.capacity as usize));
        Ok(ChannelSender(ends.0.clone()))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<ChannelReceiver<E>, RegionError> {
        let ends = attached.shared(spec.name, || bounded::<E>(spec.capacity as usize));
        Ok(ChannelReceiver(ends.1.clone()))
    }
}
