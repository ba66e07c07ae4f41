//! Faults on purpose: when each is due, what the launcher does by signal, what a strategy does to itself, and what a
//! venue does.

mod acts;
pub mod own;
pub mod schedule;
mod takings;
pub mod venue;
