//! The element of crossbeam's queues: a message in a cache line of its own.
//!
//! The crates keep a message and its stamp (or state) in a slot of 64 bytes, in memory that
//! `malloc` aligns to 16: each slot straddles two cache lines and shares both with the adjacent
//! slots. That is not part of their algorithms, and users can avoid it: with an element that is
//! aligned to a cache line, each slot has whole lines, at twice the memory. The crates' arrays are
//! faster then, as fast as in an aligned buffer. The standard library's list is slower, because it
//! allocates its blocks during the run, so it carries plain messages.

use shm::ring::Message;

/// A message in a cache line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct LineMessage(pub Message);
