//! Tests that span several modules.

mod benchmark;
mod counters;
mod gaps;
mod indices;
