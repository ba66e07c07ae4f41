//! The sending end of a typed queue.

use super::byte_sender::ByteSender;
use super::payload::Message;
use crate::ring::Full;
use core::marker::PhantomData;
use zerocopy::IntoBytes as _;

/// The sending end of a queue of typed messages. Dropping it frees its producer; messages that were
/// pushed arrive.
pub struct Sender<T> {
    sender: ByteSender,
    message: PhantomData<fn(T)>,
}

impl<T: Message> Sender<T> {
    /// Makes a typed end of one whose messages have the size of `T`.
    pub(super) const fn from_bytes(sender: ByteSender) -> Self {
        Self { sender, message: PhantomData }
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
        self.sender.push_checked(message.as_bytes())
    }

    /// Puts messages into the queue from the first on, as many as fit, with one wake-up. Returns
    /// their number. A sender that is killed here has pushed the first ones, or none.
    ///
    /// Release: as [`Sender::push`].
    #[inline]
    pub fn push_many(&mut self, messages: &[T]) -> usize {
        self.sender.push_next(messages.len(), messages.as_bytes(), size_of::<T>())
    }

    /// Ends this sender as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(self) {
        self.sender.abandon();
    }

    /// Pushes a message halfway, as a sender does that is killed before it publishes it.
    #[cfg(test)]
    pub(super) fn push_half(&mut self, message: &T) {
        self.sender.push_half(message.as_bytes()).expect("there is room");
    }

    /// Returns `true` if the receiver has taken everything.
    #[cfg(test)]
    pub(super) fn is_taken(&mut self) -> bool {
        self.sender.is_taken()
    }

    /// Returns the index of this producer, as [`Receiver::last_producer`](super::Receiver) returns
    /// it.
    pub const fn index(&self) -> usize {
        self.sender.index()
    }
}

impl<T> core::fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sender").field("index", &self.sender.index()).finish_non_exhaustive()
    }
}
