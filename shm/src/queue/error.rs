//! Why there is no queue, or no end of it.

use super::MAX_PRODUCERS;
use crate::memory::RegionError;
use thiserror::Error;

/// Why there is no queue.
#[derive(Debug, Error)]
pub enum QueueError {
    /// A name that cannot be one.
    #[error("{0:?} is not a valid name for a queue: 1 to 64 characters of a-z, A-Z, 0-9, - and _")]
    Name(String),
    /// A number of producers that queues do not have.
    #[error("{0} producers: queues take 1 to {MAX_PRODUCERS}")]
    Producers(usize),
    /// A capacity that queues do not have.
    #[error("capacity {0}: queues take a power of two from 2 to 1048576")]
    Capacity(u32),
    /// A technique that cannot be there.
    #[error("{technique} cannot be {where_}")]
    Home {
        /// The technique.
        technique: &'static str,
        /// Where it was wanted.
        where_: &'static str,
    },
    /// Another technique's queue has the name.
    #[error("the queue {name} is of another technique than {technique}")]
    Technique {
        /// The queue's name.
        name: String,
        /// What was asked for.
        technique: &'static str,
    },
    /// A producer that the queue was not made for.
    #[error("producer {index}: the queue was made for {producers}")]
    Producer {
        /// Who was asked for.
        index: usize,
        /// How many there are.
        producers: usize,
    },
    /// An end that was attached before.
    #[error(
        "cannot attach the {end}: process {pid} has attached it; once that is dead, `renew` frees a producer's end and `resume` \
         replaces the consumer"
    )]
    Attached {
        /// `consumer`, or `producer` and its index.
        end: String,
        /// The process that has attached it, as the queue's memory names it.
        pid: u64,
    },
    /// A queue whose creator is alive.
    #[error("cannot take the name {0}: the creator of the queue is alive; end it, or choose another name")]
    Living(String),
    /// A queue of which not all is there.
    #[error(
        "cannot open the queue {0}: it is not complete; try again, unless its creator died while creating it"
    )]
    Incomplete(String),
    /// A segment that cannot be made or attached.
    #[error(transparent)]
    Region(#[from] RegionError),
}
