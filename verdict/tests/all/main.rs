//! Tests of verdict in one binary: synthetic runs through everything that reads a run's folder. No
//! process is started.
//!
//! A single module: `cargo test -p verdict --test all accounts::`.

#[expect(dead_code, reason = "the tests of the other crate use the rest")]
mod common;
mod fixture;
mod runs;
