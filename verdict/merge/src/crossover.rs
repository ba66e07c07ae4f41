//! The result of a crossover run: each level compared with the first threads, or without any with
//! the first level, with intervals.
//!
//! Orders that were due together share the machine's state, so they are no independent samples: the
//! unit is a block, in which each level has one epoch. An interval comes from resampling whole
//! blocks (a cluster bootstrap), so whatever slows some epochs down widens it, as it must.

use crate::figures::from_due;
use crate::{Epochs, MergedRun};
use protocol::plan::{Isolation, IsolationLevel, IsolationLevels};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};
use shm::random::SplitMix64;
use std::collections::BTreeMap;

/// Minimum number of blocks (in each, every isolation level has one turn) from which an interval is
/// estimated.
pub const MIN_BLOCKS: usize = 20;

/// Number of resampled runs of an interval.
const RESAMPLES: usize = 1_000;

/// The comparison of isolation levels that took turns within one run (a crossover design).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CrossoverSummary {
    /// Length of an epoch in nanoseconds: the turn of one level.
    pub epoch_ns: u64,
    /// Number of compared blocks, in each of which every level had one epoch.
    pub blocks: u64,
    /// Comparison of each level with the reference, in the order of the levels.
    pub levels: Vec<LevelDifference>,
    /// Index of the reference among the levels: that of the first threads, or without any 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub reference: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(place: &usize) -> bool {
    *place == 0
}

impl CrossoverSummary {
    /// Returns the entry of the reference, the isolation level with which the run's other levels
    /// are compared.
    pub fn reference(&self) -> Option<&LevelDifference> {
        self.levels.get(self.reference)
    }
}

/// The comparison of one isolation level with the run's reference level, by the latency `rt_venue`
/// from an order's due time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelDifference {
    /// The compared isolation level.
    pub level: IsolationLevel,
    /// Number of earlier levels in the list that are equal to this one: above 0 in an A/A test.
    pub again: usize,
    /// Number of compared orders of the level.
    pub orders: u64,
    /// Ratio of the medians; null with fewer than [`MIN_BLOCKS`] blocks.
    pub p50: Option<Ratio>,
    /// Ratio of the 99th percentiles; null with too few blocks, or fewer than 1,000 orders.
    pub p99: Option<Ratio>,
    /// Ratio of the shares of orders above the reference's 99th percentile; null as `p99`.
    pub beyond_p99: Option<Ratio>,
}

/// A ratio of one isolation level's figure to the reference level's figure, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The estimate: 1.0 is no difference.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The orders of one level: latency in ticks and the index of its block, by latency.
type Orders = Vec<(u64, u32)>;

/// Compares the isolation levels of a run in which they took turns; `None` for any other run.
pub fn summarize(merged: &MergedRun, isolation: IsolationLevels) -> Option<CrossoverSummary> {
    let epochs = merged.epochs?;
    let (levels, blocks) = orders_by_level(merged, epochs, isolation);
    let reference = reference_place(isolation);
    let differences = isolation.places().zip(&levels).map(|((level, again), orders)| {
        let [p50, p99, beyond_p99] = compare(&levels[reference], orders, blocks);
        LevelDifference { level, again, orders: orders.len() as u64, p50, p99, beyond_p99 }
    });
    Some(CrossoverSummary {
        epoch_ns: epochs.epoch_ns(),
        blocks: blocks as u64,
        levels: differences.collect(),
        reference,
    })
}

/// Returns the place of the first threads. Experiments shift the levels from run to run, and all of
/// them are compared with threads.
fn reference_place(isolation: IsolationLevels) -> usize {
    isolation.as_slice().iter().position(|level| *level == Isolation::Thread).unwrap_or(0)
}

