//! Faults on purpose: when each is due, what the launcher does by signal, and what a strategy does to itself.

mod acts;
pub mod own;
pub mod schedule;
