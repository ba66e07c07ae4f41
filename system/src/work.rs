//! Computation that takes a given time: the orchestrator's extra work for each order, `--work DUR`.
//!
//! A stand-in for an order book, a margin model or the like: a chain of dependent reads and writes
//! over a table of 32 KiB. It runs until its time is over, because a fixed number of rounds takes
//! up to three times as long at 20,000 orders per second as in a tight loop: table and code are
//! cold then. Time in which the thread did not run does not count.
//!
//! The overhead outside the loop (its entry, and the mispredicted exit) is measured on some of the
//! orders, and the loop's target is reduced by it. The same measurement gives the achieved time.

use crate::clock::{Clock, Timebase};
use std::hint::black_box;

const TABLE_WORDS: usize = 4096;
/// The first orders are all measured, to calibrate the target.
const FIRST_SAMPLES: u64 = 64;
const SAMPLE_EVERY: u32 = 16;
/// The fraction of an error by which the target is corrected.
const GAIN: f64 = 1.0 / 16.0;
/// If two reads of the clock are further apart than this, the thread did not run in between; in
/// nanoseconds.
const INTERRUPTED_NS: u64 = 1_000;

/// The engine's extra computation of a configured duration for each order, with its calibration and
/// measured cost.
pub struct TimedWork {
    wanted_ns: u64,
    table: Box<[u64; TABLE_WORDS]>,
    state: u64,
    /// The target of the loop, in ticks.
    target_ticks: f64,
    /// [`INTERRUPTED_NS`] in ticks.
    interrupted: u64,
    until_sample: u32,
    samples: u64,
    sampled_ticks: f64,
    ns_per_tick: f64,
}

impl Default for TimedWork {
    /// Work of duration 0.
    fn default() -> Self {
        Self::new(0)
    }
}

impl TimedWork {
    /// Creates the computation of `wanted_ns` nanoseconds for each order; 0 disables it.
    pub fn new(wanted_ns: u64) -> Self {
        // A table of zeros costs nothing, and without work nobody reads it.
        let mut table = vec![0; TABLE_WORDS];
        if wanted_ns > 0 {
            (0..).zip(&mut table).for_each(|(i, word)| *word = u64::wrapping_mul(i, 0x9E37_79B9_7F4A_7C15));
        }
        let table = table.try_into().expect("as many words");
        Self {
            wanted_ns,
            table,
            state: 1,
            target_ticks: 0.0,
            interrupted: 0,
            until_sample: 0,
            samples: 0,
            sampled_ticks: 0.0,
            ns_per_tick: 1.0,
        }
    }

    /// Keeps the CPU computing for the configured duration, once for each order.
    #[inline]
    pub fn perform(&mut self, clock: &impl Clock, time: Timebase) {
        if self.wanted_ns == 0 {
            return;
        }
        if self.until_sample == 0 {
            self.perform_measured(clock, time);
        } else {
            self.until_sample -= 1;
            self.work(clock);
        }
    }

    /// Works until the time is over. Returns the number of ticks in which the thread did not run.
    #[inline(never)]
    fn work(&mut self, clock: &impl Clock) -> u64 {
        let mut x = self.state;
        let (mut last, mut lost) = (clock.peek(), 0);
        let mut until = last.saturating_add(self.target_ticks as u64);
        // A round takes at least a nanosecond: the loop ends even if the clock does not advance, as
        // in a simulation.
        for _ in 0..self.wanted_ns {
            let now = clock.peek();
            let gap = now.saturating_sub(last);
            if gap > self.interrupted {
                lost += gap;
                until = until.saturating_add(gap);
            }
            if now >= until {
                break;
            }
            last = now;
            let word = &mut self.table[(x >> 52) as usize];
            *word = word.wrapping_add(x);
            // A multiply and an add of the word that was read: the next index depends on it.
            x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(*word | 1);
        }
        self.state = black_box(x);
        lost
    }

