//! shm's integration tests, in one binary; the loom models are in `tests/loom`, and tests of all
//! techniques are in the crate `techniques`.
//!
//! | folder or file | tests |
//! |---|---|
//! | `board` | boards: against a model, hostile words, real processes, broken variants |
//! | `packed` | the packed ring against a model queue, with crashes of both ends |
//! | `properties` | the SPSC ring against a model queue; under Miri as well |
//! | `queues` | typed queues between processes that are killed |
//! | `receivers` | receivers that are killed between `take` and `release`, or after a `pop` |
//! | `successors` | successors of crashed ends of the SPSC ring |
//! | `doorbell` | a sender's spurious wake-ups do not lose another's |
//! | `descriptors` | what a process inherits, and with which rights |
//! | `examples` | the examples, as programs |
//! | `truncated` | memory that is truncated while it is mapped |
//!
//! Changes of the process itself (limits, descriptors) are made in a child: this binary started
//! again for one of its tests, see [`common::test_child`]. Shared resources of the tests are locked
//! or have unique names.
//!
//! A single module: `cargo test -p bulkhead-shm --test all board::`.

mod board;
#[cfg(not(miri))]
mod common;
#[cfg(not(miri))]
mod descriptors;
#[cfg(not(miri))]
mod doorbell;
#[cfg(not(miri))]
mod examples;
mod packed;
mod properties;
#[cfg(not(miri))]
mod queues;
#[cfg(not(miri))]
mod receivers;
mod successors;
#[cfg(not(miri))]
mod truncated;
