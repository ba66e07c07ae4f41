//! The consumer of a queue that several producers write: its messages do not identify a producer,
//! and a fault is stored until [`Consumer::take_fault`].

use super::ends::{Allocation, BlockedSlot, Consumer, PeerFault};
use super::message::{MESSAGE_WORDS, Message};

/// The consumer's view of a queue that several producers write; messages of `W` words.
pub trait SharedQueue<const W: usize = MESSAGE_WORDS>: Send {
    /// Takes the next message; `None` if there is none, or after a fault, which is stored in
    /// `fault`. A `Result` would copy the message through memory once more.
    fn pop(&mut self, fault: &mut Option<PeerFault>) -> Option<[u64; W]>;

    /// Takes the next message as [`SharedQueue::pop`] does, with the fault as the error.
    ///
    /// # Errors
    /// A protocol violation; the queue's own documentation lists the possible ones.
    #[inline(always)]
    fn try_pop(&mut self) -> Result<Option<[u64; W]>, PeerFault> {
        let mut fault = None;
        let message = self.pop(&mut fault);
        fault.map_or(Ok(message), Err)
    }

    /// Repairs what a dead producer left in the queue, as [`Consumer::retire`] does.
    fn retire(&mut self, producer: usize) -> bool;

    /// Returns the number of slots that dead producers had claimed and not written, as
    /// [`Consumer::passed_over`] does.
    fn passed_over(&self) -> u64;

    /// Looks for damage that polling does not show, as [`Consumer::check`] does.
    ///
    /// # Errors
    /// The fault that [`Consumer::check`] returns.
    fn check(&mut self) -> Result<(), PeerFault>;

    /// Returns the slot that blocks the queue, as [`Consumer::blocked`] does.
    fn blocked(&self) -> Option<BlockedSlot>;

    /// Returns the queue's numbers of used memory blocks, as [`Consumer::allocation`] does.
    fn allocation(&self) -> Allocation {
        Allocation::default()
    }
}

/// The consumer of a queue that several producers share; it keeps a producer's protocol violation
/// until [`Consumer::take_fault`] returns it.
pub struct Receiver<Q> {
    queue: Q,
    fault: Option<PeerFault>,
}

impl<Q> From<Q> for Receiver<Q> {
    fn from(queue: Q) -> Self {
        Self { queue, fault: None }
    }
}

impl<Q: SharedQueue> Consumer for Receiver<Q> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.queue.pop(&mut self.fault).map(|message| (None, message))
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|fault| (None, fault))
    }

    fn retire(&mut self, producer: usize) -> bool {
        self.queue.retire(producer)
    }

    fn passed_over(&self) -> u64 {
        self.queue.passed_over()
    }

    fn check(&mut self) -> Result<(), PeerFault> {
        self.queue.check()
    }

    fn blocked(&self) -> Option<BlockedSlot> {
        self.queue.blocked()
    }

    fn allocation(&self) -> Allocation {
        self.queue.allocation()
    }
}
