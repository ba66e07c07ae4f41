//! The traits of the two ends of a hand-off: [`Producer`] and [`Consumer`].

use super::message::{Full, Message};
use super::step::Step;
use core::ops::ControlFlow;
use thiserror::Error;

/// A violation of the hand-off's protocol by a peer, found in the memory that it can write.
///
/// All of its fields are words. A narrower one would be at the offset of a message's first word in
/// the `Result` of a pop: the compiler then copies that word in two halves and reads it whole, and
/// a CPU delays such a load until both halves are in the cache, after everything before them. One
/// process id of 32 bits took two thirds of a stream's rate; see "where the nanoseconds go" in the
/// book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PeerFault {
    /// A slot's sequence is none that an honest producer could have left there.
    #[error("invalid sequence {found} on message {position}")]
    InvalidSequence {
        /// The sequence as it was read.
        found: u64,
        /// The position of the message that the slot was to hold.
        position: u64,
    },
    /// A slot's stamp is none that an honest producer or the consumer itself could have left there.
    #[error("invalid stamp {stamp} on message {position}")]
    InvalidStamp {
        /// The stamp as it was read.
        stamp: u64,
        /// The number of the message that the slot was to hold.
        position: u64,
    },
    /// A block's link leads to no block that could follow the block.
    #[error("invalid link {link:#x} behind block {block}")]
    InvalidLink {
        /// The link as it was read.
        link: u64,
        /// The number of the block.
        block: u64,
    },
    /// The cursor that all producers claim by is where no honest claim could have moved it.
    #[error("invalid tail {tail} while message {position} is due")]
    InvalidTail {
        /// The tail as it was read.
        tail: u64,
        /// The number of the next message to take.
        position: u64,
    },
    /// The kernel delivered bytes that are not a message.
    #[error("{bytes} bytes that are no message")]
    Framing {
        /// Number of bytes since the last such fault was taken.
        bytes: usize,
    },
    /// A process that is none of the producers has connected, or one that has its connection
    /// already.
    #[error("a connection of process {pid}, which no producer has or which has its connection")]
    Stranger {
        /// The process's id; 0 for one in a place from which no id is seen here.
        pid: u64,
    },
    /// A connection claims the index of a producer that does not exist, is another process, or is
    /// connected already.
    #[error("a connection claims to be of producer {index}")]
    InvalidIndex {
        /// The producer index that the connection claims.
        index: u64,
    },
}

/// Two counts of a queue's memory blocks: blocks used for the first time, and times that a block
/// was used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Blocks that were used for the first time: memory that the run had not touched before.
    pub fresh: u64,
    /// Number of times a block was used again.
    pub reused: u64,
}

/// The sending end of a queue from several producers to one consumer; each producer has its own.
/// One thread at a time.
pub trait Producer: Send {
    /// Pushes a message into the queue, or returns [`Full`]. Never blocks, and never panics
    /// whatever the peers wrote.
    ///
    /// Release: the consumer that pops the message sees everything this thread did before.
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        self.try_push_with(message, &mut |_| ControlFlow::Continue(()))
    }

    /// Pushes as [`Producer::try_push`] does, and calls `at` at each step. So faults can be
    /// injected and models can kill the producer there. `Break` abandons the push as a crash at
    /// that step would, and returns [`Full`]; such a producer is never used again. Compiled for an
    /// `at` that always continues, it is `try_push`. A technique whose pushes show only their
    /// beginning and end implements it by [`whole`](super::step::whole).
    ///
    /// # Errors
    /// [`Full`]; the message was not taken, or `at` broke off.
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full>;

    /// Clears the producer's announcement of the slot that it wrote last, between two pushes. Used
    /// to find the owner of a slot that seems unwritten ([`BlockedSlot::announcer`]): the ring's
    /// own words do not identify it, since every producer can overwrite them. It is one store; an
    /// agent calls it at the end of a duty cycle with work, not with each push.
    fn withdraw(&mut self) {}
}

/// A slot that a producer has claimed and not written, which blocks the messages after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedSlot {
    /// Position of the slot in the stream.
    pub position: u64,
    /// The first producer that announces the blocked slot, if one does. No other process can write
    /// that announcement. A correct producer withdraws it at the end of a push that has written
    /// nothing, and at the end of its duty cycle in any case ([`Producer::withdraw`]).
    pub announcer: Option<usize>,
}

/// The receiving end of a queue from several producers to one consumer. One thread at a time.
pub trait Consumer: Send {
    /// Takes a message, with the index of its producer if the memory shows it; `None` if the queue
    /// is empty. First in, first out for each producer; no order between producers. Never blocks.
    /// The index is `None` where several producers write into the same memory: then only the
    /// message names its sender, and may be forged. Never panics, whatever the peers wrote.
    ///
    /// Acquire: what the producer did before its push is seen by this thread from here on. Release:
    /// the producer that uses the slot again does so after it was read here.
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)>;

    /// Takes a message that its producer may not overwrite before [`Consumer::release`], where the
    /// technique supports it. Until then a successor of this consumer takes it again.
    fn take(&mut self) -> Option<(Option<usize>, Message)> {
        self.try_pop()
    }

    /// Frees the slot of the message that [`Consumer::take`] returned last.
    fn release(&mut self) {}

    /// Skips the messages of a producer that a crashed predecessor took and journaled. `taken`
    /// counts them since the producer's memory was last reset.
    ///
    /// # Errors
    /// The number of freed messages, if that is more.
    fn pass_over(&mut self, producer: usize, taken: u64) -> Result<(), u64> {
        let _ = (producer, taken);
        Ok(())
    }

    /// Stops polling a producer that a crashed predecessor had retired, until it is renewed.
    fn forget(&mut self, producer: usize) {
        let _ = producer;
    }

    /// Returns a protocol violation by a producer that was found since the last call. It has the
    /// producer's index if only that producer can have caused it: no more messages are taken from
    /// it then. The index is `None` if several producers write the memory: the damaged message is
    /// skipped, and others continue to arrive.
    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        None
    }

    /// Repairs what a dead producer left in the queue, so that no other end waits for it. Call it
    /// in each duty cycle until it returns `true`: then no end waits for the dead producer, and its
    /// own memory is not read again before [`Consumer::renew`]. [`Consumer::try_pop`] still
    /// returns messages that it had published; those in its own memory until `true` at the latest.
    ///
    /// Pop between the calls: a claimed slot can be skipped only once everything before it is
    /// taken, and a ring is abandoned only once it is empty. Several producers that are dead at
    /// once must all be retired, in any order.
    fn retire(&mut self, producer: usize) -> bool {
        let _ = producer;
        true
    }

    /// Polls a retired producer's memory again, after it was reset for a new producer. It is all
    /// zero but its header. Call it after [`Consumer::retire`] has returned `true`.
    /// [`Queue::renew`](crate::queue::Queue::renew) does all three in their order.
    fn renew(&mut self, producer: usize) {
        let _ = producer;
    }

    /// Returns the number of slots that were skipped because dead producers had claimed and not
    /// written them.
    fn passed_over(&self) -> u64 {
        0
    }

    /// Looks for damage that would stop the queue and that polling does not show; seldom called.
    fn check(&mut self) -> Result<(), PeerFault> {
        Ok(())
    }

    /// Returns the slot at which a shared ring is blocked now: claimed by a producer and not
    /// written. A slot may be blocked for a moment by a push in progress.
    fn blocked(&self) -> Option<BlockedSlot> {
        None
    }

    /// Returns the technique's numbers of used memory blocks; zeros for one that never allocates.
    fn allocation(&self) -> Allocation {
        Allocation::default()
    }
}
