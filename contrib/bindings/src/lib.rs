//! A C interface for strategies in any language, over the code of the built-in strategy processes.
//! A program that the launcher starts (`--strategy exec:COMMAND`) attaches to its run, takes
//! reports, sends orders, reads market data and finishes, all on one thread; see
//! `docs/src/languages.md`.
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
