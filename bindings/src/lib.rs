//! A C interface for strategies in any language, over the code of the built-in strategy processes.
//!
//! A program that the launcher starts (`--strategy exec:COMMAND`) attaches to its run, takes
//! reports, sends orders, reads market data and finishes, all on one thread. Numbering, stamping,
//! validation, doorbells and the heartbeat are those of the [`strategy::Session`] and the
//! [`protocol::agent::AgentRunner`] of every strategy. The guide is `docs/src/languages.md`.
//!
//! | module | content |
//! |---|---|
//! | [`abi`] | the C functions; the only `unsafe` code of this crate |
//! | [`calls`] | the functions in safe Rust, for language modules written in Rust |
//! | [`layout`] | the structures, field by field |
//! | [`codes`] | return codes and their texts |
//! | `session` | a strategy's session with its run, for a program with its own loop |
//! | `attach` | attaching to a run, from the environment to the open barrier |
#![deny(unsafe_code)]

pub mod abi;
mod attach;
pub mod calls;
pub mod codes;
mod inbox;
pub mod layout;
mod session;

/// Counts this library's allocations after the barrier, which the strategy's thread reports.
#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