/// Returns the counted orders of each level, sorted by latency, and the number of blocks. Only
/// blocks in which each level has orders are taken.
fn orders_by_level(merged: &MergedRun, epochs: Epochs, isolation: IsolationLevels) -> (Vec<Orders>, usize) {
    let places = isolation.as_slice().len();
    let mut blocks: BTreeMap<u64, Vec<Vec<u64>>> = BTreeMap::new();
    for (id, row) in merged.measured().filter(|(id, row)| merged.is_counted(*id, row)) {
        let (Some(due), Some(latency)) = (row.at(Point::Due), from_due(row)) else { continue };
        let block = blocks.entry(epochs.block_of(due)).or_insert_with(|| vec![Vec::new(); places]);
        block[isolation.place_of(id.strategy())].push(latency);
    }
    blocks.retain(|_, levels| levels.iter().all(|orders| !orders.is_empty()));
    let mut levels = vec![Orders::new(); places];
    for (index, block) in blocks.values().enumerate() {
        for (own, orders) in levels.iter_mut().zip(block) {
            own.extend(orders.iter().map(|latency| (*latency, index as u32)));
        }
    }
    levels.iter_mut().for_each(|orders| orders.sort_unstable());
    (levels, blocks.len())
}

/// Compares a level with the reference: median, 99th percentile, share beyond the reference's.
fn compare(first: &Orders, other: &Orders, blocks: usize) -> [Option<Ratio>; 3] {
    if blocks < MIN_BLOCKS {
        return [None; 3];
    }
    let has_tail = first.len().min(other.len()) >= 1_000;
    let figures = |weights: &[u32]| {
        let [a50, a99] = quantiles(first, weights);
        let [b50, b99] = quantiles(other, weights);
        let beyond = |orders| share_above(orders, weights, a99);
        [b50 as f64 / a50 as f64, b99 as f64 / a99 as f64, beyond(other) / beyond(first)]
    };
    let estimates = figures(&vec![1; blocks]);
    // Equal for every merge of the same run.
    let mut draws = SplitMix64(0);
    let mut resampled: [Vec<f64>; 3] = [const { Vec::new() }; 3];
    for _ in 0..RESAMPLES {
        let mut weights = vec![0; blocks];
        (0..blocks).for_each(|_| weights[draws.below(blocks as u64) as usize] += 1);
        for (all, figure) in resampled.iter_mut().zip(figures(&weights)) {
            all.push(figure);
        }
    }
    let mut ratios = estimates.into_iter().zip(resampled).enumerate().map(|(index, (value, mut all))| {
        all.retain(|figure| figure.is_finite());
        all.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| all.get((all.len() as f64 * share) as usize).copied();
        let ratio = Ratio { value, low: at(0.025)?, high: at(0.975)? };
        (value.is_finite() && (index == 0 || has_tail)).then_some(ratio)
    });
    std::array::from_fn(|_| ratios.next().flatten())
}

/// Returns median and 99th percentile of sorted orders whose blocks have these weights; 0 without
/// any.
fn quantiles(orders: &Orders, weights: &[u32]) -> [u64; 2] {
    let total: u64 = orders.iter().map(|(_, block)| u64::from(weights[*block as usize])).sum();
    let mut ranks = [0.5, 0.99].map(|share| (total as f64 * share).ceil() as u64).into_iter().peekable();
    let (mut found, mut before, mut at) = ([0; 2], 0, 0);
    for (latency, block) in orders {
        before += u64::from(weights[*block as usize]);
        while ranks.next_if(|rank| before >= (*rank).max(1)).is_some() {
            found[at] = *latency;
            at += 1;
        }
    }
    found
}

