//! A run from its beginning to its end: segments, processes, supervision, logs, and what is cleared away.

pub mod active;
pub mod aside;
pub mod clean;
pub mod comebacks;
pub mod container;
mod containment;
pub mod folder;
pub mod gather;
pub mod headers;
mod helper;
pub mod incidents;
pub mod lost_memory;
pub mod merge_room;
pub mod outages;
pub mod prepare;
pub mod process;
pub mod progress;
pub mod realtime;
pub mod restarts;
pub mod run;
pub mod run_id;
mod samples;
pub mod setup;
pub mod spares;
pub mod spawn;
pub mod spill;
pub mod stages;
pub mod stuck;
pub mod supervise;
mod tapes;
mod usage;
pub mod warden;

pub use crate::host::signals;
