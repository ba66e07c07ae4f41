//! Loom runs these models in every order of steps, and with every value, that the orderings allow:
//! `.ci/loom.sh`.
//!
//! A binary of its own, because `--cfg loom` builds another `shm`: one without processes, files and
//! the kernel's hand-offs, which the other tests are about. Without that flag it is empty.
//!
//! One of them alone: `.ci/loom.sh ring::`.
#![cfg(loom)]

mod arrays;
mod bell;
mod board;
mod packed;
mod ring;
