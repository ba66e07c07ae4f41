//! The sending end of a queue of messages of a size that is known when the program runs.

use super::descriptor::{AttachedEnd, QueueEnd};
use super::error::{ByteError, QueueError};
use super::overflow::OverflowWriter;
use super::payload::{SLOT_BYTES, to_slot};
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
    /// `None` if the messages fit into slots.
    overflow: Option<OverflowWriter>,
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
        let overflow = OverflowWriter::attach(&queue.spec, index, message_bytes, &mut queue.attached)?;
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Producer(index), lock);
        Ok(Self { ring, overflow, waker, index, message_bytes, end })
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
        if message.len() <= SLOT_BYTES {
            self.ring.try_push(&to_slot(message))?;
        } else {
            self.push_long(message)?;
        }
        self.waker.wake();
        Ok(())
    }

    #[inline(never)]
    fn push_long(&mut self, message: &[u8]) -> Result<(), Full> {
        self.write_overflow(message)?;
        // There is room for it, which only this end takes.
        self.ring.try_push(&to_slot(&message[..SLOT_BYTES]))
    }

    /// Writes what the slot of the next message has no room for, which nothing shows yet.
    #[inline]
    pub(super) fn write_overflow(&mut self, message: &[u8]) -> Result<(), Full> {
        let (ring, Some(overflow)) = (&mut self.ring.0, &self.overflow) else { return Err(Full) };
        if !ring.has_room() {
            return Err(Full);
        }
        overflow.write(ring.published(), &message[SLOT_BYTES..]);
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
