//! `pipe`: a named pipe for each hand-off, the kernel's own N→1 byte queue. Non-blocking, one
//! message per call.
//!
//! All producers write into one pipe, so an empty poll costs one system call for any number of
//! producers. A message is sent in a frame of 64 bytes:
//!
//! ```text
//! byte 0      2        4       8                                             64
//!      │ mark │ length │ check │ message: seven words                         │
//! ```
//!
//! A write of up to PIPE_BUF bytes (4,096) is never mixed with another, so the pipe contains whole
//! frames, and between them only invalid bytes of faulty writers. The receiver skips such bytes to
//! the next frame with correct mark, length and check, and counts them ([`PeerFault::Framing`]):
//! invalid bytes of any length cost other producers nothing. If the pipe is empty inside a frame,
//! the incomplete frame is invalid and dropped.
//!
//! A frame does not identify its producer: the index is `None`. Any process that can write into the
//! pipe can send frames in another's name, and one that can guess another's next message can write
//! the beginning of a frame that swallows it. The check detects mistakes and garbage; it is not a
//! signature.
//!
//! Why not the kernel's packet mode (`O_DIRECT`): each packet takes a page, so the pipe holds 256
//! messages instead of 16,384, and a writer without the flag can still corrupt the next packet.
//!
//! The pipe has the maximum size for ordinary users (16,384 messages if `pipe-max-size` is 1 MiB),
//! independent of the run's capacity. Full is EAGAIN.
//!
//! **What a dead producer leaves:** a whole message or none: the write is one system call under the
//! pipe's lock, and a process dies before or after it. The kernel holds the only state of the
//! queue, no peer waits for the dead producer, and there is nothing to repair. Its successor opens
//! the pipe again.

use crate::named::{self, fifo};
use core::ops::ControlFlow;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, PeerFault, SegmentPlace, SegmentSpec, TechniqueInfo};
use shm::ring::{MESSAGE_WORDS, Message};
use std::fs::File;
use std::io::{Read, Write};
use zerocopy::{FromBytes, IntoBytes};

/// Size in bytes of a frame: the unit in which a pipe carries a message.
pub const FRAME_BYTES: usize = size_of::<Frame>();
/// The beginning of a frame: two magic bytes, and two bytes of its length.
const MARK: [u8; 4] = [0xB7, 0x1D, FRAME_BYTES as u8, 0];
/// Maximum number of bytes read at once to skip invalid bytes. While synchronized, one frame is
/// read at a time.
const SCAN_BYTES: usize = 4096;
const MAX_READS: usize = 4;

/// A frame: the head, then the message.
type Frame = [u64; MESSAGE_WORDS + 1];

fn frame_head(message: &Message) -> u64 {
    let mut sum = 0x9e37_79b9_7f4a_7c15_u64;
    for &word in message {
        sum = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        sum ^= sum >> 32;
    }
    (u64::from(u32::from_le_bytes(MARK)) | sum << 32).to_le()
}

/// Encodes a message as the frame of bytes that a pipe carries.
pub fn frame(message: &Message) -> Frame {
    let mut frame = [0; MESSAGE_WORDS + 1];
    frame[0] = frame_head(message);
    frame[1..].copy_from_slice(message);
    frame
}

/// The technique `pipe`: one named pipe of the kernel for all producers.
pub struct Pipe;

/// A sending end of the technique `pipe`.
pub struct PipeSender(File);

/// The receiving end of the technique `pipe`.
pub struct PipeReceiver {
    pipe: File,
    /// Bytes read and not yet parsed are `bytes[next..end]`; none while synchronized.
    bytes: Box<[u8; SCAN_BYTES]>,
    next: usize,
    end: usize,
    /// `true` while the stream is synchronized: the last bytes were a valid frame.
    is_synchronized: bool,
    /// Number of bytes outside frames since the last fault was taken.
    stray: usize,
}

impl shm::ring::Producer for PipeSender {
    #[inline]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Any error is Full: EAGAIN means full, EPIPE a missing receiver.
        whole(at, || match self.0.write(frame(message).as_bytes()) {
            Ok(FRAME_BYTES) => Ok(()),
            _ => Err(Full),
        })
    }
}

impl PipeReceiver {
    /// Returns the message at `next` if there is a valid frame. At least a frame's bytes must be
    /// available.
    #[inline]
    fn parse_frame(&self) -> Option<Message> {
        let bytes = &self.bytes[self.next..self.next + FRAME_BYTES];
        let [head_word, message @ ..] = Frame::read_from_bytes(bytes).ok()?;
        (frame_head(&message) == head_word).then_some(message)
    }

    #[inline]
    fn try_fill(&mut self) -> bool {
        let remaining = self.end - self.next;
        if remaining > 0 {
            self.bytes.copy_within(self.next..self.end, 0);
        }
        (self.next, self.end) = (0, remaining);
        let until = if self.is_synchronized && remaining == 0 { FRAME_BYTES } else { SCAN_BYTES };
        match self.pipe.read(&mut self.bytes[remaining..until]) {
            Ok(bytes @ 1..) => {
                self.end += bytes;
                true
            }
            // EAGAIN: empty. 0: empty, and no producer has it open. Frames are written whole, so
            // the remaining bytes are invalid.
            _ => {
                self.stray += remaining;
                self.end = 0;
                false
            }
        }
    }

    /// Skips at least one byte, up to the next possible beginning of a frame.
    #[cold]
    fn skip_invalid(&mut self) {
        let following = &self.bytes[self.next + 1..self.end];
        let may_begin = |at: &usize| following[*at..].iter().zip(&MARK).all(|(byte, mark)| byte == mark);
        let bytes = 1 + (0..following.len()).find(may_begin).unwrap_or(following.len());
        self.next += bytes;
        self.stray += bytes;
        self.is_synchronized = false;
    }
}

impl shm::ring::Consumer for PipeReceiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        for _ in 0..MAX_READS {
            while self.end - self.next >= FRAME_BYTES {
                if let Some(message) = self.parse_frame() {
                    self.next += FRAME_BYTES;
                    self.is_synchronized = true;
                    return Some((None, message));
                }
                self.skip_invalid();
            }
            if !self.try_fill() {
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

    type Producer = PipeSender;
    type Consumer = PipeReceiver;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        named::segments(spec, SegmentPlace::Fifo)
    }

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<PipeSender, RegionError> {
        fifo::open_writer(&attached.name(spec.name)).map(PipeSender)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<PipeReceiver, RegionError> {
        let (pipe, bytes) = (fifo::open_reader(&attached.name(spec.name))?, Box::new([0; SCAN_BYTES]));
        Ok(PipeReceiver { pipe, bytes, next: 0, end: 0, is_synchronized: true, stray: 0 })
    }
}
