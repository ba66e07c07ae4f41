//! Elements of other crates' queues: a packed message, or one in a cache line of its own.
//!
//! The crates keep a message and its stamp (or state) in a slot of 64 bytes, in memory that
//! `malloc` aligns to 16: each slot straddles two cache lines and shares both with the adjacent
//! slots. That is not part of their algorithms, and users can avoid it: with an element that is
//! aligned to a cache line, each slot has whole lines, at twice the memory. The crates' arrays are
//! faster then, as fast as in an aligned buffer. The standard library's list is slower, because it
//! allocates its blocks during the run. Each technique uses the better form; `cargo bench -p
//! techniques -- crates` measures both.

use shm::ring::Message;

/// The form in which another crate's queue carries a message.
pub trait Element: Copy + Send + 'static {
    /// Creates a queue element from a message.
    fn from_message(message: &Message) -> Self;
    /// Returns the message in the queue element.
    fn message(&self) -> Message;
}

/// The packed form: 56 bytes, aligned to 8.
impl Element for Message {
    #[inline(always)]
    fn from_message(message: &Message) -> Self {
        *message
    }

    #[inline(always)]
    fn message(&self) -> Message {
        *self
    }
}

/// A queue element that is a message in a cache line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct LineMessage(pub Message);

impl Element for LineMessage {
    #[inline(always)]
    fn from_message(message: &Message) -> Self {
        Self(*message)
    }

    #[inline(always)]
    fn message(&self) -> Message {
        self.0
    }
}
