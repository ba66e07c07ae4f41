//! The roles of a run: what each process does.

mod agents;
mod build;
pub mod role;
