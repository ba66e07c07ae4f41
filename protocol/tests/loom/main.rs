//! Loom models (`.ci/loom.sh`; a single one: `.ci/loom.sh control::`), in a binary of their own:
//! `--cfg loom` builds another `protocol`, without processes, files and kernel hand-offs.
#![cfg(loom)]

mod control;
