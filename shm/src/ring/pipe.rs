//! `pipe`: a named pipe for each hand-off, the kernel's own N→1 queue of bytes. Non-blocking, one message a call.
//!
//! All producers write into the one pipe: a write of up to PIPE_BUF bytes (4,096) is never mixed with another, and a
//! message has 56. One pipe and not one for each producer, because that is what the kernel offers for many writers and
//! one reader, and because an empty poll then costs one system call however many producers there are. The price is that a
//! message does not say through whose end it came: the producer's index is `None`, and who writes anything but whole
//! messages shifts what the others have queued behind it. The shift ends, and is counted, when the pipe next runs
//! empty inside a message ([`PeerFault::Framing`]); what was mixed up until then fails the checks on orders, or does not.
//!
//! The pipe is as large as the kernel lets an ordinary user make it (16,384 messages where `pipe-max-size` is 1 MiB),
//! whatever the run's capacity. Full is EAGAIN.
//!
//! **What a dead producer leaves:** a whole message or none: the write is one system call, which the kernel does under the
//! pipe's lock, and a process dies before it or behind it. The kernel holds the queue's only state, nobody waits for the dead one,
//! and there is nothing to repair. Its successor opens the pipe as it did.

use super::{Ends, Full, Link, LinkSpec, PeerFault, Place, SegmentSpec};
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::os::fifo;
use crate::ring::{MESSAGE_WORDS, Message};
use std::fs::File;
use std::io::{Read, Write};
use zerocopy::IntoBytes;

/// The technique.
pub struct Pipe;

/// The sending end.
pub struct Sender(File);

/// The receiving end.
pub struct Receiver {
    pipe: File,
    fault: Option<PeerFault>,
}

impl super::Producer for Sender {
    #[inline]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        // Any error is Full: EAGAIN says so, and no other can come of a good pipe that we ourselves keep open.
        match self.0.write(message.as_bytes()) {
            Ok(bytes) if bytes == size_of::<Message>() => Ok(()),
            _ => Err(Full),
        }
    }
}

impl super::Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        let mut message = [0; MESSAGE_WORDS];
        match self.pipe.read(message.as_mut_bytes()) {
            Ok(bytes) if bytes == size_of::<Message>() => Some((None, message)),
            // EAGAIN: empty. 0: empty, and no producer has it open.
            Err(_) | Ok(0) => None,
            Ok(bytes) => {
                self.fault = Some(PeerFault::Framing { bytes });
                None
            }
        }
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|fault| (None, fault))
    }
}

impl Link for Pipe {
    type Producer = Sender;
    type Consumer = Receiver;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        vec![SegmentSpec {
            what: spec.name.into(),
            place: Place::Fifo,
            words: 0,
            kind: super::spsc::KIND,
            capacity: 0,
            slot_words: MESSAGE_WORDS as u64,
            index: 0,
            ends: Ends::ALL_WRITE,
        }]
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<Sender, RegionError> {
        fifo::open_writer(&attached.name(spec.name)).map(Sender)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        Ok(Receiver { pipe: fifo::open_reader(&attached.name(spec.name))?, fault: None })
    }
}
