//! Runs from start to end: segments, processes, supervision, logs and cleanup.
#![forbid(unsafe_code)]

pub mod affinity_guard;
pub mod benchmark;
mod cache_misses;
pub mod clean;
pub mod container;
pub mod cpu_accounts;
pub mod cpu_samples;
mod death_watch;
pub mod debugger;
pub mod folder;
pub mod gather;
pub mod prepare;
pub mod process;
pub mod progress;
pub mod reaper;
pub mod resources;
pub mod run;
mod samples;
pub mod spawn;
pub mod stages;
pub mod standbys;
mod supervise;
pub mod tapes;
mod usage;

pub use planner::host::signals;
