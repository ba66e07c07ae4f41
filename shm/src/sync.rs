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
