//! bulkhead for strategies in any language: a C interface over the code that its own strategy
//! processes run.
//!
//! A program that the launcher starts (`--strategy exec:COMMAND`) attaches to its run, takes
//! reports, sends orders, reads market data and finishes, all on one thread. Numbering, stamping,
//! validation, bells and the heartbeat are in here: they are the [`strategy::Session`] and the
//! [`protocol::agent::Running`] of every strategy. The guide is `docs/src/languages.md`.
//!
//! | module | what it is |
//! |---|---|
//! | [`abi`] | the functions, the only `unsafe` here: a C interface is made of pointers |
//! | [`calls`] | the same in safe Rust, for who writes a module for another language in it |
//! | [`layout`] | what a caller hands over and gets, field by field |
//! | [`codes`] | what a call returns, and its text |
//! | `line` | a strategy's line to its run, for who has a loop of its own |
//! | `attach` | the way there, from the environment to the open barrier |
#![deny(unsafe_code)]

pub mod abi;
mod attach;
pub mod calls;
pub mod codes;
mod inbox;
pub mod layout;
mod line;

/// A strategy's thread says how often it allocated after the barrier, as far as this library did.
#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
