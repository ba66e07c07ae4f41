//! Memory that processes share, and what they say through it: regions, queues, boards, bells. Knows
//! no order, no venue and no plan.
//!
//! Who only wants a queue that survives the death of a peer begins with [`queue`]: what it promises
//! (ordering, errors, deaths) is said there. One writer and many readers: [`board`]. Linux on
//! x86-64; on aarch64 it compiles and its tests run in an emulator (`.ci/aarch64.sh`).
//!
//! A region is a slice of atomic words; everything above it (headers, rings, bells) is safe code
//! over such slices, and does not know whether they live on the heap, in `/dev/shm` or under loom.
//! The unsafe code is: making that slice from a mapping (`memory::region`), reaching words that
//! were checked before (`memory::slots`), taking inherited descriptors (`memory::sealed`), the
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
