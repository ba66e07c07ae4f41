//! Protection keys (x86-64): threads of one process that may not write the memory of others.
//!
//! Each page has a key, and each thread a register with its rights to the memory of each key. A
//! thread closes its rights once, at its start, and then pays nothing: it may write its own stack
//! with its thread-local variables, its own heap ([`arena`]) and the segments that were given its
//! key, and read everything. A refused write is a SIGSEGV, which ends the thread alone
//! ([`PreparedThread`]).
//!
//! Against mistakes, not malice: the instruction that writes the register needs no privilege.

pub mod arena;
mod calls;
mod owners;
mod register;
mod rseq;
mod signals;
mod state;
mod thread;
mod trial;

pub use owners::{register as register_owner, register_all as register_owners};
pub use register::{Key, Rights, open_all};
pub use thread::{ClosedRights, PreparedThread, WriteRights, detect_panic_start};
pub use trial::missing;
