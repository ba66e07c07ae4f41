//! The receiving end of a queue of messages of a size that is known when the program runs.

use super::byte_link::ByteLink;
use super::descriptor::{self, AttachedEnd, EndState, QueueEnd};
use super::error::{ByteError, ProducerFault, QueueError};
use super::liveness::{ProducerState, producer_state, producer_states};
use super::rings::Rings;
use super::technique_queue::Queue;
use super::wake::{MAX_WAIT, Waiter};
use crate::ring::packed::{EndPosition, PackedLayout, PackedReceiver};
use core::ops::ControlFlow;
use core::time::Duration;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Instant;
use zerocopy::IntoBytes as _;

/// The receiving end of a queue of messages of a fixed number of bytes:
/// [`ByteQueue`](super::ByteQueue). It is used as [`Receiver`](super::Receiver).
pub struct ByteReceiver {
    pub(super) rings: Rings,
    queue: Queue<ByteLink>,
    waiter: Waiter,
    message_bytes: usize,
    /// Copy of the message that was taken last with [`ByteReceiver::take`].
    taken: Vec<u64>,
    /// A message was taken with [`ByteReceiver::take`], and neither released nor put back.
    has_taken: bool,
    last_producer: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "freed when it is dropped"))]
    end: AttachedEnd,
}

