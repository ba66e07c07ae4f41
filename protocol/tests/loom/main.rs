//! Loom models, which run in every order of steps and with every value that the orderings allow:
//! `.ci/loom.sh`.
//!
//! A separate binary, because `--cfg loom` builds another `protocol`, without the processes, files
//! and kernel hand-offs that the other tests need. Without that flag it is empty.
//!
//! A single model: `.ci/loom.sh control::`.
#![cfg(loom)]

mod control;
