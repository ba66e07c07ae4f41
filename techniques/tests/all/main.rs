//! Integration tests of all techniques, in one binary; the loom models are in `tests/loom`.
//!
//! | module | tests |
//! |---|---|
//! | `conformance` | every technique against the library's suite |
//! | `queues` | named queues of every technique: files, ends, successors |
//! | `deaths` | producers that die at any step, in any order of events, on the heap |
//! | `crash` | real processes killed at every instruction of a push or a pop |
//! | `hostile` | hostile peers that corrupt shared memory |
//! | `scribbler` | a real process that overwrites all memory that it can write |
//! | `strangers` | other processes at the socket of `unix-seqpacket` |
//! | `fuzzed` | the fuzz targets' bodies, with random bytes |
//!
//! Changes of the process itself are made in a child: this binary started again for one of its
//! tests, see [`common::test_child`]. Shared resources of the tests are locked or have unique
//! names.
//!
//! A single module: `cargo test -p techniques --test all hostile::`.
#![cfg(not(miri))]

mod common;
mod conformance;
mod crash;
mod deaths;
mod fuzzed;
mod hostile;
mod queues;
mod scribbler;
mod strangers;
