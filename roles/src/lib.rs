//! The roles of a run: what each process does, and the table of everything that threads can be
//! built of.
//!
//! The loops of all built-in techniques, strategies and venues are compiled here, once:
//! [`registry`] fills its table in a function that is not generic. A program with parts of its own
//! compiles the loops of those parts only.
#![forbid(unsafe_code)]

mod agents;
mod audit;
pub mod bench;
mod book;
mod build;
mod checked;
mod compose;
mod ends;
mod engine;
mod estate;
pub mod faults;
mod gateway_estate;
mod parts;
pub mod registry;
pub mod role;
mod runner;
mod spare;
mod takeover;

pub use audit::{audit, published, returned};
pub use build::strategy;
pub use compose::{Composed, SteppedAgent, compose_stepped, compose_stepped_on};
pub use ends::{BoxedConsumer, BoxedEnds, BoxedProducer, Ends};
pub use engine::recover;
pub use spare::{SPARE_PREFIX, Standby, standby};
pub use takeover::{ByHand, Mistake, Takeover};
