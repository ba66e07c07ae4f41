//! What travels through a ring: messages of seven words, which with the sequence of their slot fill one cache line.
//!
//! Shared memory carries words only. What the words mean is for the users of a ring to say, and to check.

/// Words in a message.
pub const MESSAGE_WORDS: usize = 7;

/// One message: 56 bytes; 64 with its slot's sequence, one cache line.
pub type Message = [u64; MESSAGE_WORDS];
