//! Stalls: times in which orders waited in a hand-off for far longer than usual.
//!
//! Every order whose slowest stage exceeded the threshold contributes the interval of that stage;
//! overlapping intervals are one stall. One pause of one thread appears as one stall with all the
//! orders that it delayed.

use super::slowest_from_due;
use crate::OrderRow;
use crate::figures::Measure;
use crate::figures::to_ns;
use serde::{Deserialize, Serialize};

const MAX_LISTED: usize = 12;
/// Minimum threshold: a faster hand-off is not a stall, however fast the others were.
const MIN_STALL_NS: u64 = 100_000;
/// Threshold relative to the median of rt_venue.
const STALL_FACTOR: u64 = 10;
/// Intervals are merged at this number, so that memory does not grow with the orders of a bad run.
const COMPACT_AT: usize = 1 << 18;

/// Returns the minimum length of a stall in nanoseconds, given the run's median rt_venue.
pub(super) fn threshold_ns(median_ns: u64) -> u64 {
    median_ns.saturating_mul(STALL_FACTOR).max(MIN_STALL_NS)
}

/// A stall: a time in which orders spent more than 100 µs, and more than ten times the median
/// rt_venue, in one stage. The wait before an order was sent counts as a stage here, the time at
/// the venue does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Start of the stall, in nanoseconds from the start of the schedule.
    pub at_ns: u64,
    /// Length of the stall, in nanoseconds.
    pub length_ns: u64,
    /// Number of orders that waited in the stalled hand-off.
    pub orders: u64,
    /// Longest wait of an order, in nanoseconds.
    pub worst_ns: u64,
    /// Stage of the longest wait: the name of a measure; `slip` is a late sender.
    pub stage: String,
}

#[derive(Clone, Copy, Debug)]
struct StalledInterval {
    from: u64,
    to: u64,
    orders: u64,
    worst: u64,
    stage: Measure,
}

/// A collector of stalls: times in which orders spent longer than a threshold in one stage.
#[derive(Debug)]
pub(super) struct Stalls {
    threshold: u64,
    found: Vec<StalledInterval>,
    compact_at: usize,
}

impl Stalls {
    /// Creates a collector of stalls; an order whose slowest stage took more than `threshold` ticks
    /// is part of a stall. Orders whose slow stages overlap in time form one stall.
    pub fn new(threshold: u64) -> Self {
        Self { threshold, found: Vec::new(), compact_at: COMPACT_AT }
    }

    /// Records an order's slowest stage, which may be part of a stall.
    #[inline]
    pub fn record(&mut self, row: &OrderRow) {
        let (from, length, stage) = slowest_from_due(row);
        if length > self.threshold {
            self.add(StalledInterval { from, to: from + length, orders: 1, worst: length, stage });
        }
    }

    fn add(&mut self, interval: StalledInterval) {
        self.found.push(interval);
        if self.found.len() >= self.compact_at {
            self.compact();
            // Disjoint stalls cannot be merged: raise the limit.
            self.compact_at = (self.found.len() * 2).max(COMPACT_AT);
        }
    }

    /// Merges overlapping intervals and sorts them by time.
    fn compact(&mut self) {
        self.found.sort_unstable_by_key(|interval| interval.from);
        self.found.dedup_by(|next, kept| {
            let overlaps = next.from <= kept.to;
            if overlaps {
                kept.to = kept.to.max(next.to);
                kept.orders += next.orders;
                if next.worst > kept.worst {
                    (kept.worst, kept.stage) = (next.worst, next.stage);
                }
            }
            overlaps
        });
    }

    /// Returns the number of the run's stalls, their total length in ticks, and the longest of
    /// them.
    pub fn finish(mut self, start: u64, ns_per_tick: f64) -> (u64, u64, Vec<Stall>) {
        self.compact();
        let total = self.found.len() as u64;
        let ticks = self.found.iter().map(|stall| stall.to - stall.from).sum();
        self.found.sort_by_key(|stall| std::cmp::Reverse(stall.to - stall.from));
        self.found.truncate(MAX_LISTED);
        self.found.sort_by_key(|stall| stall.from);
        let stall = |interval: &StalledInterval| Stall {
            at_ns: to_ns(interval.from.saturating_sub(start), ns_per_tick),
            length_ns: to_ns(interval.to - interval.from, ns_per_tick),
            orders: interval.orders,
            worst_ns: to_ns(interval.worst, ns_per_tick),
            stage: interval.stage.name().into(),
        };
        (total, ticks, self.found.iter().map(stall).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::flow::Stage;

    fn interval(from: u64, to: u64, stage: Measure) -> StalledInterval {
        StalledInterval { from, to, orders: 1, worst: to - from, stage }
    }

    #[test]
    fn overlapping_intervals_form_one_stall() {
        let mut stalls = Stalls::new(10);
        for (from, to, stage) in [
            (500, 520, Measure::Stage(Stage::Return)),
            (100, 150, Measure::Stage(Stage::Completion)),
            (90, 170, Measure::Stage(Stage::Submit)),
            (160, 200, Measure::Stage(Stage::Completion)),
        ] {
            stalls.add(interval(from, to, stage));
        }
        let (total, ticks, listed) = stalls.finish(50, 2.0);
        assert_eq!((total, ticks), (2, 130));
        let first = Stall { at_ns: 80, length_ns: 220, orders: 3, worst_ns: 160, stage: "submit".into() };
        assert_eq!(listed[0], first);
        assert_eq!(listed[1].stage, "return");
    }

    #[test]
    fn longest_stalls_are_listed_in_bounded_memory() {
        let mut stalls = Stalls::new(10);
        for number in 0..COMPACT_AT as u64 * 2 {
            stalls.add(interval(number, number + 20, Measure::Stage(Stage::Submit)));
        }
        assert!(stalls.found.len() < COMPACT_AT);
        for number in 0..100 {
            let from = 1 << (20 + number / 3);
            stalls.add(interval(from, from + 11 + number, Measure::Stage(Stage::Return)));
        }
        let (total, _, listed) = stalls.finish(0, 1.0);
        assert_eq!((total, listed.len()), (35, MAX_LISTED));
        assert!(listed.is_sorted_by_key(|stall| stall.at_ns));
    }
}
