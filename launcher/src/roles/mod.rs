//! The roles of a run: what each process does.

mod agents;
mod audit;
mod book;
mod build;
mod checked;
mod compose;
mod engine;
mod estate;
mod gateway_log;
mod parts;
pub mod registry;
pub mod role;
mod runner;
mod spare;
mod takeover;

pub(crate) use audit::{audit, published, returned};
pub use build::strategy;
pub use compose::{Composed, compose, compose_on};
pub(crate) use engine::recover;
pub(crate) use spare::{Standby, standby};
pub use takeover::{ByHand, Mistake, Takeover};
