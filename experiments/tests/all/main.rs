//! The experiments' integration tests, in one binary: real runs, made by the launcher that was
//! built beside the program. What is made of their figures is tested in `analysis`.
//!
//! One of them alone: `cargo test -p experiments --test all sweeps::`.

mod board;
#[path = "../../../launcher/tests/all/common/mod.rs"]
mod common;
mod contain;
mod disturb;
mod lab;
mod planned;
mod predict;
mod survey;
mod sweeps;
