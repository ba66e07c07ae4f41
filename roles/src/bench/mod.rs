//! The measured loops of `lab` and `board`, and what they read and write while they run: the phase
//! of their run and an account of their own. Starting, watching and evaluating them is for the
//! launcher.

pub mod account;
pub mod boards;
pub mod control;
pub mod queues;
