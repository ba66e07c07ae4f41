//! Everything that bulkhead's processes share. The only crate with `unsafe`.
//!
//! A region is a slice of atomic words; everything above it (headers, rings, logs, status blocks, the barrier)
//! is safe code over such slices, and does not know whether they live on the heap, in `/dev/shm` or under loom.
//! The unsafe code is: making that slice from a mapping (`memory::region`), reading the time stamp counter
//! (`clock`), three system calls that have no safe wrapper (`os`), and a counting allocator behind a feature.

#[cfg(not(loom))]
pub mod agent;
#[cfg(feature = "count-alloc")]
pub mod alloc;
pub mod bell;
pub mod checksum;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod codec;
pub mod containment;
pub mod control;
#[cfg(not(loom))]
pub mod floor;
#[cfg(not(loom))]
pub mod handles;
#[cfg(not(loom))]
pub mod idle;
pub mod memory;
pub mod os;
#[cfg(not(loom))]
pub mod plan;
pub mod ring;
#[cfg(not(loom))]
pub mod segments;
pub mod stamps;
pub mod status;
#[cfg(not(loom))]
pub mod supervision;
pub mod sync;
pub mod wire;
