//! The orchestrator: the engine's event loop, which every order passes on its way out and back.
//!
//! Out: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3).
//! Back: take from the completion hand-off (t6), settle, return to the strategy (t7). One thread
//! owns all state, so positions and limits need no lock.
//!
//! [`Core`] decides, and is pure; this crate takes its inputs and performs its effects. A
//! [`Replica`] applies a journal's inputs to a core of its own: a crashed engine's successor is
//! promoted from it. `docs/src/architecture.md` has the picture.
#![forbid(unsafe_code)]

mod agent;
pub mod engine;
mod fences;
mod intake;
mod ledger;
mod live;
mod outputs;
mod positions;
mod replica;
pub mod risk;
mod shell;
mod supervision;

pub use self::engine::{Core, Input, TOLERATED_OFFENSES, log_records};
pub use fences::Supervision;
pub use ledger::{OutputWatermarks, Recovered, RecoveredGateway};
pub use outputs::Outputs;
pub use positions::{Account, Change, Positions};
pub use replica::{Replica, Successor};
pub use shell::Orchestrator;

#[cfg(test)]
mod tests;
