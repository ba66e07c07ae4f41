//! The launcher's integration tests, in one binary: real processes, and simulated runs. What is
//! made of a run's logs is tested in `verdict`, and of experiments in `analysis`.
//!
//! | folder | what it tests |
//! |---|---|
//! | `live` | real runs: what they measure, and what they survive |
//! | `syscalls` | the launcher killed before and after its system calls |
//! | `cli` | what users get wrong; folders that are damaged, hostile or large |
//!
//! One of them alone: `cargo test -p launcher --test all ledger::`.

mod cli;
mod common;
mod exports;
mod live;
mod syscalls;

/// The made-up runs of the tests of `verdict`.
#[path = "../../../verdict/tests/all/fixture/mod.rs"]
mod fixture;
