//! The measured loops of the benchmarks `lab` and `board`, with their control segment and accounts.
//! The launcher starts, watches and evaluates them.

pub mod account;
pub mod boards;
pub mod control;
pub mod queues;
