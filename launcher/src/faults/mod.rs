//! Fault injection by signal; faults that strategies and venues inject themselves are in
//! [`roles::faults`].

pub mod schedule;
