//! Crashes a simulated process in the middle of its work: after a random number of clock reads.
//!
//! An agent reads the clock before each stamp, and so between any two actions; a successor reads
//! it before each part of its recovery.

use protocol::plan::FaultKind;
use std::cell::Cell;
use std::panic::resume_unwind;

/// The panic payload that ends a simulated process's work where a crash is injected.
pub(super) struct InjectedUnwind(pub FaultKind);

thread_local! {
    /// Clock reads left; 0: unlimited.
    static READS_LEFT: Cell<u64> = const { Cell::new(0) };
    /// The virtual time that a recovering process reads, in ticks.
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Sets the number of clock reads until a simulated process crashes, 0 for unlimited.
pub(super) fn arm(reads_left: u64) {
    READS_LEFT.set(reads_left);
}

/// Cancels the crash of a simulated process, and returns the clock reads that were left.
pub(super) fn disarm() -> u64 {
    READS_LEFT.take()
}

/// Counts a clock read of a simulated process, and crashes it at the last one.
pub(super) fn count_clock_read() {
    let reads_left = READS_LEFT.get();
    if reads_left > 0 {
        READS_LEFT.set(reads_left - 1);
        if reads_left == 1 {
            resume_unwind(Box::new(InjectedUnwind(FaultKind::Kill)));
        }
    }
}

/// Sets the virtual time that a recovering simulated process reads.
pub(super) fn set_virtual_now(ticks: u64) {
    NOW.set(ticks);
}

/// Reads the virtual time that was set for a recovering simulated process. May crash the process,
/// as each clock read may.
pub(super) fn virtual_now() -> u64 {
    count_clock_read();
    NOW.get()
}
