//! Waiting for something newer: spinning, yielding, or asleep on the version itself.

use super::Reader;
use core::time::Duration;
use std::time::Instant;

/// How a reader waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Looks again at once, with the processor's pause hint: the lowest latency, a whole core.
    Spin,
    /// Gives the core to whoever else wants it.
    Yield,
    /// Sleeps on a futex, until [`Writer::wake`](super::Writer::wake) or for [`MAX_SLEEP`], then
    /// looks again. Waiting on a word of a shared file needs no right to write it.
    Sleep,
}

/// The longest sleep before a reader looks for itself.
pub const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

impl Reader {
    /// Waits until the cell's version is another than `than`, for `at_most` that long, and gives
    /// it: `than` if nothing came.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn wait_for_newer(&self, cell: usize, than: u64, wait: Wait, at_most: Duration) -> u64 {
        let begun = Instant::now();
        loop {
            for _ in 0..LOOKS {
                let version = self.version(cell);
                if version != than {
                    return version;
                }
                match wait {
                    Wait::Spin => core::hint::spin_loop(),
                    Wait::Yield => std::thread::yield_now(),
                    Wait::Sleep => break,
                }
            }
            let left = at_most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return self.version(cell);
            }
            if wait == Wait::Sleep {
                self.sleep(cell, than, left.min(MAX_SLEEP));
            }
        }
    }
}
