//! bulkhead's launcher: turns a config into a plan and segments, runs the processes, merges their
//! stamps, and reports a verdict.
//!
//! Each arrow is one function with one value in and one value out.
#![forbid(unsafe_code)]

mod active_view;
pub mod cli;
mod commands;
mod experiments;
mod exports;
mod harness;
mod operator;
mod saved_results;
mod simulate;
mod watch;

pub use catalog::run_id::RunId;
pub use harness::{Harness, HarnessError, OwnStrategy, OwnVenue, Parts, main};
pub use run_memory::segments::BRIDGE;
// The crates that user-defined parts are written with.
pub use {gateway, heap_techniques, protocol, roles, shm, strategy, system, techniques};

/// The Rust code of README and book, compiled by `cargo test --doc`: code that does not build fails
/// there. The `snippets` test of package `checks` finds a page that is missing here.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/src/board.md")]
    struct BoardPage;
    #[doc = include_str!("../../docs/src/queue.md")]
    struct QueuePage;
    #[doc = include_str!("../../docs/src/use-exchange.md")]
    struct ExchangePage;
    #[doc = include_str!("../../docs/src/use-journal.md")]
    struct JournalPage;
}
