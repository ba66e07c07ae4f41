//! Runs from start to end: segments, processes, supervision, logs and cleanup.

pub(crate) mod affinity_guard;
pub(crate) mod benchmark;
mod cache_misses;
pub(crate) mod clean;
pub(crate) mod container;
pub mod cpu_accounts;
pub mod cpu_samples;
mod death_watch;
pub mod debugger;
pub(crate) mod folder;
pub(crate) mod gather;
pub(crate) mod prepare;
pub(crate) mod process;
pub(crate) mod progress;
pub(crate) mod reaper;
pub(crate) mod resources;
pub(crate) mod run;
mod samples;
pub(crate) mod spawn;
pub mod stages;
pub(crate) mod standbys;
mod supervise;
pub(crate) mod tapes;
mod usage;

pub(crate) use planner::host::signals;
