//! The tests of analysis, in one binary: made-up runs through everything that reads a run's folder.
//! No process is started.
//!
//! | folder | what it tests |
//! |---|---|
//! | `runs` | logs, merge, verdicts, figures, reports, `inspect` |
//! | `html` | the pictures of runs and experiments |
//! | `formats` | every file that is read back: its keys, its versions, damage |
//!
//! One of them alone: `cargo test -p analysis --test all accounts::`.

mod common;
mod fixture;
mod formats;
mod html;
mod runs;
