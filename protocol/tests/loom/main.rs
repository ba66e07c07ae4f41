//! Loom runs these models in every order of steps, and with every value, that the orderings allow:
//! `.ci/loom.sh`.
//!
//! A binary of its own, because `--cfg loom` builds another `protocol`: one without processes,
//! files and the kernel's hand-offs, which the other tests are about. Without that flag it is
//! empty.
//!
//! One of them alone: `.ci/loom.sh spill::`.
#![cfg(loom)]

mod control;
mod spill;
