//! Waiting for a newer value: spinning, yielding, or sleeping on the cell's version.

use super::Reader;
use core::time::Duration;
use std::time::Instant;

/// How a board's reader waits for a newer value of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Polls again at once, with the CPU's pause hint: the lowest latency, a whole core.
    Spin,
    /// Yields the core to other threads.
    Yield,
    /// Sleeps on a futex, until [`Writer::wake`](super::Writer::wake) or for [`MAX_SLEEP`], then
    /// polls again. Waiting on a word of a shared file needs no right to write it.
    Sleep,
}

/// Maximum time (1 ms) that a waiting reader of a board sleeps without a wake-up before it polls
/// again.
pub const MAX_SLEEP: Duration = Duration::from_millis(1);

const POLLS_PER_CLOCK_READ: u32 = 64;

impl Reader {
    /// Waits up to `timeout` until a board's cell has a version other than `seen`, and returns the
    /// cell's version.
    ///
    /// # Panics
    /// If `cell` is out of range.
    pub fn wait_for_newer(&self, cell: usize, seen: u64, wait: Wait, timeout: Duration) -> u64 {
        let started = Instant::now();
        loop {
            for _ in 0..POLLS_PER_CLOCK_READ {
                let version = self.version(cell);
                if version != seen {
                    return version;
                }
                match wait {
                    Wait::Spin => core::hint::spin_loop(),
                    Wait::Yield => std::thread::yield_now(),
                    Wait::Sleep => break,
                }
            }
            let remaining = timeout.saturating_sub(started.elapsed());
            if remaining.is_zero() {
                return self.version(cell);
            }
            if wait == Wait::Sleep {
                self.sleep(cell, seen, remaining.min(MAX_SLEEP));
            }
        }
    }
}
