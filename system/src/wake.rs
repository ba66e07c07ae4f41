//! How long an idle core takes to run a thread that another core wakes.
//!
//! A thread sleeps in a futex on one core; another one, which spins on its own core, wakes it after
//! times between a fifth of a millisecond and two. What passes is the price of `--idle park` before
//! any work is done. A hypervisor decides about it: a halted core is given away, and comes back
//! when the host likes.

use crate::pin::{PinError, pin_to};
use shm::futex;
use shm::random::SplitMix64;
use shm::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The longest and the shortest sleep before a wake-up.
const MAX_SLEEP: Duration = Duration::from_millis(2);
const MIN_SLEEP: Duration = Duration::from_micros(200);
/// A sleeper that is not woken for this long looks whether the waker is gone.
const PATIENCE: Duration = Duration::from_millis(100);
/// The longest wait of one side for the other.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// The word that ends the measurement.
const END: u64 = u32::MAX as u64;

/// The reason why wake-ups of an idle core cannot be measured.
#[derive(Debug, Error)]
pub enum WakeError {
    /// A measuring thread may not run on its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The woken thread was not scheduled in time.
    #[error("the other side did not answer within two seconds")]
    Silent,
}

/// Measures how long a thread on an idle core takes to wake up: nanoseconds from before the waking
/// call to its first instruction. The waking thread spins on another core. Fewer once `stop`
/// returns `true`.
///
/// # Errors
/// A core may not be used, or a side does not run.
pub fn wake_times(
    waker: u32,
    sleeper: u32,
    count: u32,
    stop: impl Fn() -> bool + Sync,
) -> Result<Vec<f64>, WakeError> {
    // The number of the wake-up that is asked for, and of the one that was answered.
    let (asked, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let since = Instant::now();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| {
            pin_to(sleeper)?;
            let mut woken = Vec::with_capacity(count as usize);
            for number in 1.. {
                let waits_since = Instant::now();
                loop {
                    // Acquire: pairs with the Release of the waker.
                    let found = asked.load(Ordering::Acquire);
                    if found == END {
                        return Ok(woken);
                    }
                    if found == number {
                        break;
                    }
                    if waits_since.elapsed() > MAX_WAIT {
                        return Err(WakeError::Silent);
                    }
                    futex::wait(&asked, found as u32, PATIENCE);
                }
                woken.push(since.elapsed());
                answered.store(number, Ordering::Release);
            }
            Ok(woken)
        });
        let waking = scope.spawn(|| {
            let asking = ask(waker, count, &asked, &answered, since, &stop);
            asked.store(END, Ordering::Release);
            futex::wake_all(&asked);
            asking
        });
        let silent = || Err(WakeError::Silent);
        let asked_at = waking.join().unwrap_or_else(|_| silent())?;
        let woken_at = sleeping.join().unwrap_or_else(|_| silent())?;
        let took = |(asked, woken): (&Duration, Duration)| woken.saturating_sub(*asked).as_nanos() as f64;
        Ok(asked_at.iter().zip(woken_at).map(took).collect())
    })
}

/// The waking side: returns when each wake-up began.
fn ask(
    core: u32,
    count: u32,
    asked: &AtomicU64,
    answered: &AtomicU64,
    since: Instant,
    stop: impl Fn() -> bool,
) -> Result<Vec<Duration>, WakeError> {
    pin_to(core)?;
    let mut random = SplitMix64(1);
    let mut asked_at = Vec::with_capacity(count as usize);
    for number in 1..=u64::from(count) {
        if stop() {
            break;
        }
        let sleep = MIN_SLEEP + (MAX_SLEEP - MIN_SLEEP).mul_f64(random.share());
        let begin = Instant::now();
        while begin.elapsed() < sleep {
            std::hint::spin_loop();
        }
        asked_at.push(since.elapsed());
        asked.store(number, Ordering::Release);
        futex::wake_all(asked);
        while answered.load(Ordering::Acquire) != number {
            if begin.elapsed() > sleep + MAX_WAIT {
                return Err(WakeError::Silent);
            }
            std::hint::spin_loop();
        }
    }
    Ok(asked_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wake_up_is_measured_once() {
        let cores = crate::pin::allowed_cores();
        let times = wake_times(cores[0], *cores.last().unwrap(), 20, || false).unwrap();
        assert_eq!(times.len(), 20);
        assert!(times.iter().all(|ns| *ns > 0.0), "{times:?}");
        assert_eq!(wake_times(cores[0], cores[0], 3, || true).unwrap(), []);
    }

    #[test]
    fn core_that_may_not_be_used_is_an_error() {
        assert!(matches!(wake_times(0, 9_999, 1, || true), Err(WakeError::Pin(_))));
    }
}
