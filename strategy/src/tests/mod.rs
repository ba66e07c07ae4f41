//! Tests that need several modules of which one uses the other.

mod player;
