//! The only file that names atomics.
//!
//! Under `--cfg loom` the same names are loom's, so every algorithm above this file can be model-checked
//! without being changed. Everywhere else `std`'s atomic types are banned: by a clippy lint outside this crate, by a
//! search for the names in this one.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// Tells the processor (or loom's scheduler) that this thread is waiting for another one.
#[inline(always)]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}
