//! The receiving end of a typed queue.

use super::byte_receiver::ByteReceiver;
use super::error::{ProducerFault, QueueError};
use super::liveness::ProducerState;
use super::payload::Message;
use super::taken_message::TakenMessage;
use crate::ring::packed::PackedReceiver;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use core::time::Duration;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use zerocopy::IntoBytes as _;

/// The receiving end of a queue of typed messages, which polls its producers in turn. Dropping it
/// leaves the messages that it has not taken to the next receiver.
///
/// Its file descriptor becomes readable for a message that is pushed after
/// [`Receiver::prepare_wait`]: register it with epoll, or with tokio's `AsyncFd`.
pub struct Receiver<T> {
    receiver: ByteReceiver,
    message: PhantomData<fn() -> T>,
}

impl<T: Message> Receiver<T> {
    /// Makes a typed end of one whose messages have the size of `T`.
    pub(super) const fn from_bytes(receiver: ByteReceiver) -> Self {
        Self { receiver, message: PhantomData }
    }

    /// Takes the queue's next message, or returns `None` if there is none now. Never blocks.
    /// Messages of one producer arrive in order; those of different producers are not ordered.
    ///
    /// **At most once:** the message's slot is freed before this returns. A receiver that is
    /// killed after that and before it has used the message loses it. See [`Receiver::take`].
    ///
    /// Acquire: sees everything that the sender did before its push.
    ///
    /// # Errors
    /// [`ProducerFault`], once: that producer is not read any more. The next call continues with
    /// the others.
    #[inline]
    pub fn pop(&mut self) -> Result<Option<T>, ProducerFault> {
        next::<true, T>(&mut self.receiver)
    }

