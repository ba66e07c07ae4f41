//! Core-to-core round-trip time: one cache line bounced between two cores, the lower bound (floor)
//! of every hand-off.
//!
//! No message can travel to another core and back faster than the cache line that carries it, so
//! the round trip of a ring is divided by this time. The figure depends on the machine and on the
//! moment: on a virtual machine two cores may be adjacent now and far apart a minute later, so
//! measure it again next to every sample.
//!
//! Two threads that only wait for each other become *synchronized*: every poll of one falls at the
//! same moment of the other's store. Orders do not arrive synchronized, so the line is also bounced
//! *unsynchronized* ([`unsynchronized_ns`]), by threads that work for a pseudo-random time before
//! each store. That takes nearly twice as long, and is the reference for messages that arrive at
//! random times.
//!
//! One word, alone in its pair of cache lines, is even when the asker is next and odd when the
//! answerer is. The asker stores the next odd number and waits for the even one above it. Both wait
//! with the CPU's pause hint, which changes the figure by up to a third, as the compared rings do.
//!
//! Between far cores a line takes one of two times, by the page that it lies on ([`pages`]). One
//! line would be a bad sample, so a line is bounced in each of [`PAGES`] fresh pages, and the
//! figure is the median of the pages.

pub mod pages;

use crate::clock::{Clock, Monotonic};
use crate::pin::{PinError, pin_to};
use shm::memory::{AtomicWords, Region};
use shm::sync::{AtomicU64, Ordering, spin_hint};
use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The default number of cache-line round trips between two cores in one latency measurement. That
/// is 2 ms between near cores, 6 to 10 ms between far ones. Five times as many, alternated with
/// these between near cores, had the same median (65.4 and 65.3 ns, some 58 each; from 61.5 to 68.3
/// and from 60.5 to 69.0; AMD EPYC, 2 cores of a virtual machine), and would lengthen each run.
pub const DEFAULT_ROUNDS: u32 = 20_000;
/// The default number of cache-line round trips in a measurement whose threads work for random
/// times before each store. That is 5 ms, and 5 ms for the work alone.
pub const UNSYNCHRONIZED_ROUNDS: u32 = 4_000;
/// Maximum number of rounds of work: half a microsecond on average, longer than the slowest
/// transfer of a cache line, so that one message is finished when the next one starts. With work as
/// short as a transfer (255 rounds), one line that two far cores bounce is a third cheaper than one
/// line per direction; with this work they cost the same.
const MAX_WORK_ROUNDS: u32 = 4095;
/// Number of fresh memory pages in which a cache line is bounced between two cores; the result is
/// the median over the pages. Where a fifth of the pages are slow, and independent, the median is
/// one of them in 1 of 700 measurements.
pub const PAGES: usize = 16;
/// Number of batches in each page, whose result is the median of its batches.
const BATCHES: u32 = 3;
/// Number of batches of a line that is bounced alone ([`measure`]).
const LINE_BATCHES: u32 = 50;
/// Words between two of the pages, 512 KiB: the pages of one huge page of a host's memory are of
/// one kind, so 16 pages have at least four chances.
const PAGE_STRIDE: usize = 65_536;
/// After this many polls the other thread probably does not run: yield (both may be on one core).
const SPINS_BEFORE_YIELD: u32 = 20_000;
/// A measurement ends after this time, three times what far cores need, with the round trips made
/// so far: between busy cores each waits for a time slice of the scheduler, and all would take
/// minutes.
const MAX_TIME: Duration = Duration::from_millis(60);
/// The value that ends the answering side: odd, and never reached by counting.
const END: u64 = u64::MAX;

/// Returns the median of the times of measured batches, which must not be empty.
pub fn median(mut batches: Vec<f64>) -> f64 {
    batches.sort_by(f64::total_cmp);
    batches[(batches.len() - 1) / 2]
}

/// Words of fresh memory, one in each page that is bounced. All others stay unused, so each word is
/// alone in its two cache lines (the unit of the adjacent-line prefetcher).
struct FreshPages(AtomicWords);

impl FreshPages {
    /// Reserves and touches the pages as the segments of a run are. Where the system refuses that,
    /// they are heap memory.
    fn new(count: usize) -> Self {
        let len = count * PAGE_STRIDE;
        Self(Region::memfd("floor", len).unwrap_or_else(|_| Region::heap(len)).words())
    }

    fn word(&self, page: usize, offset: usize) -> &AtomicU64 {
        &self.0[page * PAGE_STRIDE + offset]
    }

    fn len(&self) -> usize {
        self.0.len() / PAGE_STRIDE
    }

    /// Iterates over a line of each page.
    fn lines(&self) -> impl Iterator<Item = &AtomicU64> {
        (0..self.len()).map(|page| self.word(page, 0))
    }
}

