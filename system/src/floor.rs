//! The floor under every hand-off: one cache line bounced between two cores.
//!
//! No message can go to another core and come back faster than the line that carries it, so this is
//! what a ring's round trip is divided by. The figure belongs to the machine and to the moment: on
//! a virtual machine two cores may be neighbours now and far apart a minute later, so measure it
//! again beside every sample.
//!
//! Two threads that only wait for each other fall *in step*: every look of the one falls at the
//! same moment of the other's store. Orders do not come in step, so the same line is also bounced *out
//! of step* ([`out_of_step_ns`]), by threads that work for a pseudo-random time before each store.
//! That takes longer, near twice as long, and is what a message is to be measured by that comes
//! when it likes.
//!
//! One word, alone in its pair of lines. Even: the asker's turn; odd: the answerer's. The asker
//! stores the next odd number and waits for the even one above it. Both wait with or without the
//! processor's pause hint, as told: it changes the figure by up to a third, so it must be the one
//! that the compared ring waits with.

use crate::clock::{Clock, Monotonic};
use crate::pin::{PinError, pin_to};
use shm::sync::{AtomicU64, Ordering, spin_hint};
use std::hint::black_box;
use std::sync::mpsc;

/// How many round trips [`round_trip_ns`] is usually asked for: 2 ms between near cores, 6 to 10 ms
/// between far ones. Five times as many, in turn with these between near cores, had the same median
/// (65.4 and 65.3 ns, some 58 each; from 61.5 to 68.3 and from 60.5 to 69.0; AMD EPYC, 2 cores of a
/// virtual machine), and each run would begin and end so much later.
pub const DEFAULT_ROUNDS: u32 = 20_000;
/// How many [`out_of_step_ns`] is usually asked for: 5 ms, and as long again for the pauses alone.
pub const OUT_OF_STEP_ROUNDS: u32 = 4_000;
/// Turns of a pause, at most: half a microsecond in the mean, longer than the longest way of a
/// line, so that nothing of one message is still under way when the next comes. With pauses that
/// are as short as a line's way (255 turns), one line that two cores bounce is a third cheaper than
/// a line each way, between cores that are far from each other; with these they are alike.
const TURNS: u32 = 4095;
/// The batches that they are cut into; the median of the batches is the figure.
const BATCHES: u32 = 50;
/// Waiting longer than this means that the other thread does not run: let it (both may be on one
/// core).
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

/// Measures the floor between two cores: two new threads, pinned there, waiting with the pause
/// hint, which [`shm::idle::Spin`] gives now and then. Takes up to some 10 ms for
/// [`DEFAULT_ROUNDS`].
///
/// The same core twice is allowed and gives what handing over the core costs, which is thousands of
/// times more: ask for fewer rounds then.
///
/// # Errors
/// If one of the threads cannot be pinned.
pub fn round_trip_ns(core_a: u32, core_b: u32, rounds: u32) -> Result<FloorSample, PinError> {
    between(core_a, core_b, |line| measure::<true>(line, rounds), answer::<true>)
}

/// The same line out of step: each side works for a pseudo-random time before it stores
/// ([`Pauses`]). What that takes by itself is measured batch by batch, and taken off. Takes some 10
/// ms for [`OUT_OF_STEP_ROUNDS`].
///
/// # Errors
/// If one of the threads cannot be pinned.
pub fn out_of_step_ns(core_a: u32, core_b: u32, rounds: u32) -> Result<FloorSample, PinError> {
    let ask = |line: &AtomicU64| {
        let mut pauses = Pauses::of_asker();
        let trips = batches(rounds, |count| bounce::<true>(line, count, || pauses.pause()));
        let (mut asker, mut answerer) = (Pauses::of_asker(), Pauses::of_answerer());
        let alone = batches(rounds, |count| {
            each_ns(count, || {
                asker.pause();
                answerer.pause();
            })
        });
        FloorSample::of_batches(trips.iter().zip(alone).map(|(trip, alone)| trip - alone).collect())
    };
    let answer = |line: &AtomicU64| {
        let mut pauses = Pauses::of_answerer();
        answer_after::<true>(line, || pauses.pause());
    };
    between(core_a, core_b, ask, answer)
}

/// Pauses of pseudo-random lengths, half a microsecond in the mean, the same ones from each
/// beginning: a linear congruential generator with the factors of *Numerical Recipes*.
pub struct Pauses(u32);

impl Pauses {
    /// Those of the side that asks.
    pub const fn of_asker() -> Self {
        Self(1)
    }

    /// Those of the side that answers: other ones.
    pub const fn of_answerer() -> Self {
        Self(2)
    }

    /// The next one. A function of its own: the same instructions wherever it is called, so that
    /// what it takes can be taken off.
    #[inline(never)]
    pub fn pause(&mut self) {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The upper bits: the lower ones repeat soon.
        for turn in 0..(self.0 >> 16) & TURNS {
            black_box(turn);
        }
    }
}

