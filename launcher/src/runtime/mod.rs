//! A run from its beginning to its end: segments, processes, supervision, logs, and what is cleared away.

pub mod aside;
pub mod children;
pub mod clean;
pub mod comebacks;
pub mod container;
mod cpu;
pub mod folder;
pub mod gather;
mod grace;
pub mod headers;
pub mod incidents;
pub mod liveness;
pub mod living;
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
mod spilling;
pub mod standstill;
pub mod supervise;
mod suspicion;
mod tapes;
mod usage;
pub mod warden;

pub use crate::host::signals;
