//! A flag that one thread sets and another one reads.

use launcher::shm::sync::{AtomicU64, Ordering};

/// A flag between two threads; initially down.
#[derive(Debug)]
pub struct Flag(AtomicU64);

impl Default for Flag {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Flag {
    /// Sets the flag for the other thread. A thread that reads it sees all earlier writes.
    #[inline]
    pub fn set(&self, is_up: bool) {
        // Release: pairs with the Acquire in `is_up`.
        self.0.store(is_up.into(), Ordering::Release);
    }

    /// Returns the last value set.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
