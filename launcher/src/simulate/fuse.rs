//! Dying in the middle of something: a process may look at its clock so many times yet, and is gone
//! at the last one.
//!
//! An agent looks at the clock before each stamp that it takes, and so between any two things that
//! it does; a process that takes over from a dead one looks before each part of what it recovers.

use protocol::plan::{FaultKind, Plan};
use std::cell::Cell;
use std::panic::resume_unwind;

/// What unwinds a turn in which a fault is due.
pub(super) struct Unwound(pub FaultKind);

thread_local! {
    /// Looks that are left; 0: as many as it likes.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    /// The time that a process sees which takes over.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Whoever looks at the clock from now on has so many looks, 0: as many as it likes; the last one
/// ends it.
pub(super) fn set(left: u64) {
    LEFT.set(left);
}

/// Puts the fuse out; the looks that were left.
pub(super) fn take() -> u64 {
    LEFT.take()
}

/// Somebody looks at the clock.
pub(super) fn look() {
    let left = LEFT.get();
    if left > 0 {
        LEFT.set(left - 1);
        if left == 1 {
            resume_unwind(Box::new(Unwound(FaultKind::Kill)));
        }
    }
}

/// The time that a process is to see which takes over.
pub(super) fn set_now(ticks: u64) {
    NOW.set(ticks);
}

/// That time, looked at.
pub(super) fn now(_: &Plan) -> u64 {
    look();
    NOW.get()
}
