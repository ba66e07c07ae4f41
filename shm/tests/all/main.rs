//! shm's integration tests, in one binary; the loom models are in `tests/loom`, and what goes over
//! all techniques is tested in the crate `techniques`.
//!
//! | folder or file | what it tests |
//! |---|---|
//! | `board` | boards: against a model, hostile words, real processes, broken variants |
//! | `properties` | the SPSC ring against a model queue; under Miri as well |
//! | `queues` | typed queues between processes that are killed |
//! | `receivers` | receivers that are killed between `take` and `release`, or after a `pop` |
//! | `successors` | successors of crashed ends of the SPSC ring |
//! | `doorbell` | a sender's spurious wake-ups do not lose another's |
//! | `descriptors` | what a process inherits, and with which rights |
//! | `examples` | the examples, as programs |
//! | `truncated` | memory that is taken away while it is mapped |
//!
//! Whatever changes the process itself (limits, descriptors) happens in a child: this binary
//! started again for one of its tests, see [`common::itself`]. What the tests share is a lock away
//! from each other or has a name of its own.
//!
//! One of them alone: `cargo test -p bulkhead-shm --test all board::`.

mod board;
#[cfg(not(miri))]
mod common;
#[cfg(not(miri))]
mod descriptors;
#[cfg(not(miri))]
mod doorbell;
#[cfg(not(miri))]
mod examples;
mod properties;
#[cfg(not(miri))]
mod queues;
#[cfg(not(miri))]
mod receivers;
mod successors;
#[cfg(not(miri))]
mod truncated;
