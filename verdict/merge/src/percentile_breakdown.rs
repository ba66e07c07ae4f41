//! Breakdown of the orders around a percentile of rt_venue by stage. Unlike the percentiles of the
//! stages, these means add up, since they are of the same orders.

use crate::MergedRun;
use crate::figures::{Figures, Measure, engine_ticks, to_ns};
use protocol::flow::Stage;
use serde::{Deserialize, Serialize};

/// Percentiles, each with the lower and the upper share that limit its group of orders.
const GROUPS: [(&str, f64, f64); 2] = [("p50", 0.45, 0.55), ("p99", 0.985, 0.995)];
const MIN_ORDERS: u64 = 20;

/// The mean time of each stage over the orders whose rt_venue is near a percentile: from p45 to
/// p55, or from p98.5 to p99.5.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PercentileBreakdown {
    /// Name of the percentile of rt_venue.
    pub percentile: String,
    /// Minimum rt_venue in the group, in nanoseconds.
    pub from_ns: u64,
    /// Maximum rt_venue in the group, in nanoseconds.
    pub to_ns: u64,
    /// Number of orders in the group.
    pub orders: u64,
    /// Mean rt_venue of the group, in nanoseconds.
    pub rt_venue_ns: f64,
    /// Mean of each stage in path order, without the venue's; their sum is `rt_venue_ns`.
    pub stages: Vec<StageMean>,
}

/// The mean time of one stage of the order's path over a group of orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageMean {
    /// Name of the stage.
    pub stage: String,
    /// Mean time of the stage, in nanoseconds.
    pub mean_ns: f64,
}

/// Computes the mean stage times of the orders around p50 and around p99 of the latency rt_venue.
/// None without stamps of the stages or with too few orders.
pub fn summarize(merged: &MergedRun, figures: &Figures, ns_per_tick: f64) -> Vec<PercentileBreakdown> {
    let stages: Vec<Stage> = Stage::ALL.into_iter().filter(|stage| *stage != Stage::VenueService).collect();
    let breakdown_at = |(name, low, high): (&str, f64, f64)| {
        let [from_ns, to_ns_] =
            [low, high].map(|share| figures.series(Measure::RtVenue).histogram().value_at_quantile(share));
        let mut sums = vec![0u128; stages.len()];
        let (mut orders, mut total) = (0u64, 0u128);
        for (_, row) in merged.measured().filter(|(id, row)| merged.is_counted(*id, row)) {
            let order_ticks = engine_ticks(row);
            if !(from_ns..=to_ns_).contains(&to_ns(order_ticks, ns_per_tick)) {
                continue;
            }
            let stage_ticks: Option<Vec<u64>> = stages.iter().map(|stage| row.stage(*stage)).collect();
            for (sum, ticks) in sums.iter_mut().zip(stage_ticks?) {
                *sum += u128::from(ticks);
            }
            orders += 1;
            total += u128::from(order_ticks);
        }
        let mean = |sum: u128| sum as f64 / orders as f64 * ns_per_tick;
        (orders >= MIN_ORDERS).then(|| PercentileBreakdown {
            percentile: name.into(),
            from_ns,
            to_ns: to_ns_,
            orders,
            rt_venue_ns: mean(total),
            stages: stages
                .iter()
                .zip(&sums)
                .map(|(stage, sum)| StageMean { stage: stage.name().into(), mean_ns: mean(*sum) })
                .collect(),
        })
    };
    GROUPS.into_iter().filter_map(breakdown_at).collect()
}
