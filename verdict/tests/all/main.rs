//! Tests of verdict in one binary: synthetic runs through everything that reads a run's folder. No
//! process is started.
//!
//! A single module: `cargo test -p verdict --test all accounts::`.

#[allow(dead_code, reason = "the tests of analysis use the rest")]
mod common;
mod fixture;
mod runs;
