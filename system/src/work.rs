//! Computation that takes a given time: the orchestrator's extra work for each order, `--work DUR`.
//!
//! A stand-in for a book, a margin model or the like: a chain of dependent reads and writes over a
//! table of 32 KiB. It runs until the clock says that its time is up, because a fixed number of
//! rounds takes up to three times as long at 20,000 orders a second as in a tight loop: table and
//! code are cold then. Time in which the thread did not run does not count.
//!
//! What the loop cannot see (its entry, and the mispredicted exit) is measured from outside on some
//! of the orders, and the loop aims lower by that. The same measurement gives what was achieved.

use crate::clock::{Clock, Timebase};
use std::hint::black_box;

const TABLE_WORDS: usize = 4096;
/// The first orders are all measured, to find what to aim at.
const FIRST_SAMPLES: u64 = 64;
const SAMPLE_EVERY: u32 = 16;
/// The share of an error by which the aim is corrected.
const GAIN: f64 = 1.0 / 16.0;
/// Between two reads of the clock that are further apart, the thread did not run; in nanoseconds.
const INTERRUPTED_NS: u64 = 1_000;

/// The work, its table, and what it really cost.
pub struct Work {
    wanted_ns: u64,
    table: Box<[u64; TABLE_WORDS]>,
    place: u64,
    /// What the loop is told to take, in ticks.
    aim: f64,
    /// [`INTERRUPTED_NS`] in ticks.
    interrupted: u64,
    until_sample: u32,
    samples: u64,
    sampled_ticks: f64,
    ns_per_tick: f64,
}

impl Default for Work {
    /// No work.
    fn default() -> Self {
        Self::new(0)
    }
}

impl Work {
    /// Work of that many nanoseconds an order; 0 is none.
    pub fn new(wanted_ns: u64) -> Self {
        let table = Box::new(std::array::from_fn(|i| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Self {
            wanted_ns,
            table,
            place: 1,
            aim: 0.0,
            interrupted: 0,
            until_sample: 0,
            samples: 0,
            sampled_ticks: 0.0,
            ns_per_tick: 1.0,
        }
    }

    /// Does the work of one order.
    #[inline]
    pub fn perform(&mut self, clock: &impl Clock, time: Timebase) {
        if self.wanted_ns == 0 {
            return;
        }
        if self.until_sample == 0 {
            self.measured(clock, time);
        } else {
            self.until_sample -= 1;
            self.work(clock);
        }
    }

    /// Works until the time is up; returns for how many ticks the thread did not run meanwhile.
    #[inline(never)]
    fn work(&mut self, clock: &impl Clock) -> u64 {
        let mut x = self.place;
        let (mut last, mut lost) = (clock.peek(), 0);
        let mut until = last.saturating_add(self.aim as u64);
        // No round takes less than a nanosecond: this ends also where the clock stands still, as in
        // a simulation.
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
            // A multiply and an add of what was read: the next place depends on it.
            x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(*word | 1);
        }
        self.place = black_box(x);
        lost
    }

    /// Works, and measures from outside what that takes.
    #[cold]
    #[inline(never)]
    fn measured(&mut self, clock: &impl Clock, time: Timebase) {
        let wanted = self.wanted_ns as f64 / time.ns_per_tick;
        if self.samples == 0 {
            self.aim = wanted;
            self.interrupted = time.ticks(INTERRUPTED_NS);
            self.ns_per_tick = time.ns_per_tick;
        }
        // The interval between two looks holds one look: what that costs here and now is measured
        // beside it.
        let look = clock.now();
        let before = clock.now();
        let lost = self.work(clock);
        let took = clock.now().saturating_sub(before).saturating_sub(lost) as f64;
        let took = took - before.saturating_sub(look) as f64;
        self.until_sample = if self.samples < FIRST_SAMPLES { 0 } else { SAMPLE_EVERY - 1 };
        // Interrupted outside of the loop: says nothing about the work.
        if (took - wanted).abs() < (self.interrupted as f64).max(wanted / 4.0) {
            self.samples += 1;
            self.sampled_ticks += took;
            self.aim = (self.aim + GAIN * (wanted - took)).clamp(0.0, wanted);
        }
    }

    /// The mean of the measured costs, in nanoseconds times 1000; 0 without samples.
    pub fn achieved_picos(&self) -> u64 {
        let mean_ticks = self.sampled_ticks / self.samples.max(1) as f64;
        (mean_ticks * self.ns_per_tick * 1000.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Virtual;

    const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 0.5 };

    /// A clock that goes on by itself; looking at it takes a while, and now and then ten thousand
    /// times as long.
    #[derive(Clone, Default)]
    struct Passing {
        time: Virtual,
        /// Ticks that a look takes.
        look: u64,
        /// Every how many looks the thread is interrupted; 0: never.
        interrupted_every: u64,
    }

    impl Clock for Passing {
        fn now(&self) -> u64 {
            let looks = self.time.now() / self.look;
            let is_interrupted = self.interrupted_every > 0 && looks % self.interrupted_every == 1;
            self.time.set(self.time.now() + self.look * if is_interrupted { 10_000 } else { 1 });
            self.time.now()
        }
        fn peek(&self) -> u64 {
            self.now()
        }
    }

    /// What an order took in the mean by that clock, in ticks without interruptions, and what the
    /// work says.
    fn took(wanted_ns: u64, clock: &Passing) -> (f64, f64) {
        let mut work = Work::new(wanted_ns);
        let mut sum = 0;
        for _ in 0..2_000 {
            let before = clock.time.now();
            work.perform(clock, TIME);
            let took = clock.time.now() - before;
            sum += if took > 100_000 { 2 * wanted_ns } else { took };
        }
        (sum as f64 / 2_000.0, work.achieved_picos() as f64 / 1000.0 / TIME.ns_per_tick)
    }

    #[test]
    fn no_work_is_no_work() {
        let mut work = Work::new(0);
        work.perform(&Virtual::default(), TIME);
        assert_eq!((work.achieved_picos(), work.place), (0, 1));
    }

    #[test]
    fn work_takes_what_was_asked_whatever_a_round_costs() {
        for look in [7, 20, 35] {
            for wanted_ns in [100, 500, 1_500] {
                let clock = Passing { look, ..Passing::default() };
                let (took, said) = took(wanted_ns, &clock);
                let wanted = 2.0 * wanted_ns as f64;
                assert!(
                    (said / wanted - 1.0).abs() < 0.05,
                    "{wanted} ticks asked, {said} said: {look} a look"
                );
                // Measuring costs three looks on one order of sixteen, and on the first.
                assert!(
                    (took / wanted - 1.0).abs() < 0.1,
                    "{wanted} ticks asked, {took} taken: {look} a look"
                );
            }
        }
    }

    #[test]
    fn time_in_which_the_thread_did_not_run_is_no_work() {
        let clock = Passing { look: 20, interrupted_every: 777, ..Passing::default() };
        let (_, said) = took(500, &clock);
        assert!((said / 1_000.0 - 1.0).abs() < 0.05, "{said}");
    }

    #[test]
    fn it_ends_where_the_clock_stands_still() {
        let mut work = Work::new(500);
        work.perform(&Virtual::default(), TIME);
        assert_ne!(work.place, 1);
    }
}