    /// Works, and measures the time from outside the loop.
    #[cold]
    #[inline(never)]
    fn perform_measured(&mut self, clock: &impl Clock, time: Timebase) {
        let wanted = self.wanted_ns as f64 / time.ns_per_tick;
        if self.samples == 0 {
            self.target_ticks = wanted;
            self.interrupted = time.ticks(INTERRUPTED_NS);
            self.ns_per_tick = time.ns_per_tick;
        }
        // The interval between two clock reads includes one read, whose current cost is measured
        // and subtracted.
        let read_ticks = clock.now();
        let before = clock.now();
        let lost = self.work(clock);
        let elapsed = clock.now().saturating_sub(before).saturating_sub(lost) as f64;
        let elapsed = elapsed - before.saturating_sub(read_ticks) as f64;
        self.until_sample = if self.samples < FIRST_SAMPLES { 0 } else { SAMPLE_EVERY - 1 };
        // An interruption outside of the loop invalidates the sample.
        if (elapsed - wanted).abs() < (self.interrupted as f64).max(wanted / 4.0) {
            self.samples += 1;
            self.sampled_ticks += elapsed;
            self.target_ticks = (self.target_ticks + GAIN * (wanted - elapsed)).clamp(0.0, wanted);
        }
    }

    /// Returns the mean measured duration of the computation in picoseconds; 0 without samples.
    pub fn achieved_picos(&self) -> u64 {
        let mean_ticks = self.sampled_ticks / self.samples.max(1) as f64;
        (mean_ticks * self.ns_per_tick * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 0.5 };

    /// A clock that advances with each read, and by ten thousand times as much at an interruption.
    #[derive(Clone, Default)]
    struct AdvancingClock {
        time: VirtualClock,
        /// Ticks per read.
        read_ticks: u64,
        /// Number of reads between interruptions; 0: none.
        interrupted_every: u64,
    }

    impl Clock for AdvancingClock {
        fn now(&self) -> u64 {
            let reads = self.time.now() / self.read_ticks;
            let is_interrupted = self.interrupted_every > 0 && reads % self.interrupted_every == 1;
            self.time.set(self.time.now() + self.read_ticks * if is_interrupted { 10_000 } else { 1 });
            self.time.now()
        }
    }

    /// Returns the mean time of an order in ticks without interruptions, and that reported.
    fn mean_work_ticks(wanted_ns: u64, clock: &AdvancingClock) -> (f64, f64) {
        let mut work = TimedWork::new(wanted_ns);
        let mut sum = 0;
        for _ in 0..2_000 {
            let before = clock.time.now();
            work.perform(clock, TIME);
            let elapsed = clock.time.now() - before;
            sum += if elapsed > 100_000 { 2 * wanted_ns } else { elapsed };
        }
        (sum as f64 / 2_000.0, work.achieved_picos() as f64 / 1000.0 / TIME.ns_per_tick)
    }

    #[test]
    fn zero_work_takes_no_time() {
        let mut work = TimedWork::new(0);
        work.perform(&VirtualClock::default(), TIME);
        assert_eq!((work.achieved_picos(), work.state), (0, 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of rounds: minutes there")]
    fn work_takes_requested_time_at_any_round_cost() {
        for read_ticks in [7, 20, 35] {
            for wanted_ns in [100, 500, 1_500] {
                let clock = AdvancingClock { read_ticks, ..AdvancingClock::default() };
                let (elapsed, reported) = mean_work_ticks(wanted_ns, &clock);
                let wanted = 2.0 * wanted_ns as f64;
                assert!(
                    (reported / wanted - 1.0).abs() < 0.05,
                    "{wanted} ticks requested, {reported} reported, {read_ticks} per read"
                );
                // Measuring costs three reads on one order of sixteen, and on the first.
                assert!(
                    (elapsed / wanted - 1.0).abs() < 0.1,
                    "{wanted} ticks requested, {elapsed} taken, {read_ticks} per read"
                );
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of rounds: minutes there")]
    fn preempted_time_does_not_count_as_work() {
        let clock = AdvancingClock { read_ticks: 20, interrupted_every: 777, ..AdvancingClock::default() };
        let (_, reported) = mean_work_ticks(500, &clock);
        assert!((reported / 1_000.0 - 1.0).abs() < 0.05, "{reported}");
    }

    #[test]
    fn work_ends_if_clock_does_not_advance() {
        let mut work = TimedWork::new(500);
        work.perform(&VirtualClock::default(), TIME);
        assert_ne!(work.state, 1);
    }
}
