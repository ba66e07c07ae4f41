//! Liveness of the producers of a typed queue.

use super::byte_link::ByteLink;
use super::descriptor::{self, EndState, QueueEnd};
use super::error::QueueError;
use super::technique_queue::Queue;

/// State of a queue's producer: free, attached, dead or retired. Liveness is exact: the kernel
/// releases the lock of a producer's end when its process ends, which is visible in every PID
/// namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProducerState {
    /// No sender is attached: [`sender`](super::MessageQueue::sender) may attach one.
    Free,
    /// A sender of a running process is attached.
    Alive {
        /// Id of its process, in its own PID namespace.
        pid: u64,
    },
    /// The process crashed, or was killed: its end can be
    /// [resumed](super::MessageQueue::resume_sender) or [renewed](super::Receiver::renew).
    Dead {
        /// Id that its process had, in its own PID namespace.
        pid: u64,
    },
    /// The receiver does not poll the producer any more: [`renew`](super::Receiver::renew).
    Retired,
}

/// Returns the state of one producer of the queue, whose index was checked.
pub(super) fn producer_state(queue: &Queue<ByteLink>, index: usize) -> Result<ProducerState, QueueError> {
    let end = QueueEnd::Producer(index);
    // First: a process that ends in between has its state then, and no lock.
    let state = descriptor::end_state(&queue.words, end);
    Ok(match state {
        EndState::Free => ProducerState::Free,
        EndState::Retired => ProducerState::Retired,
        EndState::Attached(pid) if queue.is_end_locked(end)? => ProducerState::Alive { pid },
        EndState::Attached(pid) => ProducerState::Dead { pid },
    })
}

pub(super) fn producer_states(queue: &Queue<ByteLink>) -> Result<Vec<ProducerState>, QueueError> {
    (0..queue.producers()).map(|index| producer_state(queue, index)).collect()
}
