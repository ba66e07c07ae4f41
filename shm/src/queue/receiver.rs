//! The receiving end of a typed queue.

use super::descriptor::{self, AttachedEnd, EndState, QueueEnd};
use super::error::{ProducerFault, QueueError};
use super::liveness::{ProducerState, producer_states};
use super::payload::{self, Message, Partial};
use super::taken_message::TakenMessage;
use super::technique_queue::Queue;
use super::wake::{MAX_WAIT, Waiter};
use super::waking_mux::WakingMux;
use crate::ring::spsc_mux::Mux;
use crate::ring::{Consumer as _, Link};
use core::marker::PhantomData;
use core::time::Duration;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Instant;

/// The receiving end of a queue of typed messages, which polls its producers in turn. Dropping it
/// leaves the messages that it has not taken to the next receiver.
///
/// Its file descriptor becomes readable for a message that is pushed after
/// [`Receiver::prepare_wait`]: register it with epoll, or with tokio's `AsyncFd`.
pub struct Receiver<T> {
    mux: Mux,
    queue: Queue<WakingMux>,
    waiter: Waiter,
    /// Incomplete messages of several slots, by producer; empty for messages of one slot.
    partial: Vec<Partial>,
    last_producer: usize,
    #[cfg_attr(not(test), expect(dead_code, reason = "freed when it is dropped"))]
    end: AttachedEnd,
    message: PhantomData<fn() -> T>,
}

impl<T: Message> Receiver<T> {
    pub(super) fn attach(mut queue: Queue<WakingMux>, lock: File) -> Result<Self, QueueError> {
        let fifo = queue.open_fifo()?;
        let waiter = Waiter::attach(&mut queue.attached, fifo)?;
        let mut mux = WakingMux::consumer(&queue.spec, &mut queue.attached)?;
        for index in 0..queue.producers() {
            if descriptor::end_state(&queue.words, QueueEnd::Producer(index)) == EndState::Retired {
                mux.forget(index);
            }
        }
        let is_large = const { payload::slots::<T>() } > 1;
        let partial = (0..if is_large { queue.producers() } else { 0 }).map(|_| Partial::default()).collect();
        let end = AttachedEnd::resume(&queue.words, QueueEnd::Consumer, lock);
        Ok(Self { mux, queue, waiter, partial, last_producer: 0, end, message: PhantomData })
    }

    /// Takes the next message, or returns `None` if there is none now. Never blocks. Messages of
    /// one producer arrive in order; those of different producers are not ordered.
    ///
    /// **At most once:** the message's slots are freed before this returns. A receiver that is
    /// killed after that and before it has used the message loses it. See [`Receiver::take`].
    ///
    /// Acquire: sees everything that the sender did before its push.
    ///
    /// # Errors
    /// [`ProducerFault`], once: that producer is not read any more. The next call continues with
    /// the others.
    #[inline]
    pub fn pop(&mut self) -> Result<Option<T>, ProducerFault> {
        self.waiter.disarm();
        let popped = if const { payload::slots::<T>() } == 1 {
            self.mux.try_pop().map(|(producer, slot)| (producer, payload::from_slot(&slot)))
        } else {
            // All slots at once: a receiver that crashes before leaves the whole message.
            self.take_parts().inspect(|_| self.mux.release())
        };
        self.message_or_fault(popped)
    }

    /// Takes the next message as [`Receiver::pop`] does, and keeps its slots until
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
        let taken = self.take_unreleased()?;
        Ok(taken.map(|message| TakenMessage::new(&mut self.mux, self.last_producer, message)))
    }

    #[inline]
    fn take_unreleased(&mut self) -> Result<Option<T>, ProducerFault> {
        self.waiter.disarm();
        let taken = if const { payload::slots::<T>() } == 1 {
            self.mux.take().map(|(producer, slot)| (producer, payload::from_slot(&slot)))
        } else {
            self.take_parts()
        };
        self.message_or_fault(taken)
    }

    /// Takes all slots of the next large message, without freeing them.
    fn take_parts(&mut self) -> Option<(Option<usize>, T)> {
        loop {
            let (producer, slot) = self.mux.take()?;
            let message = self.partial.get_mut(producer.unwrap_or_default())?.add(&slot);
            if let Some(message) = message {
                return Some((producer, message));
            }
        }
    }

    #[inline]
    fn message_or_fault(&mut self, taken: Option<(Option<usize>, T)>) -> Result<Option<T>, ProducerFault> {
        match taken {
            Some((producer, message)) => {
                self.last_producer = producer.unwrap_or_default();
                Ok(Some(message))
            }
            None => self.fault(),
        }
    }

    #[inline]
    fn fault(&mut self) -> Result<Option<T>, ProducerFault> {
        match self.mux.take_fault() {
            Some((producer, fault)) => Err(ProducerFault { producer: producer.unwrap_or_default(), fault }),
            None => Ok(None),
        }
    }

    /// Takes the next message as [`Receiver::pop`] does, waiting for one at most for `timeout`.
    ///
    /// The death of a sender does not end the wait: [`Receiver::producers`] tells it apart from a
    /// sender that has nothing to send.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<Option<T>, ProducerFault> {
        self.wait_for(timeout, Self::pop)
    }

    /// Takes the next message as [`Receiver::take`] does, waiting for one at most for `timeout`.
    ///
    /// # Errors
    /// As [`Receiver::pop`].
    pub fn take_timeout(&mut self, timeout: Duration) -> Result<Option<TakenMessage<'_, T>>, ProducerFault> {
        let taken = self.wait_for(timeout, Self::take_unreleased)?;
        Ok(taken.map(|message| TakenMessage::new(&mut self.mux, self.last_producer, message)))
    }

    fn wait_for(
        &mut self,
        timeout: Duration,
        next: impl Fn(&mut Self) -> Result<Option<T>, ProducerFault>,
    ) -> Result<Option<T>, ProducerFault> {
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
        let is_empty = self.mux.looks_empty();
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

    /// Stops polling a dead producer of the queue. Returns `false` while it has messages to pop.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::ProducerAlive`]; what the system refused.
    pub fn retire(&mut self, index: usize) -> Result<bool, QueueError> {
        Ok(self.drain_check(index)?.is_some())
    }

    /// Frees the end of a dead or retired producer for a new sender, with its memory reset. Returns
    /// `false` while it has messages to pop. A successor that only continues can
    /// [`resume_sender`](super::MessageQueue::resume_sender) instead; a damaged ring needs this.
    ///
    /// # Errors
    /// As [`Receiver::retire`].
    pub fn renew(&mut self, index: usize) -> Result<bool, QueueError> {
        let Some(_lock) = self.drain_check(index)? else { return Ok(false) };
        self.queue.renew(index, &mut self.mux)
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
        if !self.mux.is_drained(index) {
            return Ok(None);
        }
        // Before the ring is renewed: a successor of this receiver must not read it again.
        descriptor::retire_end(&self.queue.words, index);
        self.mux.retire(index);
        if let Some(partial) = self.partial.get_mut(index) {
            partial.clear();
        }
        Ok(Some(lock))
    }
}

impl<T> AsFd for Receiver<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiter.fd()
    }
}

impl<T> AsRawFd for Receiver<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T> core::fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver").field("queue", &self.queue.label()).finish_non_exhaustive()
    }
}
