//! The orchestrator's calibrated extra work for each order: `--work DUR`.
//!
//! Real engines do something with an order: a book, a margin model, a journal. The stand-in is a chain of dependent
//! reads and writes over a small table (32 KiB, the size of a first-level cache): it touches memory, cannot be
//! overlapped with itself and takes the same number of rounds for every order. Rounds, not time, are fixed: a loop
//! that waits for a clock would hide that the work got slower.

use shm::clock::{Clock, Monotonic, Timebase};
use std::hint::black_box;

const TABLE_WORDS: usize = 4096;
/// Every how many orders the work's real cost is measured.
const SAMPLE_EVERY: u32 = 64;

/// The work, its table, and what it really cost.
pub struct Work {
    rounds: u64,
    table: Box<[u64; TABLE_WORDS]>,
    place: u64,
    until_sample: u32,
    sampled_ticks: u64,
    samples: u64,
    ns_per_tick: f64,
}

impl Work {
    /// Work of that many rounds an order; 0 is none.
    pub fn new(rounds: u64) -> Self {
        let table = Box::new(std::array::from_fn(|i| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        Self { rounds, table, place: 1, until_sample: 0, sampled_ticks: 0, samples: 0, ns_per_tick: 1.0 }
    }

    #[inline(never)]
    fn rounds(&mut self, rounds: u64) {
        let mut x = self.place;
        for _ in 0..rounds {
            let word = &mut self.table[(x >> 52) as usize];
            *word = word.wrapping_add(x);
            // A multiply and an add of what was read: the next place depends on it.
            x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(*word | 1);
        }
        self.place = black_box(x);
    }

    /// Does the work of one order that was received at `received` ticks (the stamp t2, just taken).
    #[inline]
    pub fn perform(&mut self, clock: &impl Clock, received: u64, time: Timebase) {
        if self.rounds == 0 {
            return;
        }
        self.rounds(self.rounds);
        if self.until_sample == 0 {
            self.until_sample = SAMPLE_EVERY;
            self.sampled_ticks += clock.now().saturating_sub(received);
            self.samples += 1;
            self.ns_per_tick = time.ns_per_tick;
        }
        self.until_sample -= 1;
    }

    /// The mean of the sampled costs, in nanoseconds times 1000; 0 without samples.
    pub fn achieved_picos(&self) -> u64 {
        let mean_ticks = self.sampled_ticks as f64 / self.samples.max(1) as f64;
        (mean_ticks * self.ns_per_tick * 1000.0) as u64
    }

    /// Finds how many rounds take `wanted_ns` on the core that this runs on now, and what they took: the median of
    /// repeated batches, so that an interruption does not count.
    pub fn calibrate(wanted_ns: u64) -> (u64, f64) {
        if wanted_ns == 0 {
            return (0, 0.0);
        }
        let mut work = Self::new(0);
        let mut cost_ns = |rounds: u64, orders: u32| {
            let mut costs: Vec<f64> = (0..15)
                .map(|_| {
                    let start = Monotonic.now();
                    (0..orders).for_each(|_| work.rounds(rounds));
                    (Monotonic.now() - start) as f64 / f64::from(orders)
                })
                .collect();
            costs.sort_by(f64::total_cmp);
            costs[7]
        };
        // From a first guess towards the target; the cost is linear in the rounds but for a constant of a few ns.
        let mut rounds = wanted_ns.max(1);
        for _ in 0..6 {
            let cost = cost_ns(rounds, 64).max(0.1);
            rounds = ((rounds as f64 * wanted_ns as f64 / cost).round() as u64).max(1);
        }
        (rounds, cost_ns(rounds, 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::clock::Virtual;

    #[test]
    fn no_work_is_no_work() {
        assert_eq!(Work::calibrate(0), (0, 0.0));
        let mut work = Work::new(0);
        work.perform(&Virtual::default(), 0, Timebase { start_ticks: 0, ns_per_tick: 1.0 });
        assert_eq!((work.achieved_picos(), work.place), (0, 1));
    }

    #[test]
    fn more_is_more_rounds() {
        let (short, _) = Work::calibrate(500);
        let (long, _) = Work::calibrate(50_000);
        assert!(long > short, "{long} rounds for a hundred times the work of {short}");
    }

    #[test]
    fn the_cost_is_sampled() {
        let clock = Virtual::default();
        clock.set(300);
        let mut work = Work::new(10);
        (0..200).for_each(|_| work.perform(&clock, 100, Timebase { start_ticks: 0, ns_per_tick: 0.5 }));
        assert_eq!(work.achieved_picos(), 100_000, "200 ticks of half a nanosecond");
    }
}
