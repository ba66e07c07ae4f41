//! `std-mpsc`: the standard library's unbounded channel, on the heap of one process.
//!
//! The reference that `linked` is measured against; polled with `try_recv`, as the agents of a run poll. Unbounded, as the
//! seed benchmark has it: a push is never refused, and every 31st message costs an allocation.

use super::{Full, Link, LinkSpec, PeerFault, SegmentSpec};
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::ring::Message;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// The technique.
pub struct StdMpsc;

/// The sending end.
pub struct Tx(Sender<Message>);

/// The receiving end.
pub struct Rx(Receiver<Message>);

/// Both ends until they are attached; the receiving one can be taken once.
type Ends = Mutex<(Sender<Message>, Option<Receiver<Message>>)>;

fn make() -> Ends {
    let (sender, receiver) = channel();
    Mutex::new((sender, Some(receiver)))
}

impl super::Producer for Tx {
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        // The only error is that the receiver is gone: the run is ending.
        self.0.send(*message).map_err(|_| Full)
    }
}

impl super::Consumer for Rx {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message))
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        None
    }
}

impl Link for StdMpsc {
    type Producer = Tx;
    type Consumer = Rx;

    fn segments(_: &LinkSpec) -> Vec<SegmentSpec> {
        Vec::new()
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<Tx, RegionError> {
        let ends = attached.shared(spec.name, make);
        let sender = ends.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        Ok(Tx(sender))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Rx, RegionError> {
        let ends = attached.shared(spec.name, make);
        let receiver = ends.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        receiver.map(Rx).ok_or_else(|| RegionError::Os {
            name: spec.name.into(),
            what: "attach a second receiver to it",
            source: std::io::ErrorKind::AddrInUse.into(),
        })
    }
}
