//! The conformance suite for techniques, built-in or your own: [`check`], or [`survey`] for one
//! that fulfills only a part of the contract.
//!
//! ```
//! use shm::ring::array_queue::ArrayQueue;
//!
//! if let Err(failure) = techniques::conformance::check::<ArrayQueue>() {
//!     panic!("{failure}");
//! }
//! ```
//!
//! It uses the technique's [`TechniqueInfo`](shm::ring::TechniqueInfo) and runs on the heap and in
//! mapped memory, where the technique supports them: with threads, against a model, filled and
//! drained, and with producers that die at each step of a push and are replaced. It does not cover
//! every interleaving (that needs a model checker), other processes, or hostile peers. The faulty
//! rings in [`faulty`] validate the suite itself.

mod checks;
pub mod faulty;
mod ledger;

use shm::queue::{Queue, QueueError};
use shm::ring::{Home, Link, Message, PeerFault, Step};
use std::sync::Mutex;
use thiserror::Error;

/// A violation of the contract that every technique's queue must fulfil.
#[derive(Debug, Error)]
pub enum Violation {
    /// A message arrived with words of another message.
    #[error("a message is torn: {message:x?}")]
    Torn {
        /// The message as it arrived.
        message: Message,
    },
    /// A message arrived twice.
    #[error("message {n} of producer {producer} came twice")]
    Duplicated {
        /// The producer of the message.
        producer: usize,
        /// The number of the message.
        n: u64,
    },
    /// A message arrived after a later one of the same producer.
    #[error("message {n} of producer {producer} came after its message {after}")]
    Reordered {
        /// The producer of the message.
        producer: usize,
        /// The number of the message.
        n: u64,
        /// The number of the later message that arrived first.
        after: u64,
    },
    /// Messages never arrived.
    #[error("{count} messages of producer {producer} never came, message {first} first of all")]
    Lost {
        /// The producer of the messages.
        producer: usize,
        /// The number of the first lost message.
        first: u64,
        /// Number of lost messages.
        count: u64,
    },
    /// A message arrived that its producer had not sent, or whose push was refused.
    #[error("message {n} of producer {producer} came, which was refused or never sent")]
    Invented {
        /// The producer in the message.
        producer: usize,
        /// The number of the message.
        n: u64,
    },
    /// A message arrived with the index of another producer.
    #[error("a message of producer {producer} came as one of producer {from}")]
    Misattributed {
        /// The actual producer.
        producer: usize,
        /// The reported producer.
        from: usize,
    },
    /// A correct producer was reported as faulty.
    #[error("a fault among honest peers: {0}")]
    Fault(PeerFault),
    /// A poll returned no message although there was one.
    #[error("{waiting} messages are available and none is received")]
    Hidden {
        /// Number of messages sent and not received.
        waiting: u64,
    },
    /// A push was refused although the queue was not full.
    #[error("full with {held} messages, the capacity is {capacity}")]
    FullTooEarly {
        /// Number of messages in the queue.
        held: u64,
        /// The configured capacity of the queue.
        capacity: u64,
    },
    /// A bounded queue accepted every message, or an unbounded one refused.
    #[error("its record says that it is {}bounded, but it took {taken} messages", if *bounded { "" } else { "un" })]
    Bound {
        /// Whether the technique declares that it is bounded.
        bounded: bool,
        /// Number of messages accepted without a receiver.
        taken: u64,
    },
    /// Neither a push nor a pop made progress.
    #[error("nothing moves: {what}")]
    Stuck {
        /// The operation that is stuck.
        what: String,
    },
    /// The declared steps are not those of the pushes.
    #[error("its record has the steps {record:?}, its pushes have {pushes:?}")]
    Steps {
        /// The declared steps.
        record: Vec<Step>,
        /// The observed steps.
        pushes: Vec<Step>,
    },
    /// An end cannot be attached.
    #[error("an end cannot be attached: {0}")]
    Attach(#[from] QueueError),
}

/// The memory in which a technique is checked, such as the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMemory {
    /// The heap of this process.
    Heap,
    /// Names in `/dev/shm`: mapped memory, pipes, sockets, directories of foreign techniques.
    Named,
}

/// A check of the conformance suite that a technique has failed.
#[derive(Debug, Error)]
#[error("{technique} in {memory:?} memory, {check}: {violation}")]
pub struct ConformanceFailure {
    /// The name of the technique.
    pub technique: &'static str,
    /// The memory in which the technique was checked.
    pub memory: CheckMemory,
    /// The name of the check of the conformance suite.
    pub check: String,
    /// The violation of the contract.
    #[source]
    pub violation: Box<Violation>,
}

fn supported_memories(home: Home) -> &'static [CheckMemory] {
    match home {
        Home::Heap => &[CheckMemory::Heap],
        Home::Memory => &[CheckMemory::Heap, CheckMemory::Named],
        Home::Kernel | Home::Foreign => &[CheckMemory::Named],
    }
}

/// Makes a queue for a check; its names are removed when it is dropped.
fn queue<T: Link>(memory: CheckMemory, producers: usize, capacity: u32) -> Result<Queue<T>, Violation> {
    static MADE: Mutex<u64> = Mutex::new(0);
    let number = {
        let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *made += 1;
        *made
    };
    Ok(match memory {
        CheckMemory::Heap => Queue::on_heap(producers, capacity)?,
        CheckMemory::Named => {
            Queue::create(&format!("conformance-{}-{number}", std::process::id()), producers, capacity)?
        }
    })
}

type Check = (String, Box<dyn Fn(CheckMemory) -> Result<(), Violation>>);

fn all_checks<T: Link>() -> Vec<Check> {
    let mut all: Vec<Check> = vec![
        ("the steps of a push".into(), Box::new(checks::steps::<T>)),
        ("full and empty again".into(), Box::new(checks::fill_and_drain::<T>)),
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
    if T::INFO.apart {
        all.push(("the retirement of a producer with messages".into(), Box::new(checks::retirement::<T>)));
    }
    for &step in T::INFO.steps {
        let check = move |memory| checks::death::<T>(memory, step);
        all.push((format!("a producer that dies at {step}"), Box::new(check)));
        let check = move |memory| checks::successor::<T>(memory, step);
        all.push((format!("the successor of a producer that dies at {step}"), Box::new(check)));
    }
    all
}

/// The result of one check of the conformance suite.
#[derive(Debug)]
pub struct CheckResult {
    /// The name of the check of the conformance suite.
    pub check: String,
    /// The memory in which the technique was checked.
    pub memory: CheckMemory,
    /// The violation, if the check failed.
    pub violation: Option<Violation>,
}

/// Runs every check on a technique and returns all results, also for one that fulfills only a part
/// of the contract. It runs in each memory that the technique supports. A check that is stuck takes
/// a minute.
pub fn survey<T: Link>() -> Vec<CheckResult> {
    let mut findings = Vec::new();
    for &memory in supported_memories(T::INFO.home) {
        for (check, run) in all_checks::<T>() {
            findings.push(CheckResult { check, memory, violation: run(memory).err() });
        }
    }
    findings
}

/// Tests that a queue keeps its contract on the heap and in shared memory; stops at the first
/// failure. Takes seconds, on one or two cores.
///
/// # Errors
/// The first failed check.
pub fn check<T: Link>() -> Result<(), ConformanceFailure> {
    for &memory in supported_memories(T::INFO.home) {
        for (check, run) in all_checks::<T>() {
            run(memory).map_err(|violation| ConformanceFailure {
                technique: T::INFO.name,
                memory,
                check,
                violation: Box::new(violation),
            })?;
        }
    }
    Ok(())
}
