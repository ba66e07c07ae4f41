//! What goes over all techniques, in one binary; the loom models are in `tests/loom`.
//!
//! | folder or file | what it tests |
//! |---|---|
//! | `conformance` | every technique against the library's suite, and with real processes |
//! | `queues` | queues by name of every technique: their files, their ends, their successors |
//! | `deaths` | producers that die at any step, in any order of events, on the heap |
//! | `crash` | real processes killed at every instruction of a push or a pop |
//! | `hostile` | peers that write what no honest one does |
//! | `examples` | the examples that need several processes |
//! | `scribbler` | a real process that writes over all that it may |
//! | `strangers` | other processes at the socket of `unix-seqpacket` |
//! | `fuzzed` | the fuzz targets' bodies, with random bytes |
//!
//! Whatever changes the process itself happens in a child: this binary started again for one of its
//! tests, see [`common::itself`]. What the tests share is a lock away from each other or has a name
//! of its own.
//!
//! One of them alone: `cargo test -p techniques --test all hostile::`.
#![cfg(not(miri))]

mod common;
mod conformance;
mod crash;
mod deaths;
mod examples;
mod fuzzed;
mod hostile;
mod queues;
mod scribbler;
mod strangers;
