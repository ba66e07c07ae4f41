//! The sending end of a typed queue.

use super::descriptor::{AttachedEnd, QueueEnd};
use super::error::QueueError;
use super::payload::{self, Message};
use super::technique_queue::Queue;
use super::wake::Waker;
use super::waking_mux::WakingMux;
use crate::ring::spsc_mux::SpscMuxProducer;
use crate::ring::{Full, Link as _, Producer as _};
use core::marker::PhantomData;
use std::fs::File;

/// The sending end of a queue of typed messages. Dropping it frees its producer; messages that were
/// pushed arrive.
pub struct Sender<T> {
    ring: SpscMuxProducer,
    waker: Waker,
    index: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "freed when it is dropped"))]
    end: AttachedEnd,
    message: PhantomData<fn(T)>,
}

impl<T: Message> Sender<T> {
    pub(super) fn attach(queue: &mut Queue<WakingMux>, index: usize, lock: File) -> Result<Self, QueueError> {
        let fifo = queue.open_fifo()?;
        let waker = Waker::attach(&mut queue.attached, fifo)?;
        // It continues after what is there.
        let ring = WakingMux::producer(&queue.spec, index, &mut queue.attached)?;
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Producer(index), lock);
        Ok(Self { ring, waker, index, end, message: PhantomData })
    }

    /// Puts a message into the queue, and wakes a waiting receiver. Never blocks. Does not make a
    /// system call unless the receiver waits.
    ///
    /// Release: the receiver that pops the message sees everything this thread did before.
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    #[inline]
    pub fn push(&mut self, message: &T) -> Result<(), Full> {
        if const { payload::slots::<T>() } == 1 {
            self.ring.try_push(&payload::to_slot(message))?;
        } else {
            self.push_parts(message)?;
        }
        self.waker.wake();
        Ok(())
    }

    fn push_parts(&mut self, message: &T) -> Result<(), Full> {
        let ring = &mut self.ring.0;
        if ring.free_slots() < payload::slots::<T>() as u64 {
            return Err(Full);
        }
        // There is space for all of them, and only this end takes it.
        ring.try_push_iter(payload::split_into_slots(message));
        Ok(())
    }

    /// Ends this sender as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.end.abandon();
    }

    /// Pushes the first parts of a large message, as a sender does that is killed in the middle.
    #[cfg(test)]
    pub(super) fn push_first_parts(&mut self, message: &T, count: usize) {
        let slots: Vec<_> = payload::split_into_slots(message).take(count).collect();
        assert_eq!(self.ring.0.try_push_many(&slots), count);
    }

    /// Returns `true` if the receiver has taken everything.
    #[cfg(test)]
    pub(super) fn is_taken(&mut self) -> bool {
        self.ring.0.free_slots() == self.ring.0.capacity()
    }

    /// Returns the index of this producer, as [`Receiver::last_producer`](super::Receiver) returns
    /// it.
    pub const fn index(&self) -> usize {
        self.index
    }
}

impl<T> core::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sender").field("index", &self.index).finish_non_exhaustive()
    }
}