/// Measures the synchronized round trip of a cache line between two cores, in nanoseconds, with two
/// new pinned threads. They wait with the pause hint, which [`shm::idle::Spin`] gives now and then.
/// Takes up to about 15 ms for [`DEFAULT_ROUNDS`].
///
/// The same core twice is allowed and measures the cost of a context switch, which is thousands of
/// times higher: use fewer rounds then. Between busy cores, or once `stop` returns `true`, the
/// measurement is cut short.
pub fn round_trip_ns(
    core_a: u32,
    core_b: u32,
    rounds: u32,
    stop: impl Fn() -> bool + Sync,
) -> Result<f64, PinError> {
    let (pages, began) = (FreshPages::new(PAGES), Instant::now());
    let is_over = || stop() || began.elapsed() > MAX_TIME;
    let ask = || ask_in_turn(&pages, rounds, &is_over, || {});
    let answer = || pages.lines().for_each(answer);
    let (batches, ()) =
        with_pinned_pair(core_a, core_b, ask, answer, || pages.lines().for_each(stop_answering))?;
    Ok(median_of_pages(&batches))
}

/// Measures the unsynchronized round trip in nanoseconds: each thread works for a pseudo-random
/// time before it stores ([`PseudoRandomWork`]). Each side then measures its work alone, on its own
/// core, since two cores may run at different frequencies; both are subtracted batch by batch.
/// Takes about 10 ms for [`UNSYNCHRONIZED_ROUNDS`]. Is cut short as [`round_trip_ns`] is.
pub fn unsynchronized_ns(
    core_a: u32,
    core_b: u32,
    rounds: u32,
    stop: impl Fn() -> bool + Sync,
) -> Result<f64, PinError> {
    let (pages, began) = (FreshPages::new(PAGES), Instant::now());
    let is_over = || stop() || began.elapsed() > MAX_TIME;
    // In the batches of the pages, one after the other.
    let alone = |mut work: PseudoRandomWork| {
        batches(rounds, PAGES as u32 * BATCHES, &is_over, |count| each_ns(count, || work.run()))
    };
    let ask = || {
        let mut work = PseudoRandomWork::for_asker();
        let trips = ask_in_turn(&pages, rounds, &is_over, || work.run());
        (trips, alone(PseudoRandomWork::for_asker()))
    };
    let answer = || {
        let mut work = PseudoRandomWork::for_answerer();
        pages.lines().for_each(|line| answer_after(line, || work.run()));
        alone(PseudoRandomWork::for_answerer())
    };
    let stop_all = || pages.lines().for_each(stop_answering);
    let ((trips, asker), answerer) = with_pinned_pair(core_a, core_b, ask, answer, stop_all)?;
    let mut works = asker.iter().zip(answerer).map(|(asker, answerer)| asker + answerer);
    let without_work =
        |page: Vec<f64>| page.into_iter().zip(works.by_ref()).map(|(trip, work)| trip - work).collect();
    let differences: Vec<Vec<f64>> = trips.into_iter().map(without_work).collect();
    Ok(median_of_pages(&differences))
}

/// Bounces a line in each page, one page after the other, with `work` before each round trip, and
/// ends the answering side of each. Returns the batches of each page, without the pages that
/// `is_over` left out.
fn ask_in_turn(
    pages: &FreshPages,
    rounds: u32,
    is_over: &dyn Fn() -> bool,
    mut work: impl FnMut(),
) -> Vec<Vec<f64>> {
    let of_page = rounds / pages.len() as u32;
    let mut by_page = Vec::new();
    for line in pages.lines() {
        if by_page.is_empty() || !is_over() {
            by_page.push(batches(of_page, BATCHES, is_over, |count| bounce(line, count, &mut work, is_over)));
        }
        stop_answering(line);
    }
    by_page
}

/// Returns the median of the pages' medians. Pages without a batch do not count.
fn median_of_pages(by_page: &[Vec<f64>]) -> f64 {
    median(by_page.iter().filter(|page| !page.is_empty()).map(|page| median(page.clone())).collect())
}

/// CPU work of pseudo-random duration, half a microsecond on average, reproducible from its seed. A
/// linear congruential generator with the factors of *Numerical Recipes*.
pub struct PseudoRandomWork(u32);

impl PseudoRandomWork {
    /// Creates the pseudo-random delays of the thread that starts each round trip of a cache line
    /// between cores.
    pub const fn for_asker() -> Self {
        Self(1)
    }

    /// Creates the pseudo-random delays of the thread that returns the cache line in a round trip
    /// between cores.
    pub const fn for_answerer() -> Self {
        Self(2)
    }

