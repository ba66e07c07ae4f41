//! `std-mpsc`: the standard library's unbounded channel, on the heap of one process.
//!
//! The reference that `linked` is measured against; polled with `try_recv`, as the agents of a run
//! poll. Unbounded, as the seed benchmark has it: a push is never refused, and every 31st message
//! costs an allocation.

use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Message;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, TechniqueInfo};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// The technique `std-mpsc`.
pub struct StdMpsc;

/// The sending end of `std-mpsc`.
pub struct MpscSender(Sender<Message>);

/// The receiving end of `std-mpsc`.
pub struct MpscReceiver(Receiver<Message>);

/// Both ends until they are attached; the receiving end can be taken once.
type MpscEnds = Mutex<(Sender<Message>, Option<Receiver<Message>>)>;

fn new_channel() -> MpscEnds {
    let (sender, receiver) = channel();
    Mutex::new((sender, Some(receiver)))
}

impl shm::ring::Producer for MpscSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // The only error is that the receiver is gone: the run is ending.
        whole(at, || self.0.send(*message).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for MpscReceiver {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message))
    }
}

impl Link for StdMpsc {
    const INFO: TechniqueInfo = TechniqueInfo::new("std-mpsc", Home::Heap).unbounded().twin("linked");

    type Producer = MpscSender;
    type Consumer = MpscReceiver;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<MpscSender, RegionError> {
        let ends = attached.shared(spec.name, new_channel);
        let sender = ends.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        Ok(MpscSender(sender))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<MpscReceiver, RegionError> {
        let ends = attached.shared(spec.name, new_channel);
        let receiver = ends.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        receiver.map(MpscReceiver).ok_or_else(|| RegionError::Os {
            name: spec.name.into(),
            what: "attach a second receiver to it",
            source: std::io::ErrorKind::AddrInUse.into(),
        })
    }
}
