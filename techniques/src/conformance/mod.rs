//! The suite that every technique passes, for everybody's own techniques: [`check`], or [`survey`]
//! for one that keeps only a part of the contract.
//!
//! ```
//! use shm::ring::array_queue::ArrayQueue;
//!
//! if let Err(failure) = techniques::conformance::check::<ArrayQueue>() {
//!     panic!("{failure}");
//! }
//! ```
//!
//! It goes by the technique's [`Record`](shm::ring::TechniqueInfo), on the heap and in mapped memory
//! wherever the technique can be there: with threads, against a model, full and empty again, and
//! with producers that die at each step of a push and are succeeded. What it cannot show: every
//! order of steps (that is for a model checker), other processes, hostile peers. That it finds what
//! it is for, the rings in [`broken`] show.

pub mod broken;
mod checks;
mod ledger;

use shm::queue::{Queue, QueueError};
use shm::ring::{Home, Link, Message, PeerFault, Step};
use std::sync::Mutex;
use thiserror::Error;

/// What a queue must not do.
#[derive(Debug, Error)]
pub enum Violation {
    /// A message arrived that nobody has sent so: words of it are another's.
    #[error("a message is torn: {message:x?}")]
    Torn {
        /// As it arrived.
        message: Message,
    },
    /// A message arrived twice.
    #[error("message {n} of producer {producer} came twice")]
    Duplicated {
        /// Whose it was.
        producer: usize,
        /// Its number.
        n: u64,
    },
    /// A message arrived after a later one of the same producer.
    #[error("message {n} of producer {producer} came after its message {after}")]
    Reordered {
        /// Whose it was.
        producer: usize,
        /// Its number.
        n: u64,
        /// The number of the later one.
        after: u64,
    },
    /// Messages never arrived.
    #[error("{count} messages of producer {producer} never came, message {first} first of all")]
    Lost {
        /// Whose they were.
        producer: usize,
        /// The number of the first one.
        first: u64,
        /// How many.
        count: u64,
    },
    /// A message arrived that its producer had not sent, or of which it was told that it was not
    /// taken.
    #[error("message {n} of producer {producer} came, which was refused or never sent")]
    Invented {
        /// Whose it says it is.
        producer: usize,
        /// Its number.
        n: u64,
    },
    /// A message came with another producer's index.
    #[error("a message of producer {producer} came as one of producer {from}")]
    Misattributed {
        /// Who has sent it.
        producer: usize,
        /// Who is said to have.
        from: usize,
    },
    /// An honest producer was accused.
    #[error("a fault among honest peers: {0}")]
    Fault(PeerFault),
    /// Nothing was there to be taken, and there was.
    #[error("{waiting} messages are there and none is given out")]
    Hidden {
        /// How many were sent and not taken.
        waiting: u64,
    },
    /// A push was refused while there was room.
    #[error("full with {held} messages, the capacity is {capacity}")]
    FullTooEarly {
        /// How many were in the queue.
        held: u64,
        /// What the queue was made for.
        capacity: u64,
    },
    /// A bounded queue took all that came, or one that has no bound refused.
    #[error("its record says that it is {}bounded, but it took {taken} messages", if *bounded { "" } else { "un" })]
    Bound {
        /// What the record says.
        bounded: bool,
        /// How many it took with nobody taking any.
        taken: u64,
    },
    /// Neither a push nor a pop came on.
    #[error("nothing moves: {what}")]
    Stuck {
        /// What is waited for.
        what: String,
    },
    /// The record names other steps than pushes have.
    #[error("its record has the steps {record:?}, its pushes have {pushes:?}")]
    Steps {
        /// The record's.
        record: Vec<Step>,
        /// Those that were called.
        pushes: Vec<Step>,
    },
    /// An end cannot be attached.
    #[error("an end cannot be attached: {0}")]
    Attach(#[from] QueueError),
}

/// Where a technique was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The heap of this process.
    Heap,
    /// Names in `/dev/shm`: mapped memory, pipes, sockets, folders of somebody else's.
    Named,
}

/// A technique that is not what it must be.
#[derive(Debug, Error)]
#[error("{technique} in {memory:?} memory, {check}: {violation}")]
pub struct Failure {
    /// Its name.
    pub technique: &'static str,
    /// Where.
    pub memory: Memory,
    /// In which of the checks.
    pub check: String,
    /// What it did.
    #[source]
    pub violation: Box<Violation>,
}

/// Where that technique can be.
fn memories(home: Home) -> &'static [Memory] {
    match home {
        Home::Heap => &[Memory::Heap],
        Home::Memory => &[Memory::Heap, Memory::Named],
        Home::Kernel | Home::Foreign => &[Memory::Named],
    }
}

/// A queue of its own for a check; its names go when it is dropped.
fn queue<T: Link>(memory: Memory, producers: usize, capacity: u32) -> Result<Queue<T>, Violation> {
    static MADE: Mutex<u64> = Mutex::new(0);
    let number = {
        let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *made += 1;
        *made
    };
    Ok(match memory {
        Memory::Heap => Queue::on_heap(producers, capacity)?,
        Memory::Named => {
            Queue::create(&format!("conformance-{}-{number}", std::process::id()), producers, capacity)?
        }
    })
}

/// A check: its name, and how it is made.
type Check = (String, Box<dyn Fn(Memory) -> Result<(), Violation>>);

/// Every check of a technique, in its order.
fn checks_of<T: Link>() -> Vec<Check> {
    let mut all: Vec<Check> = vec![
        ("the steps of a push".into(), Box::new(checks::steps::<T>)),
        ("full and empty again".into(), Box::new(checks::full_and_empty_again::<T>)),
    ];
    for seed in 0..16 {
        let check = move |memory| checks::against_a_model::<T>(memory, seed);
        all.push((format!("against a model, seed {seed}"), Box::new(check)));
    }
    all.push(("one of many producers".into(), Box::new(checks::one_of_many::<T>)));
    for producers in [1, 2, 8] {
        let check = move |memory| checks::threads::<T>(memory, producers);
        all.push((format!("{producers} threads"), Box::new(check)));
    }
    for &step in T::INFO.steps {
        let check = move |memory| checks::death::<T>(memory, step);
        all.push((format!("a producer that dies at {step}"), Box::new(check)));
        let check = move |memory| checks::successor::<T>(memory, step);
        all.push((format!("the successor of a producer that dies at {step}"), Box::new(check)));
    }
    all
}

/// What came of one check.
#[derive(Debug)]
pub struct Finding {
    /// Its name.
    pub check: String,
    /// Where the technique was.
    pub memory: Memory,
    /// What the technique did that it must not do, if it did.
    pub violation: Option<Violation>,
}

/// Makes every check of a technique wherever it can be, and says what came of each: for one that
/// cannot keep all of the contract, and says so. Where something does not move, a check takes a
/// minute.
pub fn survey<T: Link>() -> Vec<Finding> {
    let mut findings = Vec::new();
    for &memory in memories(T::INFO.home) {
        for (check, run) in checks_of::<T>() {
            findings.push(Finding { check, memory, violation: run(memory).err() });
        }
    }
    findings
}

/// Checks a technique wherever it can be. Takes seconds, and a core or two.
///
/// # Errors
/// The first thing that was found, and where.
pub fn check<T: Link>() -> Result<(), Failure> {
    for &memory in memories(T::INFO.home) {
        for (check, run) in checks_of::<T>() {
            run(memory).map_err(|violation| Failure {
                technique: T::INFO.name,
                memory,
                check,
                violation: Box::new(violation),
            })?;
        }
    }
    Ok(())
}
