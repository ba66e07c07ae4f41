//! Memory that processes share, and what they say through it: regions, queues, bells, clocks. Knows no order, no venue and
//! no plan. All `unsafe` is here, but for the functions that C calls (`bindings`).
//!
//! Who only wants a queue that survives the death of a peer begins with [`queue`]: what it promises (ordering, errors, deaths) is
//! said there, and what each technique does about deaths in [`containment`]. One writer and many readers: [`board`]. Linux on x86-64; on aarch64 it
//! compiles and its tests run in an emulator (`.ci/aarch64.sh`), without the filter of system calls.
//!
//! A region is a slice of atomic words; everything above it (headers, rings, bells) is safe code over such slices, and
//! does not know whether they live on the heap, in `/dev/shm` or under loom. The unsafe code is: making that slice from a
//! mapping (`memory::region`), reaching words that were checked before (`memory::slots`), columns in files of one's own (`scratch`), taking inherited descriptors (`memory::sealed`), reading the time stamp counter (`clock`),
//! system calls that have no safe wrapper (`os`), the hint to fetch memory ahead (`prefetch`), and a counting allocator
//! (`alloc`).

pub mod alloc;
#[cfg(not(loom))]
pub mod attached;
pub mod bell;
pub mod board;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod conformance;
#[cfg(not(loom))]
pub mod container;
pub mod containment;
#[cfg(not(loom))]
pub mod floor;
#[cfg(not(loom))]
pub mod idle;
pub mod memory;
#[cfg(not(loom))]
pub mod named;
mod names;
pub mod os;
pub mod prefetch;
#[cfg(not(loom))]
pub mod queue;
pub mod ring;
#[cfg(not(loom))]
pub mod scratch;
pub mod sync;
