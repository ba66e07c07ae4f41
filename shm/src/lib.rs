//! Everything that bulkhead's processes share. The only crate with `unsafe`.
//!
//! A region is a slice of atomic words; everything above it (headers, rings, logs, status blocks, the barrier)
//! is safe code over such slices, and does not know whether they live on the heap, in `/dev/shm` or under loom.

pub mod memory;
#[cfg(not(loom))]
pub mod plan;
pub mod stamps;
pub mod status;
pub mod sync;
pub mod wire;
