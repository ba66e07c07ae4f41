//! `launcher contain`: what isolation buys. Every fault against every technique at every isolation level, each in a real
//! run, and the table of what came of it.
//!
//! A cell of the matrix is one run: three strategies trade, the second one has a fault, and the others go on or do not. Under
//! `process` and `sandbox` the launcher starts the dead one again (`--on-death restart`); a thread can neither be killed
//! nor started again alone, so there the run ends, which is what the row shows.

mod command;
mod cost;
mod matrix;
mod rows;

pub use analysis::report::contain::grids;
pub use command::{ContainFlags, begin, documents};
pub use cost::Cost;
