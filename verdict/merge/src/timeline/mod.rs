//! `timeline.json`: latency of a run over time and its stalls, reduced to a drawable size.
//!
//! An order counts at the time at which its slowest hand-off began, not at its send time. An engine
//! that pauses for a millisecond delays orders on their way in and, through their completions,
//! orders sent up to a whole venue delay before. Placed by t1, one stall would be smeared over all
//! that time; placed by the slowest hand-off it is one peak.
//!
//! ```text
//! { "schema": "bulkhead.timeline/1", "run": …,
//!   "bucket_ns": 8400000,            length of a bucket; bucket 0 starts with the schedule
//!   "count": […], "p50_ns": […], "max_ns": […],   one entry per bucket, null: too few orders
//!   "p99_every": 3, "p99_ns": […],   one entry per `p99_every` buckets
//!   "stall_threshold_ns": 100000, "stalls_total": 41, "stalls_ns": 8100000,
//!   "stalls": [ { "at_ns", "length_ns", "orders", "worst_ns", "stage" } … ] }   by time
//! ```

mod stalls;

pub use stalls::Stall;

use crate::figures::{Figures, Measure};
use crate::figures::{SAMPLES_FOR_P50, SAMPLES_FOR_P99, engine_ticks, quantile, to_ns};
use crate::{MergedRun, OrderRow};
use protocol::flow::{Stage, StageLocation};
use protocol::stamps::Point;
use record::document::Document;
use record::run::RunRecord;
use record::run::ns_per_tick;
use serde::{Deserialize, Serialize};
use stalls::Stalls;

/// Maximum number of buckets: as many as a page can show.
const MAX_BUCKETS: u64 = 600;
/// Buckets are merged for a p99 until they hold this many samples on average, so that most have
/// enough.
const TARGET_P99_SAMPLES: u64 = 1_500;

/// The timeline of a run: its latency rt_venue over time, and its stalls. Figures are rt_venue
/// except in the stalls, which name their stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Run id.
    pub run: String,
    /// Length of a bucket in nanoseconds, 1 or more; bucket 0 begins with the schedule.
    pub bucket_ns: u64,
    /// Number of orders in each time bucket.
    pub count: Vec<u64>,
    /// Median of rt_venue in each bucket, in nanoseconds; null below 20 orders.
    pub p50_ns: Vec<Option<u64>>,
    /// Maximum of rt_venue in each bucket, in nanoseconds; null without orders.
    pub max_ns: Vec<Option<u64>>,
    /// Number of buckets per entry of `p99_ns`, 1 or more; the last entry may cover fewer.
    pub p99_every: usize,
    /// 99th percentile of rt_venue in each group of buckets, in nanoseconds; null below 1,000
    /// orders.
    pub p99_ns: Vec<Option<u64>>,
    /// Threshold of a stall: a hand-off above ten times the run's median rt_venue, at least 100 µs.
    pub stall_threshold_ns: u64,
    /// Number of stalls.
    pub stalls_total: u64,
    /// Total length of the stalls, in nanoseconds.
    pub stalls_ns: u64,
    /// The longest stalls, in time order.
    pub stalls: Vec<Stall>,
}

impl Document for Timeline {
    const FILE: &'static str = "timeline.json";
    const NAME: &'static str = "bulkhead.timeline";
    const VERSION: u32 = 1;
    const PRETTY: bool = false;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }

    /// Checks that the lists have matching lengths and are short enough to be drawn.
    fn check(&self) -> Result<(), String> {
        let buckets = self.count.len();
        let fits = [self.p50_ns.len(), self.max_ns.len()] == [buckets; 2]
            && self.bucket_ns > 0
            && self.p99_every > 0
            && self.p99_ns.len() == buckets.div_ceil(self.p99_every)
            && buckets <= 10_000;
        if fits { Ok(()) } else { Err("its lists do not fit each other".into()) }
    }
}

