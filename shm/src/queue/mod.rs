//! Queues that survive a crash of a peer: under a name in `/dev/shm` between processes, or between
//! the threads of one.
//!
//! ```
//! use shm::queue;
//! use std::time::Duration;
//!
//! let name = format!("doc-{}", std::process::id());
//! let mut queue = queue::spsc::<[u64; 3]>(&name, 1024)?;
//! let mut receiver = queue.receiver()?;
//! // In another process:
//! let mut sender = queue::open::<[u64; 3]>(&name)?.sender()?;
//! sender.push(&[1, 2, 3])?;
//! assert_eq!(receiver.pop_timeout(Duration::from_secs(1))?, Some([1, 2, 3]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! - **Messages** are values of a type that is [`Message`]: plain data of up to 64 KiB. A message
//!   whose push has returned `Ok` arrives once, whole, and in the order of its producer's pushes;
//!   messages of different producers are not ordered.
//! - **At most once or at least once, if the receiver crashes.** [`Receiver::pop`] frees the slot
//!   of a message before it returns it: a receiver that is killed then loses that one message.
//!   [`Receiver::take`] keeps it until [`TakenMessage::release`]: nothing is lost, and a receiver
//!   that is killed after it has used a message and before it has released it doubles that one.
//! - **Nothing blocks**, allocates or panics in [`Sender::push`], [`Receiver::pop`] or
//!   [`Receiver::take`], whatever the peers wrote.
//! - **Memory ordering**: everything a sender did before its push happens before everything the
//!   receiver does after the pop that returns the message (Release and Acquire).
//! - **Waiting**: [`Receiver::pop_timeout`] sleeps in the kernel. The receiver's file descriptor
//!   works with epoll and with tokio's `AsyncFd`: see [`Receiver::prepare_wait`], and the example
//!   `tokio_consumer`.
//! - **Liveness** is exact: each attached end holds a file lock (OFD), which the kernel releases
//!   when its process ends. No process id or timeout decides that a process is dead.
//!
//! # Crashes and successors
//!
//! - **A sender crashes**: what it had pushed arrives, the message that it was pushing does not,
//!   and other senders are not affected. [`MessageQueue::resume_sender`] continues in its place,
//!   without help from the receiver. If it has damaged its ring, the receiver reports a
//!   [`ProducerFault`], and [`Receiver::renew`] resets the ring for a new sender.
//!   [`Receiver::retire`] stops polling it. A crash wakes no receiver: [`Receiver::pop_timeout`]
//!   returns `None` after its timeout, and [`Receiver::producers`] tells which producer is dead.
//! - **The receiver crashes**: senders continue until their rings are full.
//!   [`MessageQueue::resume_receiver`] continues: every message that was not released arrives. One
//!   that was popped and not used is lost, one that was taken and not released arrives again.
//! - **The creator crashes**: attached ends continue. The next [`spsc`] or [`mpsc`] of the name
//!   replaces the queue; [`remove`] removes its files.
//!
//! ```
//! use shm::queue;
//!
//! let name = format!("doc-successor-{}", std::process::id());
//! let mut queue = queue::mpsc::<u64>(&name, 8)?;
//! let mut receiver = queue.receiver()?;
//! let mut sender = queue.sender()?;
//! sender.push(&1)?;
//! // The sender's process ends, or is killed (`producers` then reports it as dead).
//! drop(sender);
//! let mut successor = queue::open::<u64>(&name)?.resume_sender(0)?;
//! successor.push(&2)?;
//! assert_eq!((receiver.pop()?, receiver.pop()?, receiver.pop()?), (Some(1), Some(2), None));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Queues of a chosen technique
//!
//! [`Queue`] is the same over any technique of the traits in [`ring`](crate::ring), with messages
//! of seven words and without wake-up or locks of its ends: for measuring, and for queues of one's
//! own. [`pair`] makes one on the heap. Its [`Queue::renew`] frees the end of a producer whose
//! death is certain: it was reaped ([`std::process::Child::wait`]), or its end was dropped.
//!
//! ```
//! use shm::queue::{Queue, QueueError};
//! use shm::ring::array_queue::ArrayQueue;
//! use shm::ring::{Consumer, Producer};
//!
//! let name = format!("doc-technique-{}", std::process::id());
//! let mut queue = Queue::<ArrayQueue>::create(&name, 1, 8)?;
//! let mut consumer = queue.consumer()?;
//! // In another process, which dies:
//! Queue::<ArrayQueue>::open(&name)?.producer(0)?.try_push(&[1; 7])?;
//!
//! assert!(matches!(queue.producer(0), Err(QueueError::Attached { .. })));
//! let mut taken = Vec::new();
//! while !queue.renew(0, &mut consumer)? {
//!     taken.extend(consumer.try_pop());
//! }
//! queue.producer(0)?.try_push(&[2; 7])?;
//! taken.extend(core::iter::from_fn(|| consumer.try_pop()));
//! assert_eq!(taken, [(None, [1; 7]), (None, [2; 7])]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Messages of a size that is known when the program runs
//!
//! [`ByteQueue`] is the queue that the typed ones are built on, for interfaces of other languages.
//! Its ends and typed ends of the same size exchange messages.
//!
//! # Names
//!
//! A queue's files in `/dev/shm` begin with `bulkhead-queue.NAME.`. Its creator holds a lock for as
//! long as its handle exists; the kernel releases the lock when the process dies. Creating a queue,
//! and [`remove`], remove the files of a queue without a live creator, each one only if it is the
//! queue's. A process that attaches maps all rings, and can damage them: rights for each process
//! are for a run to give, see the crate `protocol`. A queue that is [`sealed`] has no name and no
//! file: its descriptors are sent or inherited.

mod byte_link;
mod byte_queue;
mod byte_receiver;
mod byte_sender;
#[cfg(all(test, not(miri)))]
mod byte_tests;
mod descriptor;
mod error;
mod leftovers;
mod liveness;
mod message_queue;
mod names;
mod payload;
mod receiver;
mod rings;
mod sealed_memory;
mod sealed_queue;
#[cfg(all(test, not(miri)))]
mod sealed_tests;
mod sender;
mod taken_message;
#[cfg(all(test, not(miri)))]
mod taken_tests;
mod technique_queue;
#[cfg(all(test, not(miri)))]
mod tests;
#[cfg(all(test, not(miri)))]
mod typed_tests;
mod wake;

pub use crate::ring::Full;
pub use byte_queue::ByteQueue;
pub use byte_receiver::ByteReceiver;
pub use byte_sender::ByteSender;
pub use error::{ByteError, MAX_PRODUCERS, ProducerFault, QueueError};
pub use leftovers::{dead, leftovers, remove};
pub use liveness::ProducerState;
pub use message_queue::{MPSC_PRODUCERS, MessageQueue, from_fds, mpsc, mpsc_of, open, sealed, spsc};
pub use names::PREFIX;
pub use payload::{MAX_MESSAGE_BYTES, Message};
pub use receiver::Receiver;
pub use sender::Sender;
pub use taken_message::TakenMessage;
pub use technique_queue::{Queue, pair};
pub use wake::MAX_WAIT;
pub use zerocopy;
