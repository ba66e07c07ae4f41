//! A clock that kills who reads it: where an exchange dies in these tests.

use core::cell::Cell;
use shm::clock::Clock;
use std::rc::Rc;

/// A clock that kills who reads it, when its time has come.
#[derive(Clone)]
pub struct Deadly {
    /// How often it was read.
    pub reads: Rc<Cell<u64>>,
    /// The look at which it kills.
    pub dies_at: u64,
}

/// What it unwinds with.
pub struct Dead;

impl Clock for Deadly {
    fn now(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() == self.dies_at {
            // Without the hook: it is no failure.
            std::panic::resume_unwind(Box::new(Dead));
        }
        self.reads.get()
    }

    fn peek(&self) -> u64 {
        self.now()
    }
}
