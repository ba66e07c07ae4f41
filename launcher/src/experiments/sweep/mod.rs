//! `launcher sweep`: settings measured against each other.

mod command;
mod knee;
mod planned;
mod tables;
#[cfg(test)]
mod tests;

pub use command::{SweepFlags, begin, documents, given, new_sweep};
pub use planned::{Chosen, PlannedFlags};
