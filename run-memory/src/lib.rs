//! The memory of a run: its segments, created and removed, and what the supervisor observes there.
#![forbid(unsafe_code)]

pub mod headers;
pub mod journal_locks;
pub mod lost_memory;
pub mod own_binaries;
pub mod segments;
pub mod shared_memory;
