//! The roles of a run: what each process does.

mod agents;
mod book;
mod build;
mod checked;
mod compose;
mod engine;
mod estate;
mod parts;
pub mod registry;
pub mod role;
mod runner;
mod spare;

pub use build::strategy;
pub use compose::{Composed, compose, compose_on};
