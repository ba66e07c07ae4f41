//! A message that its receiver has taken and not yet released.

use super::byte_receiver::ByteReceiver;
use super::payload::Message;
use core::ops::Deref;

/// A message that was taken and still has its slot in the queue: see
/// [`Receiver::take`](super::Receiver::take).
///
/// [`TakenMessage::release`] frees it. Dropped without it, the message is the next one of its
/// producer again; messages of other producers may come first. If the process dies first, the
/// receiver's successor takes it.
#[must_use = "a message that is dropped without `release` is taken again"]
pub struct TakenMessage<'a, T: Message> {
    receiver: &'a mut ByteReceiver,
    message: T,
    is_released: bool,
}

impl<'a, T: Message> TakenMessage<'a, T> {
    #[inline]
    pub(super) const fn new(receiver: &'a mut ByteReceiver, message: T) -> Self {
        Self { receiver, message, is_released: false }
    }

    /// Frees the slot of a message that has been used, so that it is not delivered again.
    ///
    /// Release: everything that this thread did with the message comes before its slot is reused.
    #[inline]
    pub fn release(mut self) {
        self.receiver.rings.release();
        self.is_released = true;
    }

    /// Returns the index of the queue's producer that sent the taken message.
    pub const fn producer(&self) -> usize {
        self.receiver.last_producer()
    }
}

impl<T: Message> Deref for TakenMessage<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.message
    }
}

impl<T: Message> Drop for TakenMessage<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_released {
            self.receiver.rings.put_back();
        }
    }
}

impl<T: Message + core::fmt::Debug> core::fmt::Debug for TakenMessage<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("TakenMessage").field(&self.message).finish()
    }
}
