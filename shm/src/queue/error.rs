//! Errors of creating and opening queues, and of attaching their ends.

use super::payload::MAX_MESSAGE_BYTES;
use crate::memory::RegionError;
use crate::ring::{Full, PeerFault};
use thiserror::Error;

/// Maximum number of producers of a queue of any technique: 1,024, because the technique `linked`
/// has limited bits for a memory block's owner.
pub const MAX_PRODUCERS: usize = 1 << 10;

/// Maximum number of slots of a ring.
pub(super) const MAX_SLOTS: u32 = 1 << 25;

/// Errors of creating or opening a queue, and of attaching its ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The name has a wrong length or other characters.
    #[error("invalid queue name {0:?}: use 1 to 64 characters of a-z, A-Z, 0-9, - and _")]
    Name(String),
    /// The number of producers is out of range.
    #[error("invalid number of producers {0}: use 1 to {MAX_PRODUCERS}")]
    Producers(usize),
    /// The capacity is out of range, or not a power of two, to which a typed queue rounds it up.
    #[error("invalid capacity {0}: use a power of two from 2 to {MAX_SLOTS}")]
    Capacity(u32),
    /// The size of a message is out of range.
    #[error("invalid message size {0}: use 1 to {MAX_MESSAGE_BYTES} bytes")]
    MessageBytes(usize),
    /// The technique cannot run there.
    #[error("{technique} cannot be {where_}")]
    Home {
        /// Name of the technique.
        technique: &'static str,
        /// The place where the technique was to run: on the heap or between processes.
        where_: &'static str,
    },
    /// The queue is of another technique.
    #[error("cannot open the queue {name}: it does not use the technique {technique}")]
    Technique {
        /// Name of the queue.
        name: String,
        /// The technique that was requested.
        technique: &'static str,
    },
    /// The queue holds messages of another size.
    #[error(
        "cannot open the queue {name}: its messages have {found} bytes, the requested type has {expected}"
    )]
    MessageSize {
        /// Name of the queue.
        name: String,
        /// Size of the requested type in bytes.
        expected: u64,
        /// Size of the queue's messages in bytes.
        found: u64,
    },
    /// The queue does not exist.
    #[error("cannot open the queue {0}: no queue has that name; create it first")]
    NotFound(String),
    /// The index is not that of a producer of the queue.
    #[error("no producer {index}: the queue has {producers}")]
    Producer {
        /// The index that was requested.
        index: usize,
        /// Number of producers of the queue.
        producers: usize,
    },
    /// The end is attached.
    #[error(
        "cannot attach the {end}: process {pid} has attached it; once that is dead, `renew` frees a producer's end and \
         `resume_receiver` replaces the consumer"
    )]
    Attached {
        /// `consumer`, or `producer` and its index.
        end: String,
        /// The process that has attached the end, according to the queue's memory.
        pid: u64,
    },
    /// Every producer's end is attached by a live process, or retired.
    #[error(
        "cannot attach a sender to the queue {name}: none of its {producers} producers is free; drop a sender, let the receiver \
         free a retired one with `renew`, or create the queue for more with `mpsc_of`"
    )]
    NoFreeProducer {
        /// Name of the queue.
        name: String,
        /// Number of producers of the queue.
        producers: usize,
    },
    /// No producer's end is free, and a crashed process left one.
    #[error(
        "cannot attach a sender to the queue {name}: producer {index} crashed, and no other is free; continue in its place with \
         `resume_sender({index})`, or let the receiver free it with `renew({index})`"
    )]
    SenderCrashed {
        /// Name of the queue.
        name: String,
        /// Index of the first crashed producer.
        index: usize,
    },
    /// The last receiver crashed.
    #[error(
        "cannot attach a receiver to the queue {0}: the last one crashed; continue in its place with `resume_receiver`"
    )]
    ReceiverCrashed(String),
    /// The producer is alive: its process holds the lock of its end.
    #[error("producer {0} is alive: only the end of a crashed or closed one can be retired or renewed")]
    ProducerAlive(usize),
    /// The producer was retired.
    #[error("cannot resume producer {0}: it was retired; the receiver frees it with `renew`")]
    Retired(usize),
    /// The creator of the queue is alive.
    #[error("cannot take the name {0}: the creator of the queue is alive; end it, or choose another name")]
    Living(String),
    /// Descriptors that cannot be those of a sealed queue.
    #[error(
        "cannot open a queue of these descriptors: {0}; pass those of `MessageQueue::fds`, in their order"
    )]
    Descriptors(&'static str),
    /// Files of the queue are missing.
    #[error(
        "cannot open the queue {0}: it is not complete; try again, unless its creator died while creating it"
    )]
    Incomplete(String),
    /// `/dev/shm` has too little space for the queue.
    #[error(
        "cannot create the queue: no space for {bytes} bytes of {segment} in /dev/shm or in memory; choose a smaller \
         capacity, or enlarge /dev/shm (mount -o remount,size=…, or --shm-size for a container)"
    )]
    NoSpace {
        /// The segment that did not fit.
        segment: String,
        /// The size of the memory in bytes.
        bytes: u64,
    },
    /// A segment of the queue cannot be created or attached.
    #[error(transparent)]
    Region(RegionError),
}

impl From<RegionError> for QueueError {
    fn from(error: RegionError) -> Self {
        match error {
            RegionError::NoRoom { name, bytes } => Self::NoSpace { segment: name, bytes },
            other => Self::Region(other),
        }
    }
}

/// A protocol violation by a producer, whose ring is not read any more; other producers are
/// unaffected.
///
/// [`Receiver::renew`](super::Receiver::renew) resets the ring once the producer is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("producer {producer} broke the protocol and is not read any more: {fault}")]
pub struct ProducerFault {
    /// Index of the producer that broke the protocol.
    pub producer: usize,
    /// The violation of the protocol.
    pub fault: PeerFault,
}

/// Errors of a push or a pop on a queue whose message size is chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ByteError {
    /// The queue has no room for the message now.
    #[error(transparent)]
    Full(#[from] Full),
    /// The message has another size than the queue's messages.
    #[error("invalid message of {found} bytes: the messages of the queue have {expected}")]
    Size {
        /// Size of the queue's messages in bytes.
        expected: usize,
        /// Size of the given message in bytes.
        found: usize,
    },
    /// A message was taken with [`ByteReceiver::take`](super::ByteReceiver::take), and neither
    /// released nor put back.
    #[error("cannot take another message: release the one that was taken, or put it back")]
    Taken,
    /// A producer broke the protocol.
    #[error(transparent)]
    Fault(#[from] ProducerFault),
}
