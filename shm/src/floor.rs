//! The floor under every hand-off: one cache line bounced between two cores.
//!
//! No message can go to another core and come back faster than the line that carries it, so this is what a ring's
//! round trip is divided by. The figure belongs to the machine and to the moment: on a virtual machine two cores may
//! be neighbours now and far apart a minute later, so measure it again beside every sample.
//!
//! One word, alone in its pair of lines. Even: the asker's turn; odd: the answerer's. The asker stores the next odd
//! number and waits for the even one above it. Both wait with or without the processor's pause hint, as told: it
//! changes the figure by up to a third, so it must be the one that the compared ring waits with.

use crate::clock::{Clock, Monotonic};
use crate::os::pin::{PinError, pin_to};
use crate::sync::{AtomicU64, Ordering, spin_hint};
use std::sync::mpsc;

/// How many round trips [`round_trip_ns`] is usually asked for: 2 ms between near cores, 6 to 10 ms between far ones. Five times as many, in
/// turn with these between near cores, had the same median (65.4 and 65.3 ns, some 58 each; from 61.5 to 68.3 and from 60.5 to 69.0; AMD EPYC, 2
/// cores of a virtual machine), and each run would begin and end so much later.
pub const DEFAULT_ROUNDS: u32 = 20_000;
/// The batches that they are cut into; the median of the batches is the figure.
const BATCHES: u32 = 50;
/// Waiting longer than this means that the other thread does not run: let it (both may be on one core).
const SPINS_BEFORE_YIELD: u32 = 20_000;
/// Ends the answering side. Odd, and out of reach of the count.
const END: u64 = u64::MAX;

/// What a line's way to another core and back takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorSample {
    /// The median over the batches, in nanoseconds a round trip: the floor.
    pub median_ns: f64,
    /// The fastest batch.
    pub min_ns: f64,
    /// The slowest batch: far above the median if something else ran on these cores.
    pub max_ns: f64,
}

impl FloorSample {
    /// The sample in these batches (nanoseconds a round trip each).
    ///
    /// # Panics
    /// If there are none.
    pub fn of_batches(mut batches: Vec<f64>) -> Self {
        batches.sort_by(f64::total_cmp);
        let last = batches.len() - 1;
        Self { median_ns: batches[last / 2], min_ns: batches[0], max_ns: batches[last] }
    }
}

/// A word with two cache lines (what the adjacent-line prefetcher fetches) of its own.
#[repr(align(128))]
struct CacheLine(AtomicU64);

/// Measures the floor between two cores: two new threads, pinned there, waiting with the pause hint, which
/// [`crate::idle::Spin`] gives now and then. Takes up to some 10 ms for [`DEFAULT_ROUNDS`].
///
/// The same core twice is allowed and gives what handing over the core costs, which is thousands of times more:
/// ask for fewer rounds then.
///
/// # Errors
/// If one of the threads cannot be pinned.
pub fn round_trip_ns(core_a: u32, core_b: u32, rounds: u32) -> Result<FloorSample, PinError> {
    let line = &CacheLine(AtomicU64::new(0)).0;
    let (pinned, is_pinned) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let result = pin_to(core_b);
            let goes_on = result.is_ok();
            // The receiver waits for this and nothing else.
            let _ = pinned.send(result);
            if goes_on {
                answer::<true>(line);
            }
        });
        let asker = scope.spawn(move || {
            is_pinned.recv().expect("the answering thread says whether it is pinned")?;
            let sample = pin_to(core_a).map(|()| measure::<true>(line, rounds));
            end(line);
            sample
        });
        asker.join().expect("bouncing a line does not panic")
    })
}

/// The asking side: some batches of round trips against [`answer`] on another core. `PAUSE`: wait with the pause hint.
pub fn measure<const PAUSE: bool>(line: &AtomicU64, rounds: u32) -> FloorSample {
    let batches = BATCHES.min(rounds.max(1));
    FloorSample::of_batches((0..batches).map(|_| bounce::<PAUSE>(line, (rounds / batches).max(1))).collect())
}

/// One batch of round trips; nanoseconds each.
fn bounce<const PAUSE: bool>(line: &AtomicU64, rounds: u32) -> f64 {
    let start = Monotonic.now();
    // Relaxed: our own turn, the word changes only when we change it.
    let mut turn = line.load(Ordering::Relaxed);
    for _ in 0..rounds {
        // Release and Acquire, below and in `answer`: what a ring needs to carry a message.
        line.store(turn + 1, Ordering::Release);
        turn += 2;
        wait::<PAUSE>(|| line.load(Ordering::Acquire) == turn);
    }
    (Monotonic.now() - start) as f64 / f64::from(rounds)
}

/// The answering side: sends the line back until [`end`]. The word must be zero at the start; it is zero at the end.
pub fn answer<const PAUSE: bool>(line: &AtomicU64) {
    loop {
        let mut turn = 0;
        wait::<PAUSE>(|| {
            turn = line.load(Ordering::Acquire);
            turn % 2 == 1
        });
        if turn == END {
            line.store(0, Ordering::Release);
            return;
        }
        line.store(turn + 1, Ordering::Release);
    }
}

/// Sends the answering side home, and waits until it has gone: the word may be used again.
pub fn end(line: &AtomicU64) {
    line.store(END, Ordering::Release);
    wait::<true>(|| line.load(Ordering::Acquire) == 0);
}

/// Polls until `done`; the way of waiting that the floor and whatever is compared with it have in common.
#[inline(always)]
pub fn wait<const PAUSE: bool>(mut done: impl FnMut() -> bool) {
    let mut spins = 0;
    while !done() {
        spins += 1;
        if spins > SPINS_BEFORE_YIELD {
            std::thread::yield_now();
        } else if PAUSE {
            spin_hint();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::pin::allowed_cores;

    #[test]
    fn the_median_is_between_the_extremes() {
        let sample = FloorSample::of_batches(vec![3.0, 1.0, 2.0]);
        assert_eq!(sample, FloorSample { median_ns: 2.0, min_ns: 1.0, max_ns: 3.0 });
    }

    #[test]
    fn a_line_comes_back_as_often_as_it_was_sent() {
        let line = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| answer::<false>(&line));
            measure::<false>(&line, 60);
            assert_eq!(line.load(Ordering::Relaxed), 2 * 50, "one round in each of fifty batches");
            end(&line);
        });
        assert_eq!(line.load(Ordering::Relaxed), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn a_core_that_is_not_ours_is_refused() {
        let core = allowed_cores()[0];
        for (a, b) in [(core, 1 << 20), (1 << 20, core)] {
            assert!(matches!(round_trip_ns(a, b, 10), Err(PinError::NotAllowed { core: 0x10_0000, .. })));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn any_two_cores_can_be_measured_also_the_same_twice() {
        let cores = allowed_cores();
        let (first, last) = (cores[0], cores[cores.len() - 1]);
        for (a, b) in [(first, last), (first, first)] {
            let sample = round_trip_ns(a, b, 20).unwrap();
            assert!(sample.min_ns > 0.0 && sample.min_ns <= sample.median_ns, "{sample:?}");
        }
    }
}
