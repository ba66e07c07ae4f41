//! Crash-safe queues, boards and doorbells in memory that processes share.
//!
//! Start with [`queue`]: a queue between processes that survives the crash of a peer. One writer
//! and many readers: [`board`]. Linux on x86-64; on aarch64 it compiles and its tests run in an
//! emulator.
//!
//! A region is a slice of atomic words; everything above it (headers, rings, bells) is safe code
//! over such slices, and is independent of whether they are on the heap, in `/dev/shm` or under
//! loom. The unsafe code is: making that slice from a mapping (`memory::region`), reaching words
//! that were checked before (`memory::slots`), taking inherited descriptors (`memory::sealed`), the
//! handler of SIGBUS (`memory::sigbus`), futexes (`futex`), and the hint to fetch memory ahead
//! (`prefetch`).

#[cfg(not(target_os = "linux"))]
compile_error!("bulkhead-shm needs Linux: futexes, memfd, /dev/shm, OFD locks");
#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!(
    "bulkhead-shm needs a 64-bit little-endian machine: words of 64 bits, futexes on their low half"
);

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
#[doc(hidden)]
pub mod random;
pub mod ring;
pub mod sync;

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
