//! The only file that names atomics.
//!
//! Under `--cfg loom` the same names are loom's, so every algorithm above this file can be model-checked
//! without being changed. A clippy lint bans `std`'s atomic types everywhere else.

#[cfg(not(loom))]
pub use core::sync::atomic::{Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{Ordering, fence};

/// A shared word. An alias and not a re-export, because the lint looks through re-exports and would ban this one too.
#[cfg(not(loom))]
#[allow(clippy::disallowed_types)]
pub type AtomicU64 = core::sync::atomic::AtomicU64;
/// Loom's shared word.
#[cfg(loom)]
pub type AtomicU64 = loom::sync::atomic::AtomicU64;

/// Tells the processor (or loom's scheduler) that this thread is waiting for another one.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Lets another thread of this core go on.
#[inline]
pub fn give_way() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Stands between two SeqCst accesses of which each sees the other side's first one or is seen by it. Natively nothing:
/// the accesses themselves are in the one order of everything SeqCst. Loom takes a SeqCst access for an AcqRel one and
/// has that order for fences only, so there it is a fence.
#[inline(always)]
pub fn seqcst_for_loom() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}
