//! Tests that span several modules.

mod counters;
mod gaps;
