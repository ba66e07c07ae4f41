//! The sending end of a queue of messages of a size that is known when the program runs.

use super::byte_link::ByteLink;
use super::descriptor::{AttachedEnd, QueueEnd};
use super::error::{ByteError, QueueError};
use super::rings;
use super::technique_queue::Queue;
use super::wake::Waker;
use crate::ring::Full;
use crate::ring::packed::{EndPosition, PackedLayout, PackedSender};
use crate::sync::AtomicU64;
use std::fs::File;

/// The sending end of a queue of messages of a fixed number of bytes:
/// [`ByteQueue`](super::ByteQueue). Dropping it frees its producer; messages that were pushed
/// arrive.
pub struct ByteSender {
    ring: PackedSender,
    waker: Waker,
    index: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "freed when it is dropped"))]
    end: AttachedEnd,
}

impl ByteSender {
    pub(super) fn attach(
        queue: &mut Queue<ByteLink>,
        message_bytes: usize,
        index: usize,
        lock: File,
    ) -> Result<Self, QueueError> {
        let fifo = queue.open_fifo()?;
        let waker = Waker::attach(&mut queue.attached, fifo)?;
        // It continues after what is there.
        let ring = rings::attach_sender(&queue.spec, index, message_bytes, &mut queue.attached)?;
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Producer(index), lock);
        Ok(Self { ring, waker, index, end })
    }

    /// Puts a message into the queue as [`Sender::push`](super::Sender::push) does.
    ///
    /// # Errors
    /// [`ByteError::Full`]; [`ByteError::Size`]: it has another size than the queue's messages. The
    /// message was not taken.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), ByteError> {
        self.check_size(message.len())?;
        Ok(self.push_checked(message)?)
    }

    /// Puts a message of the queue's size into the queue.
    #[inline(always)]
    pub(super) fn push_checked(&mut self, message: &[u8]) -> Result<(), Full> {
        self.ring.push(message)?;
        self.waker.wake();
        Ok(())
    }

    /// Puts messages into the queue from the first on, as many as fit, as
    /// [`Sender::push_many`](super::Sender::push_many) does. They are next to each other.
    ///
    /// # Errors
    /// [`ByteError::Size`]: the bytes are not those of whole messages. Nothing was taken.
    #[inline]
    pub fn push_many(&mut self, messages: &[u8]) -> Result<usize, ByteError> {
        let (len, bytes) = (messages.len(), self.message_bytes());
        self.check_size(if len.is_multiple_of(bytes) { bytes } else { len })?;
        let pushed = self.ring.push_many(messages);
        Ok(self.wake_after(pushed))
    }

    /// Puts the first of `count` messages of the queue's size, next to each other, into the queue.
    #[inline(always)]
    pub(super) fn push_next(&mut self, count: usize, messages: &[u8], bytes: usize) -> usize {
        let pushed = self.ring.push_next(count, messages, bytes);
        self.wake_after(pushed)
    }

    #[inline(always)]
    fn wake_after(&mut self, pushed: usize) -> usize {
        if pushed > 0 {
            self.waker.wake();
        }
        pushed
    }

    #[inline(always)]
    fn check_size(&self, found: usize) -> Result<(), ByteError> {
        let expected = self.message_bytes();
        if found == expected { Ok(()) } else { Err(ByteError::Size { expected, found }) }
    }

    /// Wakes the queue's receiver if it waits. For code in another language, after it has pushed
    /// messages in memory without calling this library.
    pub fn wake(&mut self) {
        self.waker.wake();
    }

    /// Returns the word that is 0 while a push needs no [`ByteSender::wake`], for code of another
    /// language. It is not 0 once the receiver has waited.
    pub fn wake_flag(&self) -> &AtomicU64 {
        self.waker.flag()
    }

    /// Returns the memory layout of the sender's ring, for code in another language that pushes
    /// messages in memory without calling this library.
    pub fn layout(&self) -> PackedLayout {
        self.ring.layout()
    }

    /// Returns the sender's position (messages pushed so far), and the position up to which it may
    /// push without reading the receiver's.
    pub const fn position(&self) -> EndPosition {
        self.ring.position()
    }

    /// Sets the sender's position, in messages, to the one that code in another language has
    /// reached by pushing directly in memory.
    #[inline]
    pub fn set_position(&mut self, position: EndPosition) {
        self.ring.set_position(position);
    }

    /// Returns the size of the queue's messages in bytes.
    #[inline(always)]
    pub const fn message_bytes(&self) -> usize {
        self.ring.message_bytes()
    }

    /// Pushes a message halfway, as a sender does that is killed before it publishes the message.
    #[cfg(test)]
    pub(super) fn push_half(&mut self, message: &[u8]) -> Result<(), Full> {
        self.ring.push_half(message)
    }

    /// Ends this sender as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.end.abandon();
    }

    /// Returns `true` if the receiver has taken everything.
    #[cfg(test)]
    pub(super) fn is_taken(&mut self) -> bool {
        self.ring.is_taken()
    }

    /// Returns the index of this sender's producer, by which the receiver identifies its messages.
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl core::fmt::Debug for ByteSender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ByteSender").field("index", &self.index).finish_non_exhaustive()
    }
}
