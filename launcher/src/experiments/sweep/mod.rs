//! `launcher sweep`: settings measured against each other.

mod command;
mod knee;
mod tables;
#[cfg(test)]
mod tests;

pub use command::{SweepFlags, begin, documents};
