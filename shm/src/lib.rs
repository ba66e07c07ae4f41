//! Crash-safe queues, boards and doorbells in memory that processes share.
//!
//! Start with [`queue`]: a queue between processes that survives the crash of a peer. One writer
//! and many readers: [`board`]. Linux on x86-64; on aarch64 it compiles and its tests run in an
//! emulator (`.ci/aarch64.sh`).
//!
//! A region is a slice of atomic words; everything above it (headers, rings, bells) is safe code
//! over such slices, and is independent of whether they are on the heap, in `/dev/shm` or under
//! loom. The unsafe code is: making that slice from a mapping (`memory::region`), reaching words
//! that were checked before (`memory::slots`), taking inherited descriptors (`memory::sealed`), the
//! handler of SIGBUS (`memory::sigbus`), futexes (`futex`), and the hint to fetch memory ahead
//! (`prefetch`).

#[cfg(not(loom))]
pub mod attached;
pub mod bell;
pub mod board;
pub mod futex;
#[cfg(not(loom))]
pub mod idle;
pub mod memory;
pub mod prefetch;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod queue;
pub mod ring;
pub mod sync;
