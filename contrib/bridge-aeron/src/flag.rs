//! A flag that one thread sets and another one reads.

use launcher::shm::sync::{AtomicU64, Ordering};

/// A flag that one thread sets and another one reads; initially down.
#[derive(Debug)]
pub struct Flag(AtomicU64);

impl Default for Flag {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Flag {
    /// Sets the flag's value for the other thread. A thread that reads it sees all earlier writes.
    #[inline]
    pub fn set(&self, is_up: bool) {
        // Release: pairs with the Acquire in `is_up`.
        self.0.store(is_up.into(), Ordering::Release);
    }

    /// Returns the value that was set last.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
