//! Static description of a technique: name, home and properties.

use super::step::Step;

/// The memory in which a technique keeps its messages: heap, shared memory, kernel, or files of a
/// third-party transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Home {
    /// The heap of one process: between its threads only.
    Heap,
    /// Memory that processes can share.
    Memory,
    /// The kernel: a push or a poll is a system call.
    Kernel,
    /// Files and memory that the technique creates itself and opens by name: a third-party
    /// transport, which gets a [folder](super::SegmentPlace::Directory). Its memory cannot be
    /// handed over, so it runs only where a process may open any file, and it must check itself
    /// what it reads there.
    Foreign,
}

/// The name and the properties of a technique (a way to pass messages between agents). Command
/// line, planner, sweeps, bill, containment and tests depend on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TechniqueInfo {
    /// The name that users type and read: `a-z`, `0-9`, `-`. Plans and summaries hold it.
    pub name: &'static str,
    /// The memory in which the technique keeps its messages, which decides where it can run.
    pub home: Home,
    /// The steps of a push, in their order, at which a fault can interrupt it. Exactly those at
    /// which [`Producer::try_push_with`](super::Producer::try_push_with) calls.
    pub steps: &'static [Step],
    /// Whether each producer has memory or a connection of its own, so that one producer cannot
    /// affect the others.
    pub apart: bool,
    /// Whether a push can be refused because nothing was taken for long.
    pub bounded: bool,
    /// Whether a queue has exactly the requested number of slots, whatever the number; the slots of
    /// other queues are a power of two.
    pub exact_capacity: bool,
    /// Whether a consumer can take the place of one that has died:
    /// [`Link::resume_consumer`](super::Link::resume_consumer).
    pub consumer_resumable: bool,
    /// Whether a producer can take the place of one that has died:
    /// [`Link::resume_producer`](super::Link::resume_producer).
    pub producer_resumable: bool,
    /// The technique on the heap of which this one is the port: `launcher bill` compares the two.
    pub reference: Option<&'static str>,
    /// The technique to use across processes instead of one on the heap.
    pub twin: Option<&'static str>,
}

impl TechniqueInfo {
    /// Describes a technique with the default properties: bounded, one queue for all producers, no
    /// steps within a push.
    pub const fn new(name: &'static str, home: Home) -> Self {
        Self {
            name,
            home,
            steps: &[Step::Entered, Step::Published],
            apart: false,
            bounded: true,
            exact_capacity: false,
            consumer_resumable: false,
            producer_resumable: false,
            reference: None,
            twin: None,
        }
    }

    /// Declares the steps of the technique's push at which faults can interrupt it.
    #[must_use]
    pub const fn steps(self, steps: &'static [Step]) -> Self {
        Self { steps, ..self }
    }

    /// Declares that each producer of the technique has its own queue: none can affect another.
    #[must_use]
    pub const fn apart(self) -> Self {
        Self { apart: true, ..self }
    }

    /// Declares that the technique's queue is never full.
    #[must_use]
    pub const fn unbounded(self) -> Self {
        Self { bounded: false, ..self }
    }

    /// Declares that the queue has exactly the requested number of slots, which need not be a power
    /// of two.
    #[must_use]
    pub const fn exact_capacity(self) -> Self {
        Self { exact_capacity: true, ..self }
    }

    /// Declares that a crashed consumer of the technique can be replaced.
    #[must_use]
    pub const fn consumer_resumable(self) -> Self {
        Self { consumer_resumable: true, ..self }
    }

    /// Declares that a crashed producer can be replaced by one that continues after its last
    /// message.
    #[must_use]
    pub const fn producer_resumable(self) -> Self {
        Self { producer_resumable: true, ..self }
    }

    /// Declares the name of the heap technique of which this one is a port to shared memory.
    #[must_use]
    pub const fn port_of(self, reference: &'static str) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// Names the technique for shared memory that an error suggests where this one, which works
    /// only on the heap, is refused.
    #[must_use]
    pub const fn twin(self, twin: &'static str) -> Self {
        Self { twin: Some(twin), ..self }
    }
}
