//! Something that one thread says and another one hears.

use launcher::shm::sync::{AtomicU64, Ordering};

/// Up or down; down at first.
#[derive(Debug)]
pub struct Flag(AtomicU64);

impl Default for Flag {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Flag {
    /// Says so. Whoever hears it sees what was done before.
    #[inline]
    pub fn set(&self, is_up: bool) {
        // Release: pairs with the Acquire in `is_up`.
        self.0.store(is_up.into(), Ordering::Release);
    }

    /// What was said last.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
