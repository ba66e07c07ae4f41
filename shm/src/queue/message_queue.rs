//! A typed queue under a name, and the attachment of its senders and its receiver.

use super::byte_queue::ByteQueue;
use super::error::QueueError;
use super::liveness::ProducerState;
use super::payload::{Message, message_bytes};
use super::receiver::Receiver;
use super::sender::Sender;
use core::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Number of producers of a queue that [`mpsc`] creates.
pub const MPSC_PRODUCERS: usize = 16;

/// Creates a queue of up to `capacity` messages under a name, for one producer and one consumer.
///
/// `capacity` is the number of messages; it is rounded up to a power of two, and at most 33,554,432
/// for each producer. A message takes a cache line; its bytes above 56 take memory of their own.
/// Leftovers of a crashed creator are removed first. Dropping the returned handle removes the
/// name; attached ends keep their memory.
///
/// # Errors
/// [`QueueError::Name`]; [`QueueError::Capacity`]; [`QueueError::Living`]: a live process has a
/// queue of that name; [`QueueError::NoSpace`]. Nothing is left behind then.
pub fn spsc<T: Message>(name: &str, capacity: u32) -> Result<MessageQueue<T>, QueueError> {
    mpsc_of(name, 1, capacity)
}

/// Creates a queue of several producers and one consumer under a name, for up to [`MPSC_PRODUCERS`]
/// producers.
///
/// Each producer has a ring of its own with room for `capacity` messages, so that no producer can
/// block or damage another's messages. Messages of one producer arrive in order. Otherwise as
/// [`spsc`].
///
/// # Errors
/// As [`spsc`].
pub fn mpsc<T: Message>(name: &str, capacity: u32) -> Result<MessageQueue<T>, QueueError> {
    mpsc_of(name, MPSC_PRODUCERS, capacity)
}

/// Creates a queue of up to `producers` producers and one consumer under a name.
///
/// # Errors
/// As [`spsc`]; [`QueueError::Producers`].
pub fn mpsc_of<T: Message>(
    name: &str,
    producers: usize,
    capacity: u32,
) -> Result<MessageQueue<T>, QueueError> {
    let queue = ByteQueue::create_sized(name, producers, capacity, message_bytes::<T>())?;
    Ok(MessageQueue { queue, message: PhantomData })
}

/// Creates a queue of up to `producers` producers in sealed memory, without a name. It exists as
/// long as a process has it open or mapped. Nothing of it is in `/dev/shm`.
///
/// Another process attaches with the descriptors of [`MessageQueue::fds`].
///
/// ```
/// use shm::queue;
///
/// let mut queue = queue::sealed::<u64>(1, 8)?;
/// let mut receiver = queue.receiver()?;
/// // Duplicated here, in place of sent to another process:
/// let [memory, pipe] = queue.fds().expect("it is sealed").map(|fd| fd.try_clone_to_owned());
/// let mut sender = queue::from_fds::<u64>([memory?, pipe?])?.sender()?;
/// sender.push(&7)?;
/// assert_eq!(receiver.pop()?, Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`mpsc_of`], without a name.
pub fn sealed<T: Message>(producers: usize, capacity: u32) -> Result<MessageQueue<T>, QueueError> {
    let queue = ByteQueue::seal_sized(producers, capacity, message_bytes::<T>())?;
    Ok(MessageQueue { queue, message: PhantomData })
}

/// Opens the sealed queue that another process created, given the two descriptors of
/// [`MessageQueue::fds`]. They are not trusted: seals, sizes and headers are checked first.
///
/// Needs `/proc`: each end opens the pipe again, with flags of its own.
///
/// # Errors
/// [`QueueError::Descriptors`]; [`QueueError::MessageSize`]; memory that is damaged, or of another
/// build.
pub fn from_fds<T: Message>(fds: [OwnedFd; 2]) -> Result<MessageQueue<T>, QueueError> {
    check_type(ByteQueue::from_fds_sized(fds)?)
}

