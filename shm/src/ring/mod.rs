//! The technique table: what can carry a hand-off, behind two traits, one file a technique.
//!
//! The choice is made once, at start-up, by [`crate::plan::Technique`]; the hot loops are generic over
//! [`Link`] and monomorphised, so no call goes through a table at run time.

pub mod spsc;
#[cfg(not(loom))]
pub mod spsc_mux;

use crate::wire::Message;
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
}

/// The sending end of a hand-off. One thread at a time.
pub trait Producer: Send {
    /// Puts a message into the ring, or says that it is full. Never blocks.
    ///
    /// # Errors
    /// [`Full`]; the message was not taken.
    fn try_push(&mut self, message: &Message) -> Result<(), Full>;
}

/// The receiving end of an N→1 hand-off. One thread at a time.
pub trait Consumer: Send {
    /// Takes a message and the index of the producer whose memory it came from, or `None` if nothing is there.
    /// First in, first out for each producer; no order between producers. Never blocks. The index is `None` where
    /// several producers write into the same memory: then only the message says whose it is, and it may lie.
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)>;

    /// A producer that was found misbehaving since the last call: nothing more is taken from it.
    fn take_fault(&mut self) -> Option<(usize, PeerFault)>;
}

#[cfg(not(loom))]
pub use link::{Link, LinkSpec, SegmentSpec};

#[cfg(not(loom))]
mod link {
    use super::{Consumer, Producer};
    use crate::memory::{Kind, RegionError};
    use crate::segments::Attached;

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

    /// A segment that a link needs.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SegmentSpec {
        /// Its name within the run, for example `submit-3`.
        pub what: String,
        /// Its size in words.
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
