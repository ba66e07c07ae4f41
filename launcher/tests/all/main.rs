//! The launcher's integration tests, in one binary: real processes, made-up runs and simulated ones.
//!
//! | folder | what it tests |
//! |---|---|
//! | `live` | real runs: what they measure, and what they survive |
//! | `experiments` | many runs: sweeps, the containment matrix |
//! | `formats` | every file that is read back: its keys, its versions, damage |
//! | `syscalls` | the launcher killed before and after its system calls |
//! | `runs` | made-up runs through everything that reads a run's folder |
//! | `html` | the pictures of runs and sweeps |
//! | `cli` | what users get wrong |
//! | `simulate` | runs on a virtual clock |
//! | `structure` | the source itself: modules, links, length |
//!
//! One of them alone: `cargo test -p launcher --test all ledger::`.

mod cli;
mod common;
mod experiments;
mod exports;
mod formats;
mod html;
mod live;
mod runs;
mod simulate;
mod structure;
mod syscalls;
