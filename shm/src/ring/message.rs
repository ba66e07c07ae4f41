//! Messages as words of a slot: seven words, which share a cache line with their sequence.
//!
//! Shared memory carries words only. Users of a ring define and check their
//! meaning.

use thiserror::Error;

/// Number of 64-bit words in a ring's message.
pub const MESSAGE_WORDS: usize = 7;

/// One message of seven 64-bit words: 56 bytes; with its slot's sequence one cache line.
pub type Message = [u64; MESSAGE_WORDS];

/// The error of a push into a full ring. The message stays with the caller, who may try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ring is full")]
pub struct Full;
