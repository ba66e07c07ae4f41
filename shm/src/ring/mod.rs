//! The technique table: what can carry a hand-off, behind two traits, one file a technique.
//!
//! The choice is made once, at start-up, by [`Technique`]; the hot loops are generic over
//! [`Link`] and monomorphised, so no call goes through a table at run time. The table itself is in [`table`].

pub mod array_queue;
#[cfg(not(loom))]
pub mod array_queue_mux;
pub mod channel;
#[cfg(not(loom))]
pub mod crossbeam_array_queue;
#[cfg(not(loom))]
pub mod crossbeam_channel;
#[cfg(not(loom))]
pub mod element;
pub mod intent;
pub mod linked;
mod message;
#[cfg(not(loom))]
pub mod pipe;
pub mod spsc;
#[cfg(not(loom))]
pub mod spsc_mux;
#[cfg(not(loom))]
pub mod std_mpsc;
pub mod step;
#[cfg(not(loom))]
pub mod table;
#[cfg(not(loom))]
pub mod unix_seqpacket;

use core::ops::ControlFlow;
pub use message::{MESSAGE_WORDS, Message};
pub use step::Step;
#[cfg(not(loom))]
pub use table::Technique;
use thiserror::Error;

/// The ring has no free slot now. The message stays with the caller, who may try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ring is full")]
pub struct Full;

/// Something that no honest peer does with the memory it can write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
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
    /// A block's link leads to no block that could follow it.
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
    /// The kernel delivered something that is no message.
    #[error("{bytes} bytes that are no message")]
    Framing {
        /// How many bytes, since the last such fault was taken.
        bytes: usize,
    },
    /// A process that is none of the producers has connected, or one that has its connection already.
    #[error("a connection of process {pid}, which no producer has or which has its connection")]
    Stranger {
        /// The process's id; 0 for one in a place from which no id is seen here.
        pid: u32,
    },
    /// A connection claims to be of a producer that there is not, that is another process, or that has a connection.
    #[error("a connection claims to be of producer {index}")]
    InvalidIndex {
        /// What it claims.
        index: u64,
    },
}

/// How a technique that allocates has grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Blocks that were used for the first time: memory that the run had not touched before.
    pub fresh: u64,
    /// How often a block was used again.
    pub reused: u64,
}

/// The sending end of a hand-off. One thread at a time.
pub trait Producer: Send {
    /// Puts a message into the ring, or says that it is full. Never blocks.
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    fn try_push(&mut self, message: &Message) -> Result<(), Full>;

    /// As [`Producer::try_push`], and calls `at` at each step of the push: where an injected fault strikes and where a
    /// model's producer dies. `Break` leaves the push as a death at that step would, and returns [`Full`]; a producer that
    /// was left so is never used again. Compiled for an `at` that always continues, it is `try_push`.
    ///
    /// # Errors
    /// [`Full`]; the message was not taken, or `at` broke off.
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        if at(Step::Entered).is_break() {
            return Err(Full);
        }
        self.try_push(message)?;
        let _ = at(Step::Published);
        Ok(())
    }
}

/// The receiving end of an N→1 hand-off. One thread at a time.
pub trait Consumer: Send {
    /// Takes a message and the index of the producer whose memory it came from, or `None` if nothing is there.
    /// First in, first out for each producer; no order between producers. Never blocks. The index is `None` where
    /// several producers write into the same memory: then only the message says whose it is, and it may lie.
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)>;

    /// Something that no honest producer does, found since the last call. With the producer's index, where it is the
    /// only one that could have done it: nothing more is taken from it then. `None` where several producers write into
    /// the same memory: the damaged message is passed over and the others' go on arriving.
    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)>;

    /// A producer's death is certain (its process was reaped): mends what it left, so that
    /// nobody waits for it. Call it in each duty cycle until it says `true`: then nothing waits for the dead any more, and
    /// its own memory is not read again before [`Consumer::revive`]. Whole messages that the dead one had published come
    /// out of [`Consumer::try_pop`] as before, until `true` at the latest where they stand in its own memory.
    ///
    /// Pop between the calls: a claimed place can be passed over only once what stands before it is taken, and a ring given
    /// up only once it is empty. Several who are dead at the same time are all to be buried, in any order.
    fn bury(&mut self, producer: usize) -> bool {
        let _ = producer;
        true
    }

    /// The dead producer's memory was made anew (all zero but its header) and a new producer of that index will come, or
    /// has: takes from it from its beginning. After [`Consumer::bury`] has said `true`.
    fn revive(&mut self, producer: usize) {
        let _ = producer;
    }

    /// Messages that dead producers had claimed and not written, passed over so far.
    fn passed_over(&self) -> u64 {
        0
    }

    /// Looks for damage that would stop the hand-off for everybody and that polling does not show; seldom called.
    fn check(&mut self) -> Result<(), PeerFault> {
        Ok(())
    }

    /// How the technique has grown since the start; zero for one that never allocates.
    fn allocation(&self) -> Allocation {
        Allocation::default()
    }
}

#[cfg(not(loom))]
pub use link::{Link, LinkSpec, Place, SegmentSpec};

#[cfg(not(loom))]
mod link {
    use super::{Consumer, Producer};
    use crate::attached::Attached;
    use crate::memory::{Kind, RegionError};

    /// An N→1 hand-off of a run: its name, how many producers, how many slots.
    #[derive(Clone, Debug)]
    pub struct LinkSpec {
        /// `submit`, `completion`.
        pub name: &'static str,
        /// How many producers feed it.
        pub producers: usize,
        /// Slots of each ring.
        pub capacity: u32,
    }

    /// What stands behind a segment's name in `/dev/shm`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Place {
        /// Memory: reserved and prefaulted.
        Memory,
        /// Memory: reserved, so that touching it cannot fail, but touched only as it comes into use.
        Reserve,
        /// A FIFO, made by the launcher. Neither header nor words.
        Fifo,
        /// A Unix socket, bound by the receiver; only its name is known before. Neither header nor words.
        Socket,
    }

    impl Place {
        /// Whether messages pass through the kernel: sending them is a system call.
        pub const fn is_kernel(self) -> bool {
            matches!(self, Place::Fifo | Place::Socket)
        }
    }

    /// A segment that a link needs.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SegmentSpec {
        /// Its name within the run, for example `submit-3`.
        pub what: String,
        /// What stands behind the name.
        pub place: Place,
        /// Its size in words; 0 for what is not memory.
        pub words: usize,
        /// Its kind.
        pub kind: Kind,
        /// Slots, records or entries.
        pub capacity: u64,
        /// Words in each.
        pub slot_words: u64,
        /// Whose it is among its kind.
        pub index: u64,
    }

    /// A technique: how to build the two ends of an N→1 hand-off over regions.
    pub trait Link: 'static {
        /// The sending end.
        type Producer: Producer;
        /// The receiving end.
        type Consumer: Consumer;

        /// The segments that a link of this kind needs.
        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec>;

        /// Attaches the producer of that index.
        ///
        /// # Errors
        /// A segment that is missing or not what it should be.
        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached<'_>,
        ) -> Result<Self::Producer, RegionError>;

        /// Attaches the consumer. Within a process consumers are attached before producers.
        ///
        /// # Errors
        /// A segment that is missing or not what it should be.
        fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError>;
    }
}