    /// Keeps the CPU computing for the next pseudo-random duration. Not inlined: its instructions
    /// are the same for every caller, so that its time can be subtracted.
    #[inline(never)]
    pub fn run(&mut self) {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // The upper bits: the lower ones have a short period.
        for turn in 0..(self.0 >> 16) & MAX_WORK_ROUNDS {
            black_box(turn);
        }
    }
}

/// Runs an asking and an answering side in two new threads pinned to these cores, and returns the
/// result of each. `ask` ends with [`stop_answering`] for each line; `stop` does only that, where
/// the asking side may not run.
fn with_pinned_pair<A: Send, B: Send>(
    core_a: u32,
    core_b: u32,
    ask: impl FnOnce() -> A + Send,
    answer: impl FnOnce() -> B + Send,
    stop: impl FnOnce() + Send,
) -> Result<(A, B), PinError> {
    let (pinned, is_pinned) = mpsc::channel();
    std::thread::scope(|scope| {
        let answerer = scope.spawn(move || {
            let result = pin_to(core_b);
            // The receiver waits for this message.
            let _ = pinned.send(result.clone());
            result.map(|()| answer())
        });
        let asker = scope.spawn(move || {
            is_pinned.recv().expect("the answering thread reports whether it is pinned")?;
            let asker_result = pin_to(core_a).map(|()| ask());
            if asker_result.is_err() {
                stop();
            }
            asker_result
        });
        let asker_result = asker.join().expect("bouncing a line does not panic")?;
        Ok((asker_result, answerer.join().expect("bouncing a line does not panic")?))
    })
}

/// Measures how long a cache line takes to another core and back, in nanoseconds, in the thread
/// that starts each round trip. [`answer`] runs in the other thread.
pub fn measure(line: &AtomicU64, rounds: u32) -> f64 {
    median(batches(rounds, LINE_BATCHES, &|| false, |count| bounce(line, count, || {}, &|| false)))
}

/// Runs `rounds` round trips in at most `count` batches, at least one, until `is_over`. Returns the
/// result of each.
fn batches(
    rounds: u32,
    count: u32,
    is_over: &dyn Fn() -> bool,
    mut batch: impl FnMut(u32) -> f64,
) -> Vec<f64> {
    let count = count.min(rounds.max(1));
    let mut made = vec![batch((rounds / count).max(1))];
    made.extend((1..count).take_while(|_| !is_over()).map(|_| batch((rounds / count).max(1))));
    made
}

fn each_ns(count: u32, mut operation: impl FnMut()) -> f64 {
    let start = Monotonic.now();
    for _ in 0..count {
        operation();
    }
    (Monotonic.now() - start) as f64 / f64::from(count)
}

/// Runs one batch of round trips, with `work` before each. Returns the nanoseconds per round trip,
/// of those begun if `is_over` ends the batch.
#[inline(always)]
fn bounce(line: &AtomicU64, rounds: u32, mut work: impl FnMut(), is_over: &dyn Fn() -> bool) -> f64 {
    // Relaxed: our own turn, the word changes only when we change it.
    let first = line.load(Ordering::Relaxed);
    let end = first + 2 * u64::from(rounds);
    let (mut turn, start) = (first, Monotonic.now());
    while turn < end {
        work();
        // Release and Acquire, below and in `answer_after`: what a ring needs to carry a message.
        line.store(turn + 1, Ordering::Release);
        turn += 2;
        if !wait_unless(|| line.load(Ordering::Acquire) == turn, is_over) {
            break;
        }
    }
    (Monotonic.now() - start) as f64 / ((turn - first) / 2).max(1) as f64
}

/// Answers core-to-core round trips through `line`, on the other core, until [`stop_answering`].
/// The word must be zero at the start, and is zero at the end.
pub fn answer(line: &AtomicU64) {
    answer_after(line, || {});
}

