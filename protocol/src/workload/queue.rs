//! The settings of a queue benchmark.

use crate::role::Role;
use serde::{Deserialize, Serialize};

/// The time that one end of a queue benchmark spends on each event, spinning or sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventCost {
    /// Sleeps for a time, in nanoseconds.
    Sleep(u64),
    /// Spins for a time, in nanoseconds.
    Work(u64),
}

impl EventCost {
    /// Returns the cost of one event in nanoseconds.
    pub const fn ns(self) -> u64 {
        match self {
            EventCost::Sleep(ns) | EventCost::Work(ns) => ns,
        }
    }
}

/// How an end of a queue waits for a free slot or for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndWaiting {
    /// The end spins.
    Spin,
    /// The end yields the core to other threads.
    Yield,
    /// Sleeps for a time, in nanoseconds, between two polls.
    Sleep(u64),
    /// Parks until the other end rings its doorbell.
    Park,
}

/// The settings of one run of a queue benchmark. Each consumer has a queue of its own, into which
/// every producer pushes all its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueWork {
    /// Slots of each queue, a power of two unless the technique has exactly the requested number.
    pub capacity: u32,
    /// Number of events that each producer pushes.
    pub events: Vec<u64>,
    /// Number of consumers, each with a queue of its own.
    pub consumers: u16,
    /// The cost of one event for its producer; `None`: nothing.
    pub producer_cost: Option<EventCost>,
    /// The cost of one event for each consumer; `None`: nothing.
    pub consumer_cost: Option<EventCost>,
    /// Relative half-width of the variation of these costs, 0 to 1.
    pub jitter: f64,
    /// How the ends wait for a free slot or an event.
    pub waiting: EndWaiting,
    /// Timer slack of all threads, in nanoseconds.
    pub slack_ns: u64,
    /// Seed of the random jitter of event costs.
    pub seed: u64,
}

impl QueueWork {
    /// Maximum number of producers, and of consumers, of a queue benchmark.
    pub const MAX_ENDS: u16 = 64;

    /// Returns the number of producers of the queue benchmark.
    pub const fn producers(&self) -> usize {
        self.events.len()
    }

    /// Returns the number of events that all producers of a queue benchmark send together; every
    /// consumer receives each of them.
    pub fn total_events(&self) -> u64 {
        self.events.iter().fold(0, |sum, events| sum.saturating_add(*events))
    }

    /// Returns the roles of the benchmark, producers first.
    pub(crate) fn roles(&self) -> Vec<Role> {
        let producers = (0..self.producers() as u16).map(Role::Producer);
        producers.chain((0..self.consumers).map(Role::Consumer)).collect()
    }
}
