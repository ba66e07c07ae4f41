//! `std-mpsc`: the standard library's unbounded channel, on the heap of one process.
//!
//! The reference that `linked` is measured against; polled with `try_recv`, as the agents of a run
//! poll. Unbounded, as the seed benchmark has it: a push is never refused, and every 31st message
//! costs an allocation.

use crate::element::Element;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// The technique `std-mpsc`: the standard library's unbounded channel. `E` is the form in which it
/// carries messages.
pub struct StdMpsc<E = Message>(PhantomData<E>);

/// The sending end of `std-mpsc`.
pub struct MpscSender<E>(Sender<E>);

/// The receiving end of `std-mpsc`.
pub struct MpscReceiver<E>(Receiver<E>);

/// Both ends until they are attached; the receiving end can be taken once.
type MpscEnds<E> = Mutex<(Sender<E>, Option<Receiver<E>>)>;

fn new_channel<E>() -> MpscEnds<E> {
    let (sender, receiver) = channel();
    Mutex::new((sender, Some(receiver)))
}

impl<E: Element> shm::ring::Producer for MpscSender<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // The only error is that the receiver is gone: the run is ending.
        whole(at, || self.0.send(E::from_message(message)).map_err(|_| Full))
    }
}

impl<E: Element> shm::ring::Consumer for MpscReceiver<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message.message()))
    }
}

impl<E: Element> Link for StdMpsc<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("std-mpsc", Home::Heap).unbounded().twin("linked");

    type Producer = MpscSender<E>;
    type Consumer = MpscReceiver<E>;

    fn producer(
        spec: &LinkSpec,
        _: usize,
        attached: &mut Attached<'_>,
    ) -> Result<MpscSender<E>, RegionError> {
        let ends = attached.shared(spec.name, new_channel::<E>);
        let sender = ends.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        Ok(MpscSender(sender))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<MpscReceiver<E>, RegionError> {
        let ends = attached.shared(spec.name, new_channel::<E>);
        let receiver = ends.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        receiver.map(MpscReceiver).ok_or_else(|| RegionError::Os {
            name: spec.name.into(),
            what: "attach a second receiver to it",
            source: std::io::ErrorKind::AddrInUse.into(),
        })
    }
}