/// A line between two new threads, pinned to these cores: one asks, and ends it, the other one
/// answers.
fn between(
    core_a: u32,
    core_b: u32,
    ask: impl FnOnce(&AtomicU64) -> FloorSample + Send,
    answer: impl FnOnce(&AtomicU64) + Send,
) -> Result<FloorSample, PinError> {
    let line = &CacheLine(AtomicU64::new(0)).0;
    let (pinned, is_pinned) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let result = pin_to(core_b);
            let goes_on = result.is_ok();
            // The receiver waits for this and nothing else.
            let _ = pinned.send(result);
            if goes_on {
                answer(line);
            }
        });
        let asker = scope.spawn(move || {
            is_pinned.recv().expect("the answering thread says whether it is pinned")?;
            let sample = pin_to(core_a).map(|()| ask(line));
            end(line);
            sample
        });
        asker.join().expect("bouncing a line does not panic")
    })
}

/// The asking side: some batches of round trips against [`answer`] on another core. `PAUSE`: wait
/// with the pause hint.
pub fn measure<const PAUSE: bool>(line: &AtomicU64, rounds: u32) -> FloorSample {
    FloorSample::of_batches(batches(rounds, |count| bounce::<PAUSE>(line, count, || {})))
}

/// What each batch of so many rounds says.
fn batches(rounds: u32, mut batch: impl FnMut(u32) -> f64) -> Vec<f64> {
    let count = BATCHES.min(rounds.max(1));
    (0..count).map(|_| batch((rounds / count).max(1))).collect()
}

/// Nanoseconds each of so many takes.
fn each_ns(count: u32, mut one: impl FnMut()) -> f64 {
    let start = Monotonic.now();
    for _ in 0..count {
        one();
    }
    (Monotonic.now() - start) as f64 / f64::from(count)
}

/// One batch of round trips, with that work before each; nanoseconds each.
#[inline(always)]
fn bounce<const PAUSE: bool>(line: &AtomicU64, rounds: u32, mut work: impl FnMut()) -> f64 {
    // Relaxed: our own turn, the word changes only when we change it.
    let mut turn = line.load(Ordering::Relaxed);
    each_ns(rounds, || {
        work();
        // Release and Acquire, below and in `answer_after`: what a ring needs to carry a message.
        line.store(turn + 1, Ordering::Release);
        turn += 2;
        wait::<PAUSE>(|| line.load(Ordering::Acquire) == turn);
    })
}

/// The answering side: sends the line back until [`end`]. The word must be zero at the start; it is
/// zero at the end.
pub fn answer<const PAUSE: bool>(line: &AtomicU64) {
    answer_after::<PAUSE>(line, || {});
}

/// The same, with that work before each answer.
#[inline(always)]
fn answer_after<const PAUSE: bool>(line: &AtomicU64, mut work: impl FnMut()) {
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
        work();
        line.store(turn + 1, Ordering::Release);
    }
}

/// Sends the answering side home, and waits until it has gone: the word may be used again.
pub fn end(line: &AtomicU64) {
    line.store(END, Ordering::Release);
    wait::<true>(|| line.load(Ordering::Acquire) == 0);
}

/// Polls until `done`; the way of waiting that the floor and whatever is compared with it have in
/// common.
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
    use crate::pin::allowed_cores;

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
    fn both_sides_work_before_each_of_their_stores_and_pauses_are_the_same_each_time() {
        let line = AtomicU64::new(0);
        let (mut asked, mut answered) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| answer_after::<true>(&line, || answered += 1));
            bounce::<true>(&line, 7, || asked += 1);
            end(&line);
        });
        assert_eq!((asked, answered), (7, 7), "none for the end");
        let lengths = |mut pauses: Pauses| {
            core::iter::repeat_with(move || {
                pauses.pause();
                (pauses.0 >> 16) & TURNS
            })
        };
        let asker: Vec<u32> = lengths(Pauses::of_asker()).take(1000).collect();
        assert!(lengths(Pauses::of_asker()).zip(&asker).all(|(one, other)| one == *other));
        assert!(lengths(Pauses::of_answerer()).zip(&asker).filter(|(one, other)| one == *other).count() < 10);
        let mean = asker.iter().sum::<u32>() / 1000;
        assert!((1900..2200).contains(&mean), "{mean}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn a_core_that_is_not_ours_is_refused() {
        let core = allowed_cores()[0];
        for (a, b) in [(core, 1 << 20), (1 << 20, core)] {
            for refused in [round_trip_ns(a, b, 10), out_of_step_ns(a, b, 10)] {
                assert!(matches!(refused, Err(PinError::NotAllowed { core: 0x10_0000, .. })));
            }
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
            let out_of_step = out_of_step_ns(a, b, 20).unwrap();
            assert!(out_of_step.min_ns <= out_of_step.median_ns, "{out_of_step:?}");
        }
    }
}
