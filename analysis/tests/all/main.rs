//! Tests of analysis in one binary: synthetic runs through everything that reads a run's folder. No
//! process is started.
//!
//! | folder | what it tests |
//! |---|---|
//! | `runs` | logs, merge, verdicts, figures, reports, `inspect` |
//! | `html` | the pictures of runs and experiments |
//! | `formats` | every file that is read back: its keys, its versions, damage |
//!
//! A single module: `cargo test -p analysis --test all accounts::`.

mod common;
mod fixture;
mod formats;
mod html;
mod runs;