/// Opens a queue of typed messages that another process has created under a name.
///
/// # Errors
/// [`QueueError::NotFound`]; [`QueueError::Incomplete`]: it is being created, try again;
/// [`QueueError::MessageSize`]: its messages have another size than `T`; a queue of another build.
pub fn open<T: Message>(name: &str) -> Result<MessageQueue<T>, QueueError> {
    check_type(ByteQueue::open_sized(name)?)
}

fn check_type<T: Message>(queue: ByteQueue) -> Result<MessageQueue<T>, QueueError> {
    queue.check_size(message_bytes::<T>())?;
    Ok(MessageQueue { queue, message: PhantomData })
}

/// A handle of a queue of typed messages, from which its ends are attached. Ends outlive their
/// handle.
pub struct MessageQueue<T> {
    queue: ByteQueue,
    message: PhantomData<fn(T) -> T>,
}

impl<T: Message> MessageQueue<T> {
    /// Returns the queue's name, by which other processes open it; `None` if it is [`sealed`].
    pub fn name(&self) -> Option<&str> {
        self.queue.name()
    }

    /// Returns the two descriptors by which other processes open a [`sealed`] queue; `None` if it
    /// has a name. They are its memory and its pipe.
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
        self.queue.producers()
    }

    /// Returns `true` if a live process has attached the receiver.
    ///
    /// # Errors
    /// What the system refused.
    pub fn has_receiver(&self) -> Result<bool, QueueError> {
        self.queue.has_receiver()
    }

    /// Attaches a sender to the queue as the first free producer. The end of a crashed producer is
    /// not free: continue in its place with [`MessageQueue::resume_sender`].
    ///
    /// # Errors
    /// [`QueueError::SenderCrashed`]; [`QueueError::NoFreeProducer`]; segments that are missing or
    /// damaged.
    pub fn sender(&mut self) -> Result<Sender<T>, QueueError> {
        self.queue.sender().map(Sender::from_bytes)
    }

    /// Attaches a sender in place of the crashed producer with this index, and continues after that
    /// producer's last message. What the crashed one had pushed arrives; a message that it was
    /// pushing does not. The receiver does not need to do anything.
    ///
    /// # Errors
    /// [`QueueError::Producer`]; [`QueueError::ProducerAlive`]; [`QueueError::Retired`]; segments
    /// that are missing or damaged: the receiver resets them with [`Receiver::renew`].
    pub fn resume_sender(&mut self, index: usize) -> Result<Sender<T>, QueueError> {
        self.queue.resume_sender(index).map(Sender::from_bytes)
    }

    /// Attaches the receiver of the queue.
    ///
    /// # Errors
    /// [`QueueError::Attached`]; [`QueueError::ReceiverCrashed`]: continue with
    /// [`MessageQueue::resume_receiver`]; segments that are missing or damaged.
    pub fn receiver(&mut self) -> Result<Receiver<T>, QueueError> {
        self.queue.receiver().map(Receiver::from_bytes)
    }

    /// Attaches the queue's receiver in place of a crashed one. Every message that was not released
    /// arrives, in order.
    ///
    /// A message that the crashed receiver was popping is lost if its [`Receiver::pop`] had freed
    /// the slot. One that it had taken with [`Receiver::take`] and not released arrives again.
    ///
    /// # Errors
    /// [`QueueError::Attached`]; segments that are missing or damaged.
    pub fn resume_receiver(&mut self) -> Result<Receiver<T>, QueueError> {
        self.queue.resume_receiver().map(Receiver::from_bytes)
    }

    #[cfg(test)]
    pub(super) fn attached(&mut self) -> &mut crate::attached::Attached<'static> {
        self.queue.attached()
    }
}

impl<T> core::fmt::Debug for MessageQueue<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("MessageQueue").field("name", &self.queue.label()).finish_non_exhaustive()
    }
}