impl ByteReceiver {
    pub(super) fn attach(
        mut queue: Queue<ByteLink>,
        message_bytes: usize,
        lock: File,
    ) -> Result<Self, QueueError> {
        let fifo = queue.open_fifo()?;
        let waiter = Waiter::attach(&mut queue.attached, fifo)?;
        let mut rings = Rings::attach(&queue.spec, message_bytes, &mut queue.attached)?;
        for index in 0..queue.producers() {
            if descriptor::end_state(&queue.words, QueueEnd::Producer(index)) == EndState::Retired {
                rings.retire(index);
            }
        }
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Consumer, lock);
        Ok(Self {
            rings,
            queue,
            waiter,
            message_bytes,
            taken: vec![0; message_bytes.div_ceil(8)],
            has_taken: false,
            last_producer: 0,
            end,
        })
    }

    /// Returns the size of the queue's messages in bytes.
    pub const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns the ring's memory layout and the receiver's position, for code in another language
    /// that pops messages in memory without calling this library. `None` for a queue of several
    /// producers, while the receiver is armed, and while it has a message that was taken: then each
    /// pop must call this library.
    pub fn layout(&mut self) -> Option<(PackedLayout, EndPosition)> {
        if self.has_taken || self.waiter.is_armed() {
            return None;
        }
        self.rings.only().map(|ring| (ring.layout(), ring.position()))
    }

    /// Returns the memory layout of the first producer's ring, even while other code may not pop
    /// from the ring without calling this library.
    pub fn ring_layout(&self) -> PackedLayout {
        self.rings.first_layout()
    }

    /// Sets the receiver's position, in messages, to the one that code in another language has
    /// reached by popping directly in memory. Does nothing unless [`ByteReceiver::layout`] returns
    /// a ring.
    pub fn set_position(&mut self, position: EndPosition) {
        if let (Some(ring), false) = (self.rings.only(), self.has_taken) {
            ring.set_position(position);
            self.last_producer = 0;
        }
    }

    /// Takes the next message into `message`, as [`Receiver::pop`](super::Receiver::pop) does.
    /// Returns `false` if there is none now.
    ///
    /// # Errors
    /// [`ByteError::Fault`]; [`ByteError::Size`]: `message` has another size than the queue's
    /// messages; [`ByteError::Taken`]. Nothing was taken.
    #[inline]
    pub fn pop_into(&mut self, message: &mut [u8]) -> Result<bool, ByteError> {
        self.check_pop(message.len())?;
        Ok(self.pop_checked(message)?)
    }

    /// Takes the next message as [`ByteReceiver::pop_into`] does, waiting for one at most for
    /// `timeout`.
    ///
    /// # Errors
    /// As [`ByteReceiver::pop_into`].
    pub fn pop_into_timeout(&mut self, message: &mut [u8], timeout: Duration) -> Result<bool, ByteError> {
        self.check_pop(message.len())?;
        let popped = self.wait_for(timeout, |receiver| {
            Ok::<_, ProducerFault>(receiver.pop_checked(message)?.then_some(()))
        });
        Ok(popped?.is_some())
    }

    /// Takes the next message but keeps its slot until [`ByteReceiver::release`] or
    /// [`ByteReceiver::put_back`]; no other can be taken before. `None`: there is none now.
    ///
    /// The bytes are the receiver's own copy, aligned to 8 bytes, which no producer can change.
    ///
    /// # Errors
    /// [`ByteError::Fault`]; [`ByteError::Taken`].
    #[inline]
    pub fn take(&mut self) -> Result<Option<&[u8]>, ByteError> {
        self.take_timeout(Duration::ZERO)
    }

    /// Takes the next message as [`ByteReceiver::take`] does, waiting for one at most for
    /// `timeout`.
    ///
    /// # Errors
    /// As [`ByteReceiver::take`].
    #[inline]
    pub fn take_timeout(&mut self, timeout: Duration) -> Result<Option<&[u8]>, ByteError> {
        if self.has_taken {
            return Err(ByteError::Taken);
        }
        if self.take_checked()? || (!timeout.is_zero() && self.wait_to_take(timeout)?) {
            self.has_taken = true;
            return Ok(Some(self.taken_bytes()));
        }
        Ok(None)
    }

    fn wait_to_take(&mut self, timeout: Duration) -> Result<bool, ProducerFault> {
        let taken =
            self.wait_for(timeout, |receiver| Ok::<_, ProducerFault>(receiver.take_checked()?.then_some(())));
        Ok(taken?.is_some())
    }

    /// Frees the slot of the message that was taken, so that it is not delivered again. Returns
    /// `false` if there was none.
    ///
    /// Release: everything that this thread did with the message comes before its slot is reused.
    #[inline]
    pub fn release(&mut self) -> bool {
        let has_taken = core::mem::take(&mut self.has_taken);
        if has_taken {
            self.rings.release();
        }
        has_taken
    }

    /// Puts the message that was taken back into the queue, as the next one of its producer.
    /// Messages of other producers may come first. Returns `false` if there was none.
    pub fn put_back(&mut self) -> bool {
        let has_taken = core::mem::take(&mut self.has_taken);
        if has_taken {
            self.rings.put_back();
        }
        has_taken
    }

    #[inline(always)]
    fn check_pop(&self, found: usize) -> Result<(), ByteError> {
        if found != self.message_bytes {
            return Err(ByteError::Size { expected: self.message_bytes, found });
        }
        if self.has_taken { Err(ByteError::Taken) } else { Ok(()) }
    }

    #[inline(always)]
    fn pop_checked(&mut self, message: &mut [u8]) -> Result<bool, ProducerFault> {
        let popped = self.next_message::<true, _>(|ring| ring.copy_next(message));
        Ok(popped?.is_some())
    }

    #[inline(always)]
    fn take_checked(&mut self) -> Result<bool, ProducerFault> {
        let (bytes, mut taken) = (self.message_bytes, core::mem::take(&mut self.taken));
        let copy = |ring: &mut PackedReceiver| ring.copy_next(&mut taken.as_mut_bytes()[..bytes]);
        let is_taken = self.next_message::<false, _>(copy).map(|copied| copied.is_some());
        self.taken = taken;
        is_taken
    }

    #[inline]
    fn taken_bytes(&self) -> &[u8] {
        &self.taken.as_bytes()[..self.message_bytes]
    }

    /// Passes the ring of the next message, which is there, to `read`. What that takes is freed if
    /// `RELEASES`.
    #[inline(always)]
    pub(super) fn next_message<const RELEASES: bool, R>(
        &mut self,
        read: impl FnOnce(&mut PackedReceiver) -> R,
    ) -> Result<Option<R>, ProducerFault> {
        self.next_messages::<RELEASES, R>(1, read)
    }

    /// Passes a ring as [`ByteReceiver::next_message`] does, for up to `max` messages.
    #[inline(always)]
    fn next_messages<const RELEASES: bool, R>(
        &mut self,
        max: usize,
        read: impl FnOnce(&mut PackedReceiver) -> R,
    ) -> Result<Option<R>, ProducerFault> {
        self.waiter.disarm();
        let Some((producer, ring)) = self.rings.next_ring(max as u64) else { return self.fault() };
        let result = read(ring);
        if RELEASES {
            ring.release();
        }
        self.last_producer = producer;
        Ok(Some(result))
    }

    /// Copies waiting messages of one producer into `messages`, next to each other, as many as fit,
    /// and frees their slots together. Returns their number, 0 if there is none now: see
    /// [`Receiver::pop_many`](super::Receiver::pop_many).
    ///
    /// # Errors
    /// As [`ByteReceiver::pop_into`]; [`ByteError::Size`]: the bytes are not those of whole
    /// messages.
    #[inline]
    pub fn pop_many(&mut self, messages: &mut [u8]) -> Result<usize, ByteError> {
        let (len, bytes) = (messages.len(), self.message_bytes);
        self.check_pop(if len.is_multiple_of(bytes) { bytes } else { len })?;
        let max = len.checked_div(bytes).unwrap_or(0);
        Ok(self.take_batch(max, |ring| ring.copy_any(max, messages))?)
    }

    /// Passes the ring of up to `max` messages of one producer to `take`, and frees the
    /// places of all that it took at once. Returns its result, 0 without a message.
    #[inline(always)]
    pub(super) fn take_batch(
        &mut self,
        max: usize,
        take: impl FnOnce(&mut PackedReceiver) -> usize,
    ) -> Result<usize, ProducerFault> {
        let taken = if max == 0 { None } else { self.next_messages::<true, _>(max, take)? };
        Ok(taken.unwrap_or(0))
    }

    /// Passes up to `max` messages of one producer to `each`, and then frees their slots together.
    /// Returns their number: see [`Receiver::drain`](super::Receiver::drain). The bytes are the
    /// receiver's own copy, as those of [`ByteReceiver::take`].
    ///
    /// A message for which `each` returns `Break` stays, and so do those after it.
    ///
    /// # Errors
    /// As [`ByteReceiver::take`].
    pub fn drain(
        &mut self,
        max: usize,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<usize, ByteError> {
        if self.has_taken {
            return Err(ByteError::Taken);
        }
        let (bytes, mut taken) = (self.message_bytes, core::mem::take(&mut self.taken));
        if taken.is_empty() {
            // `each` of the drain before has panicked.
            taken = vec![0; bytes.div_ceil(8)];
        }
        let drained = self.take_many(max, |ring| {
            let message = &mut taken.as_mut_bytes()[..bytes];
            ring.copy_next(message);
            each(message)
        });
        self.taken = taken;
        Ok(drained?)
    }

    /// Calls `take` for each of up to `max` messages of one producer, with its ring; it takes one
    /// each time. Frees their places together. A message for which it returns `Break` stays. All
    /// of them stay if it panics.
    #[inline(always)]
    pub(super) fn take_many(
        &mut self,
        max: usize,
        mut take: impl FnMut(&mut PackedReceiver) -> ControlFlow<()>,
    ) -> Result<usize, ProducerFault> {
        self.take_batch(max, |ring| {
            let count = ring.known().min(max as u64) as usize;
            let mut unreleased = Unreleased { ring, count: 0 };
            for number in 0..count {
                unreleased.count += 1;
                if take(unreleased.ring).is_break() {
                    unreleased.ring.rewind(1);
                    core::mem::forget(unreleased);
                    return number;
                }
            }
            core::mem::forget(unreleased);
            count
        })
    }

    #[inline]
    fn fault<R>(&mut self) -> Result<Option<R>, ProducerFault> {
        match self.rings.take_fault() {
            Some((producer, fault)) => Err(ProducerFault { producer, fault }),
            None => Ok(None),
        }
    }

    pub(super) fn wait_for<R, E>(
        &mut self,
        timeout: Duration,
        mut next: impl FnMut(&mut Self) -> Result<Option<R>, E>,
    ) -> Result<Option<R>, E> {
        let start = Instant::now();
        loop {
            if let Some(message) = next(self)? {
                return Ok(Some(message));
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            if self.prepare_wait() {
                self.waiter.wait(left.min(MAX_WAIT));
            }
        }
    }

    /// Arms the queue's file descriptor, so that it becomes readable when a message is pushed.
    /// Returns `true` if the queue is empty: wait until the descriptor is readable, then pop until
    /// `None`. Returns `false` if there is a message already.
    ///
    /// Wait with a timeout of [`MAX_WAIT`]: a sender that is killed between its message and its
    /// wake-up leaves the message unannounced until the next push.
    pub fn prepare_wait(&mut self) -> bool {
        self.waiter.arm();
        let is_empty = self.rings.look_empty();
        if !is_empty {
            self.waiter.disarm();
        }
        is_empty
    }

    /// Returns the index of the producer of the message that was popped last.
    pub const fn last_producer(&self) -> usize {
        self.last_producer
    }

    /// Returns the states of all producers of the queue, in the order of their indices.
    ///
    /// # Errors
    /// What the system refused.
    pub fn producers(&self) -> Result<Vec<ProducerState>, QueueError> {
        producer_states(&self.queue)
    }

    /// Returns the state (free, attached, dead or retired) of the queue's producer with this index.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; what the system refused.
    pub fn producer(&self, index: usize) -> Result<ProducerState, QueueError> {
        self.queue.check_index(index)?;
        producer_state(&self.queue, index)
    }

    /// Stops polling the queue's dead producer with this index. Returns `false` while it has
    /// messages to pop.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::ProducerAlive`]; what the system refused.
    pub fn retire(&mut self, index: usize) -> Result<bool, QueueError> {
        Ok(self.drain_check(index)?.is_some())
    }

    /// Resets the memory of the dead or retired producer with this index, so that a new sender can
    /// attach there. Returns `false` while it has messages to pop. A successor that only continues
    /// can [`resume_sender`](super::ByteQueue::resume_sender) instead; a damaged ring needs this.
    ///
    /// # Errors
    /// As [`ByteReceiver::retire`].
    pub fn renew(&mut self, index: usize) -> Result<bool, QueueError> {
        let Some(_lock) = self.drain_check(index)? else { return Ok(false) };
        self.queue.reset_memory(index)?;
        self.rings.renew(index);
        descriptor::free_end(&self.queue.words, QueueEnd::Producer(index));
        Ok(true)
    }

    pub(super) fn label(&self) -> &str {
        self.queue.label()
    }

    /// Ends this receiver as the death of its process would: its end is neither freed nor locked.
    #[cfg(test)]
    pub(super) fn abandon(mut self) {
        self.end.abandon();
    }

    /// Retires a producer if nothing is left of it, and returns the lock of its end.
    fn drain_check(&mut self, index: usize) -> Result<Option<File>, QueueError> {
        self.queue.check_index(index)?;
        let lock = self.queue.lock_end(QueueEnd::Producer(index))?;
        let lock = lock.ok_or(QueueError::ProducerAlive(index))?;
        // The ring has moved past a taken message, which is still the receiver's until its release.
        let is_taken_from = self.has_taken && self.last_producer == index;
        if is_taken_from || !self.rings.is_drained(index) {
            return Ok(None);
        }
        // Before the ring is renewed: a successor of this receiver must not read it again.
        descriptor::retire_end(&self.queue.words, index);
        self.rings.retire(index);
        Ok(Some(lock))
    }
}

/// Messages that were taken and not released; they are put back if their user panics.
struct Unreleased<'a> {
    ring: &'a mut PackedReceiver,
    count: u64,
}

impl Drop for Unreleased<'_> {
    fn drop(&mut self) {
        self.ring.rewind(self.count);
    }
}

impl AsFd for ByteReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.fd()
    }
}

impl AsRawFd for ByteReceiver {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl core::fmt::Debug for ByteReceiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ByteReceiver").field("queue", &self.label()).finish_non_exhaustive()
    }
}
