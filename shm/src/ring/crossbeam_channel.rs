//! `crossbeam-channel`: the real crate's bounded channel, on the heap of one process.
//!
//! The reference that `channel` is measured against; polled with `try_recv`, as the agents of a run poll.

use super::{Full, Link, LinkSpec, PeerFault, SegmentSpec};
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::ring::Message;
use ::crossbeam_channel::{Receiver, Sender, bounded};

/// The technique.
pub struct CrossbeamChannel;

/// The sending end.
pub struct Tx(Sender<Message>);

/// The receiving end.
pub struct Rx(Receiver<Message>);

impl super::Producer for Tx {
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        // Disconnected counts as full: the receiver is gone, the run is ending.
        self.0.try_send(*message).map_err(|_| Full)
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

impl Link for CrossbeamChannel {
    type Producer = Tx;
    type Consumer = Rx;

    fn segments(_: &LinkSpec) -> Vec<SegmentSpec> {
        Vec::new()
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<Tx, RegionError> {
        let ends = attached.shared(spec.name, || bounded::<Message>(spec.capacity as usize));
        Ok(Tx(ends.0.clone()))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Rx, RegionError> {
        let ends = attached.shared(spec.name, || bounded::<Message>(spec.capacity as usize));
        Ok(Rx(ends.1.clone()))
    }
}
