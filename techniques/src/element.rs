//! Elements of the heap crates' queues: a message packed, or in a cache line of its own.
//!
//! The crates keep a message and its stamp (or state) side by side in a slot of 64 bytes, in memory
//! that `malloc` aligns to 16: each slot straddles two lines and shares both with its neighbours.
//! That is no part of their algorithms, and a user who knows can end it: an element that is aligned
//! to a line makes each slot whole lines, at twice the memory. The crates' arrays are faster so, as
//! fast as in a buffer that the allocator aligns. The standard library's list is slower, because it
//! allocates its blocks on the way. Each technique carries what is better for it; `cargo bench -p
//! techniques -- crates` measures both.

use shm::ring::Message;

/// A message as an element of another crate's queue.
pub trait Element: Copy + Send + 'static {
    /// Wraps it.
    fn of(message: &Message) -> Self;
    /// Unwraps it.
    fn message(&self) -> Message;
}

/// As `malloc` puts it: 56 bytes, aligned to 8.
impl Element for Message {
    #[inline(always)]
    fn of(message: &Message) -> Self {
        *message
    }

    #[inline(always)]
    fn message(&self) -> Message {
        *self
    }
}

/// A message in a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct LineMessage(pub Message);

impl Element for LineMessage {
    #[inline(always)]
    fn of(message: &Message) -> Self {
        Self(*message)
    }

    #[inline(always)]
    fn message(&self) -> Message {
        self.0
    }
}
