//! shm's integration tests, in one binary; the loom models are in `tests/loom`.
//!
//! | folder or file | what it tests |
//! |---|---|
//! | `conformance` | every technique against the library's suite, and with real processes |
//! | `board` | one writer and its readers: against a model, hostile words, real processes, broken variants |
//! | `properties` | the SPSC ring against a model queue; under Miri as well |
//! | `deaths` | producers that die at any step, in any order of events, on the heap |
//! | `crash` | real processes killed at every instruction of a push or a pop |
//! | `doorbell` | one who wakes a listener for nothing, again and again, and the others' wake-ups |
//! | `hostile` | peers that write what no honest one does |
//! | `examples` | the examples that need several processes |
//! | `scribbler` | a real process that writes over all that it may |
//! | `strangers` | other processes at the socket of `unix-seqpacket` |
//! | `sandbox` | what a process in the sandbox tries, and which layer refuses it |
//! | `truncated` | memory that is taken away while it is mapped |
//! | `fuzzed` | the fuzz targets' bodies, with random bytes |
//!
//! Whatever changes the process itself (limits, layers of the sandbox, descriptors) happens in a child: this binary started
//! again for one of its tests, see [`common::itself`]. What the tests share is a lock away from each other or has a name of its own.
//!
//! One of them alone: `cargo test -p shm --test all hostile::`.

mod board;
mod common;
#[cfg(not(miri))]
mod conformance;
#[cfg(not(miri))]
mod crash;
#[cfg(not(miri))]
mod deaths;
#[cfg(not(miri))]
mod doorbell;
#[cfg(not(miri))]
mod examples;
#[cfg(not(miri))]
mod fuzzed;
#[cfg(not(miri))]
mod hostile;
mod properties;
#[cfg(not(miri))]
mod sandbox;
#[cfg(not(miri))]
mod scribbler;
#[cfg(not(miri))]
mod strangers;
mod successors;
#[cfg(not(miri))]
mod truncated;
