//! A queue of messages whose size is known when the program runs, and the attachment of its ends.
//! The typed queues are built on it.

use super::byte_link::ByteLink;
use super::byte_receiver::ByteReceiver;
use super::byte_sender::ByteSender;
use super::descriptor::{self, EndState, QueueEnd};
use super::error::{MAX_SLOTS, QueueError};
use super::liveness::{ProducerState, producer_state, producer_states};
use super::payload::{MAX_MESSAGE_BYTES, from_word, to_word};
use super::technique_queue::Queue;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A handle of a queue whose message size in bytes is chosen at run time and not by a Rust type.
/// For interfaces of other languages; a program in Rust has [`MessageQueue`](super::MessageQueue),
/// whose processes may use the same queue.
///
/// ```
/// use shm::queue::{self, ByteQueue};
///
/// let name = format!("doc-bytes-{}", std::process::id());
/// let mut queue = ByteQueue::create(&name, 1, 8, 12)?;
/// let mut receiver = queue.receiver()?;
/// queue::open::<[u32; 3]>(&name)?.sender()?.push(&[1, 2, 3])?;
/// let mut message = [0; 12];
/// assert!(receiver.pop_into(&mut message)?);
/// assert_eq!(message, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ByteQueue {
    queue: Queue<ByteLink>,
    message_bytes: usize,
}

impl ByteQueue {
    /// Creates a queue of up to `producers` producers and one consumer under a name, for messages
    /// of `message_bytes` bytes.
    ///
    /// # Errors
    /// As [`mpsc_of`](super::mpsc_of); [`QueueError::MessageBytes`].
    pub fn create(
        name: &str,
        producers: usize,
        capacity: u32,
        message_bytes: usize,
    ) -> Result<Self, QueueError> {
        Self::create_sized(name, producers, capacity, check_bytes(message_bytes)?)
    }

    /// Creates a queue of up to `producers` producers in sealed memory, without a name, for
    /// messages of `message_bytes` bytes: see [`sealed`](super::sealed).
    ///
    /// # Errors
    /// As [`sealed`](super::sealed); [`QueueError::MessageBytes`].
    pub fn sealed(producers: usize, capacity: u32, message_bytes: usize) -> Result<Self, QueueError> {
        Self::seal_sized(producers, capacity, check_bytes(message_bytes)?)
    }

    /// Opens a queue that another process has created under a name, with the queue's own message
    /// size ([`ByteQueue::message_bytes`]).
    ///
    /// # Errors
    /// As [`open`](super::open), without a size that is expected.
    pub fn open(name: &str) -> Result<Self, QueueError> {
        Self::open_sized(name)?.with_checked_size()
    }

    /// Opens the sealed queue that another process created, given its two descriptors, with the
    /// queue's own message size. See [`ByteQueue::message_bytes`].
    ///
    /// # Errors
    /// As [`from_fds`](super::from_fds), without a size that is expected.
    pub fn from_fds(fds: [OwnedFd; 2]) -> Result<Self, QueueError> {
        Self::from_fds_sized(fds)?.with_checked_size()
    }

    pub(super) fn create_sized(
        name: &str,
        producers: usize,
        capacity: u32,
        message_bytes: usize,
    ) -> Result<Self, QueueError> {
        let slots = ring_slots(capacity)?;
        let queue = Queue::create_typed(name, producers, slots, to_word(message_bytes))?;
        Ok(Self { queue, message_bytes })
    }

    pub(super) fn seal_sized(
        producers: usize,
        capacity: u32,
        message_bytes: usize,
    ) -> Result<Self, QueueError> {
        let slots = ring_slots(capacity)?;
        let queue = Queue::create_sealed(producers, slots, to_word(message_bytes))?;
        Ok(Self { queue, message_bytes })
    }

    pub(super) fn open_sized(name: &str) -> Result<Self, QueueError> {
        Ok(Self::read_size(Queue::open_any(name)?))
    }

    pub(super) fn from_fds_sized(fds: [OwnedFd; 2]) -> Result<Self, QueueError> {
        Ok(Self::read_size(Queue::from_fds(fds)?))
    }

    /// Reads the size, which a peer may have overwritten: it is checked before an end is attached.
    fn read_size(queue: Queue<ByteLink>) -> Self {
        let message_bytes = from_word(queue.descriptor.message_bytes);
        Self { queue, message_bytes }
    }

    fn with_checked_size(self) -> Result<Self, QueueError> {
        check_bytes(self.message_bytes)?;
        Ok(self)
    }

    /// Returns an error if the queue's messages are not `message_bytes` bytes long.
    ///
    /// # Errors
    /// [`QueueError::MessageSize`].
    pub fn check_size(&self, message_bytes: usize) -> Result<(), QueueError> {
        if message_bytes == self.message_bytes {
            return Ok(());
        }
        let (expected, found) = (to_word(message_bytes), to_word(self.message_bytes));
        Err(QueueError::MessageSize { name: self.label().into(), expected, found })
    }

    /// Returns the size of the queue's messages in bytes.
    pub const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Returns the maximum number of producers of the queue.
    pub fn producer_count(&self) -> usize {
        self.queue.producers()
    }

    pub(super) fn label(&self) -> &str {
        self.queue.label()
    }

    /// Returns the queue's name, by which other processes open it; `None` if it is
    /// [`sealed`](ByteQueue::sealed).
    pub fn name(&self) -> Option<&str> {
        self.queue.name()
    }