/// Returns the share of the orders, whose blocks have these weights, above a latency.
fn share_above(orders: &Orders, weights: &[u32], latency: u64) -> f64 {
    let weight = |orders: &[(u64, u32)]| {
        orders.iter().map(|(_, block)| u64::from(weights[*block as usize])).sum::<u64>() as f64
    };
    let above = orders.partition_point(|(own, _)| *own <= latency);
    weight(&orders[above..]) / weight(orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A level's orders: 50 in each of some blocks, whose latencies share the state of their block.
    fn level(blocks: u32, seed: u64, latency: impl Fn(f64, f64) -> f64) -> Orders {
        let mut draws = SplitMix64(seed);
        let mut unit = move || 1.0 - draws.share();
        let mut orders = Orders::new();
        for block in 0..blocks {
            let state = unit();
            orders.extend((0..50).map(|_| (latency(state, unit()) as u64, block)));
        }
        orders.sort_unstable();
        orders
    }

    fn usual(state: f64, unit: f64) -> f64 {
        (10_000.0 + 2_000.0 * state) * (1.0 - 0.2 * unit.ln())
    }

    #[test]
    fn equal_levels_cover_one_at_the_nominal_rate() {
        let covers = |ratio: Option<Ratio>| ratio.is_some_and(|of| of.low <= 1.0 && 1.0 <= of.high);
        let covered_by = |seeds: std::ops::Range<u64>| {
            let mut covered = [0; 3];
            for seed in seeds {
                let ratios = compare(&level(100, seed, usual), &level(100, 1_000 + seed, usual), 100);
                for (count, ratio) in covered.iter_mut().zip(ratios) {
                    *count += u32::from(covers(ratio));
                }
            }
            covered
        };
        let covered: [u32; 3] = std::thread::scope(|scope| {
            let half = scope.spawn(|| covered_by(0..50));
            let other = covered_by(50..100);
            let half = half.join().unwrap();
            std::array::from_fn(|index| half[index] + other[index])
        });
        assert!(covered.iter().all(|count| (88..=100).contains(count)), "{covered:?} of 100");
    }

    #[test]
    fn slower_tail_is_found_and_equal_median_is_not_blamed() {
        let slow = |state, unit: f64| usual(state, unit) * if unit < 0.03 { 1.5 } else { 1.0 };
        let [p50, p99, beyond] =
            compare(&level(200, 1, usual), &level(200, 2, slow), 200).map(Option::unwrap);
        assert!(p50.low < 1.0 && p50.high > 1.0, "{p50:?}");
        assert!(p99.low > 1.05, "{p99:?}");
        assert!(beyond.low > 1.5, "{beyond:?}");
    }

    /// The broken variant: single orders as the unit, which lets a few slow blocks pass for many
    /// samples.
    #[test]
    fn orders_as_units_would_promise_too_narrow_an_interval() {
        let stalls = |state: f64, unit: f64| usual(state, unit) * if state < 0.1 { 4.0 } else { 1.0 };
        let (first, other) = (level(60, 5, stalls), level(60, 6, stalls));
        let alone =
            |orders: &Orders| -> Orders { (0..).zip(orders).map(|(block, of)| (of.0, block)).collect() };
        let width = |ratio: Option<Ratio>| ratio.map(|of| (of.high / of.low).ln()).unwrap();
        let [_, by_block, _] = compare(&first, &other, 60);
        let [_, by_order, _] = compare(&alone(&first), &alone(&other), 3_000);
        assert!(width(by_block) > 1.5 * width(by_order), "{by_block:?} {by_order:?}");
    }

    #[test]
    fn reference_is_the_first_thread_wherever_it_stands() {
        let place = |text: &str| reference_place(text.parse().unwrap());
        assert_eq!([place("process+thread+thread"), place("thread+thread+process")], [1, 0]);
        assert_eq!(place("process+sandbox"), 0);
    }

    #[test]
    fn few_blocks_or_orders_give_no_figure() {
        assert_eq!(compare(&level(19, 1, usual), &level(19, 2, usual), 19), [None; 3]);
        let [p50, p99, beyond] = compare(&vec![(7, 0), (8, 1)], &vec![(7, 0), (9, 1)], 20);
        assert!(p50.is_some() && p99.is_none() && beyond.is_none());
        let _ = compare(&Orders::new(), &Orders::new(), 20);
    }
}
