//! The consumer of a queue that several producers write: what it takes names nobody, and what it finds wrong is kept until
//! somebody asks.

use super::ends::{Allocation, Blocked, Consumer, PeerFault};
use super::message::Message;

/// A queue of several producers in memory that they share, as its one consumer has it.
pub trait SharedQueue: Send {
    /// Takes the next message, or `None` if there is none now.
    ///
    /// # Errors
    /// What no honest producer leaves. The next call goes on.
    fn try_pop(&mut self) -> Result<Option<Message>, PeerFault>;

    /// As [`Consumer::retire`].
    fn retire(&mut self, producer: usize) -> bool;

    /// As [`Consumer::passed_over`].
    fn passed_over(&self) -> u64;

    /// As [`Consumer::check`].
    ///
    /// # Errors
    /// As there.
    fn check(&mut self) -> Result<(), PeerFault>;

    /// As [`Consumer::blocked`].
    fn blocked(&self) -> Option<Blocked>;

    /// As [`Consumer::allocation`].
    fn allocation(&self) -> Allocation {
        Allocation::default()
    }
}

/// Its consumer, and what it found wrong.
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
        match self.queue.try_pop() {
            Ok(message) => message.map(|message| (None, message)),
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        }
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

    fn blocked(&self) -> Option<Blocked> {
        self.queue.blocked()
    }

    fn allocation(&self) -> Allocation {
        self.queue.allocation()
    }
}
