//! The roles of a run's processes, and the registry of techniques, strategies and venues from which
//! threads are built.
//!
//! The loops of all built-in techniques, strategies and venues are compiled here, once:
//! [`registry`] fills its table in a function that is not generic. A program with its own
//! techniques, strategies or venues compiles only their loops.
#![forbid(unsafe_code)]

mod agents;
mod audit;
pub mod board;
mod book;
mod build;
mod compose;
mod engine;
pub mod faults;
mod gateway_recovery;
mod measured;
mod protection_keys;
pub mod queue;
mod recovered;
mod recovery_environment;
pub mod registry;
pub mod role;
mod role_context;
mod run_tape;
mod runner;
mod standby;
mod technique_ends;
mod threads;

pub use audit::{audit, count_published, count_returned};
pub use build::strategy;
pub use compose::{SteppedAgent, UnarmedAgent, compose_stepped, compose_stepped_on};
pub use engine::recover;
pub use recovered::{FollowedJournal, RecoveredEngine, RecoveredRoles, StandbyState};
pub use recovery_environment::{RecoveryEnvironment, SystemRecovery};
pub use standby::{STANDBY_PREFIX, StandbyRole, standby};
pub use technique_ends::{BoxedConsumer, BoxedEnds, BoxedProducer, TechniqueEnds};