    /// Returns the two descriptors by which other processes open a [`sealed`](ByteQueue::sealed)
    /// queue; `None` if it has a name. They are its memory and its pipe.
    ///
    /// Send duplicates of them over a Unix socket (`SCM_RIGHTS`), or let a child inherit them:
    /// [`inherited_by`](crate::memory::sealed::inherited_by), and in the child
    /// [`take_inherited`](crate::memory::sealed::take_inherited). Their holder may read and write
    /// the whole queue.
    pub fn fds(&self) -> Option<[BorrowedFd<'_>; 2]> {
        self.queue.fds()
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

    /// Returns `true` if a live process has attached the receiver.
    ///
    /// # Errors
    /// What the system refused.
    pub fn has_receiver(&self) -> Result<bool, QueueError> {
        self.queue.is_end_locked(QueueEnd::Consumer)
    }

    /// Attaches a sender to the queue as the first free producer. The end of a crashed producer is
    /// not free: continue in its place with [`ByteQueue::resume_sender`].
    ///
    /// # Errors
    /// [`QueueError::SenderCrashed`]; [`QueueError::NoFreeProducer`]; segments that are missing or
    /// damaged.
    pub fn sender(&mut self) -> Result<ByteSender, QueueError> {
        for index in 0..self.queue.producers() {
            let end = QueueEnd::Producer(index);
            if descriptor::end_state(&self.queue.words, end) != EndState::Free {
                continue;
            }
            // Another process may have attached it, and closed it again, since.
            let Some(lock) = self.queue.lock_end(end)? else { continue };
            if descriptor::end_state(&self.queue.words, end) == EndState::Free {
                return ByteSender::attach(&mut self.queue, self.message_bytes, index, lock);
            }
        }
        let (name, producers) = (self.queue.label().into(), self.queue.producers());
        let states = self.producers()?;
        let crashed = states.iter().position(|state| matches!(state, ProducerState::Dead { .. }));
        Err(match crashed {
            Some(index) => QueueError::SenderCrashed { name, index },
            None => QueueError::NoFreeProducer { name, producers },
        })
    }

    /// Attaches a sender in place of the crashed producer with this index, and continues after that
    /// producer's last message. What the crashed one had pushed arrives; a message that it was
    /// pushing does not. The receiver does not need to do anything.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::ProducerAlive`]; [`QueueError::Retired`]; segments
    /// that are missing or damaged: the receiver resets them with [`ByteReceiver::renew`].
    pub fn resume_sender(&mut self, index: usize) -> Result<ByteSender, QueueError> {
        self.queue.check_index(index)?;
        let end = QueueEnd::Producer(index);
        let lock = self.queue.lock_end(end)?.ok_or(QueueError::ProducerAlive(index))?;
        if descriptor::end_state(&self.queue.words, end) == EndState::Retired {
            return Err(QueueError::Retired(index));
        }
        ByteSender::attach(&mut self.queue, self.message_bytes, index, lock)
    }

    /// Attaches the receiver of the queue.
    ///
    /// # Errors
    /// [`QueueError::Attached`]; [`QueueError::ReceiverCrashed`]: continue with
    /// [`ByteQueue::resume_receiver`]; segments that are missing or damaged.
    pub fn receiver(&mut self) -> Result<ByteReceiver, QueueError> {
        self.attach_receiver(false)
    }

    /// Attaches the queue's receiver in place of a crashed one. Every message that was not released
    /// arrives, in order.
    ///
    /// A message that the crashed receiver was popping is lost if its
    /// [`ByteReceiver::pop_into`] had freed the slot. One that it had taken with
    /// [`ByteReceiver::take`] and not released arrives again.
    ///
    /// # Errors
    /// [`QueueError::Attached`]; segments that are missing or damaged.
    pub fn resume_receiver(&mut self) -> Result<ByteReceiver, QueueError> {
        self.attach_receiver(true)
    }

    #[cfg(test)]
    pub(super) fn attached(&mut self) -> &mut crate::attached::Attached<'static> {
        &mut self.queue.attached
    }

    fn attach_receiver(&mut self, can_resume: bool) -> Result<ByteReceiver, QueueError> {
        let state = |queue: &Queue<ByteLink>| descriptor::end_state(&queue.words, QueueEnd::Consumer);
        let Some(lock) = self.queue.lock_end(QueueEnd::Consumer)? else {
            let pid = if let EndState::Attached(pid) = state(&self.queue) { pid } else { 0 };
            return Err(QueueError::Attached { end: "receiver".into(), pid });
        };
        if !can_resume && state(&self.queue) != EndState::Free {
            return Err(QueueError::ReceiverCrashed(self.queue.label().into()));
        }
        ByteReceiver::attach(self.queue.duplicate()?, self.message_bytes, lock)
    }
}

impl core::fmt::Debug for ByteQueue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut debug = f.debug_struct("ByteQueue");
        debug.field("name", &self.label()).field("message_bytes", &self.message_bytes).finish_non_exhaustive()
    }
}

const fn check_bytes(message_bytes: usize) -> Result<usize, QueueError> {
    match message_bytes {
        1..=MAX_MESSAGE_BYTES => Ok(message_bytes),
        _ => Err(QueueError::MessageBytes(message_bytes)),
    }
}

/// Returns the number of slots of a ring for `capacity` messages.
fn ring_slots(capacity: u32) -> Result<u32, QueueError> {
    let slots = capacity.max(2).checked_next_power_of_two();
    slots.filter(|slots| *slots <= MAX_SLOTS).ok_or(QueueError::Capacity(capacity))
}