impl Timeline {
    /// Computes the latency of a merged run over time, in time buckets. It sorts linearly, with 8
    /// bytes an order.
    pub fn measure(record: &RunRecord, merged: &MergedRun, figures: &Figures) -> Self {
        let ns_per_tick = ns_per_tick(record);
        let start = record.clock.start_ticks;
        let median = figures.distribution(Measure::RtVenue).p50_ns.unwrap_or(0);
        let threshold_ns = stalls::threshold_ns(median);
        let mut stalls = Stalls::new((threshold_ns as f64 / ns_per_tick) as u64);

        let mut last = start;
        for (_, row) in merged.measured() {
            last = last.max(row.ended());
            stalls.record(row);
        }
        let bucket_ns = bucket_ns(to_ns(last - start, ns_per_tick));
        let index =
            |row: &OrderRow| (to_ns(slowest(row).0.saturating_sub(start), ns_per_tick) / bucket_ns) as usize;

        // A counting sort: count per bucket, then place each order.
        let mut count: Vec<u64> = Vec::new();
        for (_, row) in merged.measured() {
            let bucket = index(row);
            if bucket >= count.len() {
                count.resize(bucket + 1, 0);
            }
            count[bucket] += 1;
        }
        let group_ends = running_sum(&count);
        let mut next: Vec<usize> =
            group_ends.iter().zip(&count).map(|(end, count)| end - *count as usize).collect();
        let mut sorted = vec![0; group_ends.last().copied().unwrap_or(0)];
        for (_, row) in merged.measured() {
            let slot = &mut next[index(row)];
            sorted[*slot] = engine_ticks(row);
            *slot += 1;
        }

        let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
        let (mut p50_ns, mut max_ns) = (Vec::new(), Vec::new());
        for (end, count) in group_ends.iter().zip(&count) {
            let bucket = &mut sorted[end - *count as usize..*end];
            max_ns.push(bucket.iter().max().copied().map(ns));
            p50_ns.push(quantile(bucket, 0.5, SAMPLES_FOR_P50 as usize).map(ns));
        }
        let p99_every = buckets_for_p99(count.len(), sorted.len() as u64);
        let mut from = 0;
        let mut p99_ns = Vec::new();
        for group in group_ends.chunks(p99_every) {
            let to = group.last().copied().unwrap_or(from);
            p99_ns.push(quantile(&mut sorted[from..to], 0.99, SAMPLES_FOR_P99 as usize).map(ns));
            from = to;
        }
        let (stalls_total, total_ticks, stalls) = stalls.finish(start, ns_per_tick);
        Self {
            run: record.plan.run.clone(),
            bucket_ns,
            count,
            p50_ns,
            max_ns,
            p99_every,
            p99_ns,
            stall_threshold_ns: threshold_ns,
            stalls_total,
            stalls_ns: ns(total_ticks),
            stalls,
        }
    }

    /// Returns the time that the timeline covers, in nanoseconds.
    pub fn span_ns(&self) -> u64 {
        self.bucket_ns.saturating_mul(self.count.len() as u64)
    }
}

/// Returns the longest of an order's stages without the venue: start, length and name.
fn slowest(row: &OrderRow) -> (u64, u64, Measure) {
    let t = row.stamps();
    if !row.has_all_stamps() {
        // Without inner stamps the stage is unknown: outbound or inbound.
        let (outbound, inbound) = (t[3].saturating_sub(t[0]), t[7].saturating_sub(t[4]));
        return if outbound >= inbound {
            (t[0], outbound, Measure::RtVenue)
        } else {
            (t[4], inbound, Measure::RtVenue)
        };
    }
    let mut worst = (row.began(), 0, Measure::Stage(Stage::ALL[0]));
    for stage in Stage::ALL.into_iter().filter(|stage| stage.info().location != StageLocation::Venue) {
        let Some(length) = row.stage(stage) else { continue };
        if length > worst.1 {
            worst = (row.at(stage.info().from).unwrap_or(0), length, Measure::Stage(stage));
        }
    }
    worst
}

/// Returns the longest stage, including the wait before the order was sent: a paused sender stalls
/// too.
fn slowest_from_due(row: &OrderRow) -> (u64, u64, Measure) {
    let worst = slowest(row);
    let slip = row.at(Point::Due).map(|due| (due, row.began().saturating_sub(due)));
    match slip {
        Some((due, slip)) if slip > worst.1 => (due, slip, Measure::SendLag),
        _ => worst,
    }
}

/// Divides the span into at most [`MAX_BUCKETS`] buckets whose length has two significant digits.
fn bucket_ns(span_ns: u64) -> u64 {
    let min = (span_ns / MAX_BUCKETS + 1).max(1);
    let unit = 10u64.saturating_pow(min.ilog10().saturating_sub(1));
    min.div_ceil(unit) * unit
}

/// Returns the number of buckets that have enough orders for a p99 together.
fn buckets_for_p99(buckets: usize, orders: u64) -> usize {
    let needed = (buckets as u64 * TARGET_P99_SAMPLES).div_ceil(orders.max(1));
    usize::try_from(needed).unwrap_or(usize::MAX).clamp(1, buckets.max(1))
}

fn running_sum(counts: &[u64]) -> Vec<usize> {
    let mut sum = 0;
    let add = |count: &u64| {
        sum += *count as usize;
        sum
    };
    counts.iter().map(add).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_count_is_bounded_and_length_round() {
        for (span, bucket) in [(0, 1), (599, 1), (600, 2), (5_000_000_000, 8_400_000), (59_999, 100)] {
            assert_eq!(bucket_ns(span), bucket, "{span}");
        }
        for span in [1, 999, 12_345, 7_654_321, 60_000_000_000, u64::MAX / 2] {
            assert!(span / bucket_ns(span) < MAX_BUCKETS, "{span}");
            assert!(span < 1_000_000 || span / bucket_ns(span) > MAX_BUCKETS / 2, "{span}");
        }
    }

    #[test]
    fn buckets_merge_until_p99_has_samples() {
        assert_eq!(buckets_for_p99(600, 4_000_000), 1);
        assert_eq!(buckets_for_p99(600, 100_000), 9);
        assert_eq!(buckets_for_p99(600, 10), 600);
        assert_eq!(buckets_for_p99(0, 0), 1);
    }
}
