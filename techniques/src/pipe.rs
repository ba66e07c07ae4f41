//! `pipe`: a named pipe for each hand-off, the kernel's own N→1 queue of bytes. Non-blocking, one
//! message a call.
//!
//! All producers write into the one pipe: one pipe is what the kernel offers for many writers and
//! one reader, and an empty poll then costs one system call however many producers there are. A
//! message travels in a frame of 64 bytes:
//!
//! ```text
//! byte 0      2        4       8                                             64
//!      │ mark │ length │ check │ message: seven words                         │
//! ```
//!
//! A write of up to PIPE_BUF bytes (4,096) is never mixed with another, so whole frames stand in
//! the pipe, and between two of them only what somebody wrote that is no frame. The receiver passes
//! over such bytes to the next frame whose mark, length and check are right, and counts them
//! ([`PeerFault::Framing`]): a writer of anything, of any length, costs the others nothing. When
//! the pipe runs empty inside a frame, what is there is no honest frame either, and is dropped.
//!
//! What a frame does not say is through whose end it came: the producer's index is `None`. Who can
//! write into the pipe can write frames in another's name, and one who knows another's next message
//! bit by bit can write the beginning of a frame that takes the end from it. The check is against
//! mistakes and garbage; it is no signature.
//!
//! The kernel's own packets (`O_DIRECT`) would not do: each takes a page, so that the pipe holds
//! 256 messages instead of 16,384, and a writer that leaves the flag out still takes bytes from the
//! packet behind it.
//!
//! The pipe is as large as the kernel lets an ordinary user make it (16,384 messages where
//! `pipe-max-size` is 1 MiB), whatever the run's capacity. Full is EAGAIN.
//!
//! **What a dead producer leaves:** a whole message or none: the write is one system call, which
//! the kernel does under the pipe's lock, and a process dies before it or behind it. The kernel
//! holds the queue's only state, nobody waits for the dead one, and there is nothing to repair. Its
//! successor opens the pipe as it did.

use crate::named::fifo;
use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::step::{Step, whole};
use shm::ring::{EndRights, Full, Home, Link, LinkSpec, PeerFault, SegmentPlace, SegmentSpec, TechniqueInfo};
use shm::ring::{MESSAGE_WORDS, Message};
use std::fs::File;
use std::io::{Read, Write};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a frame.
pub const FRAME_BYTES: usize = size_of::<Frame>();
/// How a frame begins: two bytes to know it by, two of its length.
const MARK: [u8; 4] = [0xB7, 0x1D, FRAME_BYTES as u8, 0];
/// The most that is read at once, to pass over what is no frame. In step, one frame is read at a
/// time.
const SCAN_BYTES: usize = 4096;
/// The most reads of a poll: what else stands in the pipe waits for the next one.
const READS: usize = 4;

/// The head, then the message.
type Frame = [u64; MESSAGE_WORDS + 1];

/// What stands before a message in its frame.
fn head(message: &Message) -> u64 {
    let mut sum = 0x9e37_79b9_7f4a_7c15_u64;
    for &word in message {
        sum = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        sum ^= sum >> 32;
    }
    (u64::from(u32::from_le_bytes(MARK)) | sum << 32).to_le()
}

/// A message in its frame.
pub fn frame(message: &Message) -> Frame {
    let mut frame = [0; MESSAGE_WORDS + 1];
    frame[0] = head(message);
    frame[1..].copy_from_slice(message);
    frame
}

/// The technique.
pub struct Pipe;

/// The sending end.
pub struct Sender(File);

/// The receiving end.
pub struct Receiver {
    pipe: File,
    /// What was read and is still to be looked at is `bytes[next..end]`. Nothing while all is in
    /// step.
    bytes: Box<[u8; SCAN_BYTES]>,
    next: usize,
    end: usize,
    /// The last thing that was found was a frame.
    in_step: bool,
    /// Bytes outside frames, since the fault was taken.
    stray: usize,
}

impl shm::ring::Producer for Sender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Any error is Full: EAGAIN says so, and EPIPE that there is no receiver yet, or none any
        // more.
        whole(at, || match self.0.write(frame(message).as_bytes()) {
            Ok(FRAME_BYTES) => Ok(()),
            _ => Err(Full),
        })
    }
}

impl Receiver {
    /// The message at `next`, if a frame stands there. At least a frame's bytes must be there.
    #[inline]
    fn whole(&self) -> Option<Message> {
        let bytes = &self.bytes[self.next..self.next + FRAME_BYTES];
        let [head_word, message @ ..] = Frame::read_from_bytes(bytes).ok()?;
        (head(&message) == head_word).then_some(message)
    }

    /// Reads more; false if nothing more is there.
    #[inline]
    fn fill(&mut self) -> bool {
        let left = self.end - self.next;
        if left > 0 {
            self.bytes.copy_within(self.next..self.end, 0);
        }
        (self.next, self.end) = (0, left);
        let until = if self.in_step && left == 0 { FRAME_BYTES } else { SCAN_BYTES };
        match self.pipe.read(&mut self.bytes[left..until]) {
            Ok(bytes @ 1..) => {
                self.end += bytes;
                true
            }
            // EAGAIN: empty. 0: empty, and no producer has it open. A frame is written whole, so
            // what is left is none.
            _ => {
                self.stray += left;
                self.end = 0;
                false
            }
        }
    }

    /// Passes over at least one byte, up to where a frame may begin.
    #[cold]
    fn pass_over(&mut self) {
        let rest = &self.bytes[self.next + 1..self.end];
        let may_begin = |at: &usize| rest[*at..].iter().zip(&MARK).all(|(byte, mark)| byte == mark);
        let bytes = 1 + (0..rest.len()).find(may_begin).unwrap_or(rest.len());
        self.next += bytes;
        self.stray += bytes;
        self.in_step = false;
    }
}

impl shm::ring::Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        for _ in 0..READS {
            while self.end - self.next >= FRAME_BYTES {
                if let Some(message) = self.whole() {
                    self.next += FRAME_BYTES;
                    self.in_step = true;
                    return Some((None, message));
                }
                self.pass_over();
            }
            if !self.fill() {
                return None;
            }
        }
        None
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        let bytes = std::mem::take(&mut self.stray);
        (bytes > 0).then_some((None, PeerFault::Framing { bytes }))
    }
}

impl Link for Pipe {
    const INFO: TechniqueInfo = TechniqueInfo::new("pipe", Home::Kernel);

    type Producer = Sender;
    type Consumer = Receiver;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        vec![SegmentSpec {
            name: spec.name.into(),
            place: SegmentPlace::Fifo,
            words: 0,
            kind: shm::ring::spsc::KIND,
            capacity: 0,
            slot_words: MESSAGE_WORDS as u64,
            index: 0,
            ends: EndRights::ALL_WRITE,
        }]
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<Sender, RegionError> {
        fifo::open_writer(&attached.name(spec.name)).map(Sender)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        Ok(Receiver::new(fifo::open_reader(&attached.name(spec.name))?))
    }
}

impl Receiver {
    /// The receiving end of a pipe, open for reading and non-blocking.
    fn new(pipe: File) -> Self {
        Self { pipe, bytes: Box::new([0; SCAN_BYTES]), next: 0, end: 0, in_step: true, stray: 0 }
    }
}
