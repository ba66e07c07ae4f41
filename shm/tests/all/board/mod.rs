//! Boards: against a naive model with interleaved writes, with broken variants that the same checks
//! detect; hostile words; and between processes.

// Values, not memory: minutes under Miri.
#[cfg(not(miri))]
mod broken;
mod hostile;
mod model;
#[cfg(not(miri))]
mod processes;
mod properties;

use shm::board::heap as memory;

/// Returns the value of a cell's version. Each word depends on cell, version and index, so that a
/// torn value is detected.
fn value(cell: usize, version: u64, words: usize) -> Vec<u64> {
    let name = (cell as u64) << 48 | version;
    (0..words as u64).map(|index| (name ^ index << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

fn ticks(cell: usize, version: u64) -> u64 {
    version * 1_000 + cell as u64
}