/// Runs the answering side with `work` before each answer.
#[inline(always)]
fn answer_after(line: &AtomicU64, mut work: impl FnMut()) {
    loop {
        let mut turn = 0;
        wait(|| {
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

/// Stops the thread that runs [`answer`] on `line`, and waits until it has returned; then `line`
/// can be used for another measurement.
pub fn stop_answering(line: &AtomicU64) {
    loop {
        line.store(END, Ordering::Release);
        let mut left = END;
        wait(|| {
            left = line.load(Ordering::Acquire);
            left != END
        });
        // The answer to a round trip that was cut short may have replaced the end mark.
        if left == 0 {
            return;
        }
    }
}

/// Polls until `done` returns `true`, with the CPU's pause hint. The floor and the rings compared
/// with it wait in this way.
#[inline(always)]
pub fn wait(done: impl FnMut() -> bool) {
    wait_unless(done, &|| false);
}

/// Polls as [`wait`] does, until `done` or, where the other thread probably does not run,
/// `is_over`. Returns `true` if `done` ended it.
#[inline(always)]
fn wait_unless(mut done: impl FnMut() -> bool, is_over: &dyn Fn() -> bool) -> bool {
    let mut spins = 0;
    while !done() {
        spins += 1;
        if spins <= SPINS_BEFORE_YIELD {
            spin_hint();
        } else if is_over() {
            return false;
        } else {
            std::thread::yield_now();
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin::allowed_cores;

    #[test]
    fn answerer_returns_each_round_trip() {
        assert_eq!(median(vec![3.0, 1.0, 2.0, 9.0]), 2.0);
        let line = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| answer(&line));
            measure(&line, 60);
            assert_eq!(line.load(Ordering::Relaxed), 2 * 50, "one round in each of fifty batches");
            stop_answering(&line);
        });
        assert_eq!(line.load(Ordering::Relaxed), 0);
    }

    /// While cores are far, a fifth of the pages take nearly twice as long.
    #[test]
    fn slow_pages_are_not_the_figure() {
        let page =
            |page: usize| if page.is_multiple_of(5) { vec![778.0; 3] } else { vec![439.0, 9_000.0, 441.0] };
        let pages: Vec<Vec<f64>> = (0..PAGES).map(page).collect();
        assert_eq!(median_of_pages(&pages), 441.0);
        assert_eq!(median_of_pages(&[&pages[..1], &[Vec::new(), Vec::new()]].concat()), 778.0);
        assert_eq!(median(pages[0].clone()), 778.0, "what a line in the first page alone would say");
    }

    #[test]
    fn unsynchronized_sides_work_before_each_store() {
        let line = AtomicU64::new(0);
        let (mut asked, mut answered) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| answer_after(&line, || answered += 1));
            bounce(&line, 7, || asked += 1, &|| false);
            stop_answering(&line);
        });
        assert_eq!((asked, answered), (7, 7), "no work for the end mark");
        let lengths = |mut pauses: PseudoRandomWork| {
            core::iter::repeat_with(move || {
                pauses.run();
                (pauses.0 >> 16) & MAX_WORK_ROUNDS
            })
        };
        let asker: Vec<u32> = lengths(PseudoRandomWork::for_asker()).take(1000).collect();
        assert!(lengths(PseudoRandomWork::for_asker()).zip(&asker).all(|(length, other)| length == *other));
        assert!(
            lengths(PseudoRandomWork::for_answerer())
                .zip(&asker)
                .filter(|(length, other)| length == *other)
                .count()
                < 10
        );
        let mean = asker.iter().sum::<u32>() / 1000;
        assert!((1900..2200).contains(&mean), "{mean}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn forbidden_core_is_refused() {
        let core = allowed_cores()[0];
        for (a, b) in [(core, 1 << 20), (1 << 20, core)] {
            for refused in [round_trip_ns(a, b, 10, || false), unsynchronized_ns(a, b, 10, || false)] {
                assert!(matches!(refused, Err(PinError::NotAllowed { core: 0x10_0000, .. })));
            }
        }
    }

    #[test]
    fn late_answer_does_not_hold_up_the_end() {
        let (line, stop) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let asker = scope.spawn(|| {
                bounce(&line, 1000, || {}, &|| stop.load(Ordering::Relaxed) == 1);
                stop.store(2, Ordering::Relaxed);
                stop_answering(&line);
            });
            wait(|| line.load(Ordering::Acquire) == 1);
            stop.store(1, Ordering::Relaxed);
            wait(|| stop.load(Ordering::Relaxed) == 2 && line.load(Ordering::Acquire) == END);
            // The answer to the round trip that was cut short replaces the end mark.
            line.store(2, Ordering::Release);
            answer(&line);
            asker.join().unwrap();
        });
        assert_eq!(line.load(Ordering::Relaxed), 0);
    }

    /// One core for both sides: without a limit, two million context switches each.
    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn long_or_stopped_measurement_is_cut_short() {
        let core = allowed_cores()[0];
        let began = Instant::now();
        for stop in [true, false] {
            assert!(round_trip_ns(core, core, 1 << 20, || stop).unwrap() > 0.0);
            unsynchronized_ns(core, core, 1 << 20, || stop).unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn any_core_pair_can_be_measured() {
        let cores = allowed_cores();
        let (first, last) = (cores[0], cores[cores.len() - 1]);
        for (a, b) in [(first, last), (first, first)] {
            assert!(round_trip_ns(a, b, 20, || false).unwrap() > 0.0);
            unsynchronized_ns(a, b, 20, || false).unwrap();
        }
    }
}