    /// Takes the next message as [`Receiver::pop`] does, and keeps its slot until
    /// [`TakenMessage::release`].
    ///
    /// **At least once:** a message that was not released is taken again, by this receiver if the
    /// [`TakenMessage`] is dropped, by its successor
    /// ([`resume_receiver`](super::MessageQueue::resume_receiver)) if its process dies. Nothing is
    /// lost. A process that dies after it has used the message and before it has released it
    /// doubles that one message.
    ///
    /// ```
    /// use shm::queue;
    ///
    /// let name = format!("doc-take-{}", std::process::id());
    /// let mut queue = queue::spsc::<u64>(&name, 8)?;
    /// queue.sender()?.push(&7)?;
    /// let mut receiver = queue.receiver()?;
    /// let mut used = Vec::new();
    /// while let Some(message) = receiver.take()? {
    ///     used.push(*message);
    ///     message.release();
    /// }
    /// assert_eq!(used, [7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    #[inline]
    pub fn take(&mut self) -> Result<Option<TakenMessage<'_, T>>, ProducerFault> {
        let taken = next::<false, T>(&mut self.receiver)?;
        Ok(taken.map(|message| TakenMessage::new(&mut self.receiver, message)))
    }

    /// Takes the queue's next message into `message` as [`Receiver::pop`] does. Returns `false` if
    /// there is none now. A long message is then copied once, and not moved.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    #[inline]
    pub fn pop_into(&mut self, message: &mut T) -> Result<bool, ProducerFault> {
        let popped = self.receiver.next_message::<true, _>(|ring| ring.copy_next(message.as_mut_bytes()));
        Ok(popped?.is_some())
    }

    /// Copies waiting messages of one producer into `messages`, as many as fit, and frees their
    /// slots together. Returns their number, 0 if there is none now; [`Receiver::last_producer`]
    /// tells whose they are.
    ///
    /// **At most once:** a receiver that is killed before it has used the messages loses them.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    #[inline]
    pub fn pop_many(&mut self, messages: &mut [T]) -> Result<usize, ProducerFault> {
        let max = messages.len();
        self.receiver.take_batch(max, |ring| ring.copy_many(max, messages.as_mut_bytes(), size_of::<T>()))
    }

    /// Passes up to `max` messages of one producer to `each`, and then frees their slots together.
    /// Returns their number, 0 if there is none now.
    ///
    /// **At least once:** all of them arrive again if `each` panics, or if the receiver is killed
    /// before this returns.
    ///
    /// ```
    /// use shm::queue;
    ///
    /// let name = format!("doc-drain-{}", std::process::id());
    /// let mut queue = queue::spsc::<u64>(&name, 8)?;
    /// assert_eq!(queue.sender()?.push_many(&[1, 2, 3]), 3);
    /// let mut used = Vec::new();
    /// assert_eq!(queue.receiver()?.drain(100, |message| used.push(message))?, 3);
    /// assert_eq!(used, [1, 2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    #[inline]
    pub fn drain(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, ProducerFault> {
        self.receiver.take_many(max, |ring| {
            each(copy_next(ring));
            ControlFlow::Continue(())
        })
    }

    /// Takes the next message as [`Receiver::pop`] does, waiting for one at most for `timeout`.
    ///
    /// The death of a sender does not end the wait: [`Receiver::producers`] tells it apart from a
    /// sender that has nothing to send.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<Option<T>, ProducerFault> {
        self.receiver.wait_for(timeout, next::<true, T>)
    }

    /// Takes the next message as [`Receiver::take`] does, waiting for one at most for `timeout`.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    pub fn take_timeout(&mut self, timeout: Duration) -> Result<Option<TakenMessage<'_, T>>, ProducerFault> {
        let taken = self.receiver.wait_for(timeout, next::<false, T>)?;
        Ok(taken.map(|message| TakenMessage::new(&mut self.receiver, message)))
    }

    /// Arms the queue's file descriptor, so that it becomes readable when a message is pushed.
    /// Returns `true` if the queue is empty: wait until the descriptor is readable, then pop until
    /// `None`. Returns `false` if there is a message already.
    ///
    /// Wait with a timeout of [`MAX_WAIT`](super::MAX_WAIT): a sender that is killed between its
    /// message and its wake-up leaves the message unannounced until the next push.
    pub fn prepare_wait(&mut self) -> bool {
        self.receiver.prepare_wait()
    }

    /// Returns the index of the producer of the message that was popped last.
    pub const fn last_producer(&self) -> usize {
        self.receiver.last_producer()
    }

    /// Returns the states of all producers of the queue, in the order of their indices.
    ///
    /// # Errors
    /// What the system refused.
    pub fn producers(&self) -> Result<Vec<ProducerState>, QueueError> {
        self.receiver.producers()
    }

    /// Stops polling the queue's dead producer with this index. Returns `false` while it has
    /// messages to pop.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::ProducerAlive`]; what the system refused.
    pub fn retire(&mut self, index: usize) -> Result<bool, QueueError> {
        self.receiver.retire(index)
    }

    /// Resets the memory of the dead or retired producer with this index, so that a new sender can
    /// attach there. Returns `false` while it has messages to pop. A successor that only continues
    /// can [`resume_sender`](super::MessageQueue::resume_sender) instead; a damaged ring needs
    /// this.
    ///
    /// # Errors
    /// As [`Receiver::retire`].
    pub fn renew(&mut self, index: usize) -> Result<bool, QueueError> {
        self.receiver.renew(index)
    }

    /// Ends this receiver as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(self) {
        self.receiver.abandon();
    }
}

#[inline(always)]
fn next<const RELEASES: bool, T: Message>(receiver: &mut ByteReceiver) -> Result<Option<T>, ProducerFault> {
    receiver.next_message::<RELEASES, T>(copy_next)
}

#[inline(always)]
fn copy_next<T: Message>(ring: &mut PackedReceiver) -> T {
    let mut message = T::new_zeroed();
    ring.copy_next(message.as_mut_bytes());
    message
}

impl<T> AsFd for Receiver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

impl<T> AsRawFd for Receiver<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T> core::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver").field("queue", &self.receiver.label()).finish_non_exhaustive()
    }
}
