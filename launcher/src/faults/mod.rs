//! Faults on purpose: what the launcher does by signal. What strategies and venues do themselves is
//! in [`roles::faults`].

pub mod schedule;
