//! The sending end of a queue of messages of a size that is known when the program runs.

use super::descriptor::{AttachedEnd, QueueEnd};
use super::error::{ByteError, QueueError};
use super::payload;
use super::technique_queue::Queue;
use super::wake::Waker;
use super::waking_mux::WakingMux;
use crate::ring::spsc_mux::SpscMuxProducer;
use crate::ring::{Full, Link as _, Producer as _};
use std::fs::File;

/// The sending end of a queue of messages of a fixed number of bytes:
/// [`ByteQueue`](super::ByteQueue). Dropping it frees its producer; messages that were pushed
/// arrive.
pub struct ByteSender {
    ring: SpscMuxProducer,
    waker: Waker,
    index: usize,
    message_bytes: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "freed when it is dropped"))]
    end: AttachedEnd,
}

impl ByteSender {
    pub(super) fn attach(
        queue: &mut Queue<WakingMux>,
        message_bytes: usize,
        index: usize,
        lock: File,
    ) -> Result<Self, QueueError> {
        let fifo = queue.open_fifo()?;
        let waker = Waker::attach(&mut queue.attached, fifo)?;
        // It continues after what is there.
        let ring = WakingMux::producer(&queue.spec, index, &mut queue.attached)?;
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Producer(index), lock);
        Ok(Self { ring, waker, index, message_bytes, end })
    }

    /// Puts a message into the queue as [`Sender::push`](super::Sender::push) does.
    ///
    /// # Errors
    /// [`ByteError::Full`]; [`ByteError::Size`]: it has another size than the queue's messages. The
    /// message was not taken.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), ByteError> {
        if message.len() != self.message_bytes {
            return Err(ByteError::Size { expected: self.message_bytes, found: message.len() });
        }
        Ok(self.push_checked(message)?)
    }

    /// Puts a message of the queue's size into the queue. A constant size leaves one of the two
    /// ways.
    #[inline(always)]
    pub(super) fn push_checked(&mut self, message: &[u8]) -> Result<(), Full> {
        if payload::slot_count(message.len()) == 1 {
            self.ring.try_push(&payload::to_slot(message))?;
        } else {
            self.push_parts(message)?;
        }
        self.waker.wake();
        Ok(())
    }

    #[inline]
    fn push_parts(&mut self, message: &[u8]) -> Result<(), Full> {
        let ring = &mut self.ring.0;
        if !ring.has_room_for(payload::slot_count(message.len()) as u64) {
            return Err(Full);
        }
        // There is space for all of them, and only this end takes it.
        ring.try_push_iter(payload::split_into_slots(message));
        Ok(())
    }

    /// Returns the size of the queue's messages in bytes.
    pub const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Ends this sender as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.end.abandon();
    }

    /// Pushes the first parts of a large message, as a sender does that is killed in the middle.
    #[cfg(test)]
    pub(super) fn push_first_parts(&mut self, message: &[u8], count: usize) {
        let slots: Vec<_> = payload::split_into_slots(message).take(count).collect();
        assert_eq!(self.ring.0.try_push_many(&slots), count);
    }

    /// Returns `true` if the receiver has taken everything.
    #[cfg(test)]
    pub(super) fn is_taken(&mut self) -> bool {
        self.ring.0.free_slots() == self.ring.0.capacity()
    }

    /// Returns the index of this producer, as the receiver has it.
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl core::fmt::Debug for ByteSender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ByteSender").field("index", &self.index).finish_non_exhaustive()
    }
}
