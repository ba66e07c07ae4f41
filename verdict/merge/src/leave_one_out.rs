//! Leave-one-out: how much the pooled percentiles depend on each strategy.
//!
//! A strategy stamps t1 and t8 itself. If it shifts its stamps consistently, it contradicts no
//! other thread as long as t1 stays before the engine's t2 and t8 after its t7. These stamps cannot
//! be verified, but the influence of one strategy on the pool can be shown.

use crate::MergedRun;
use crate::figures::{Figures, Measure, MeasureSeries, SAMPLES_FOR_P50, SAMPLES_FOR_P99, engine_ticks};
use hdrhistogram::Histogram;
use protocol::flow::Stage;
use protocol::index::StrategyIndex;
use record::numbers::duration;
use serde::{Deserialize, Serialize};

/// A pooled percentile that one strategy shifts by more than this share of the smaller value gets a
/// note.
const NOTABLE_SHIFT: f64 = 0.5;

/// The measures that depend on stamps of the strategies.
const MEASURES: [Measure; 3] =
    [Measure::Stage(Stage::Submit), Measure::Stage(Stage::Return), Measure::RtVenue];

/// A run's latency percentiles over the orders of all strategies but one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaveOneOut {
    /// Index of the excluded strategy.
    pub strategy: StrategyIndex,
    /// Number of the excluded strategy's orders in the pool.
    pub orders: u64,
    /// Percentiles of the stage `submit` without the strategy.
    pub submit: PooledPercentiles,
    /// Percentiles of the stage `return` without the strategy.
    #[serde(rename = "return")]
    pub returned: PooledPercentiles,
    /// Percentiles of `rt_venue` without the strategy.
    pub rt_venue: PooledPercentiles,
}

/// The median and the 99th percentile of one latency measure over several strategies' orders
/// together, in nanoseconds; null with too few orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PooledPercentiles {
    /// Median in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile in nanoseconds.
    pub p99_ns: Option<u64>,
}

impl PooledPercentiles {
    /// Computes the percentiles of a pool without some of its samples.
    fn without(pool: &Histogram<u64>, own: &Histogram<u64>) -> Self {
        let mut rest = pool.clone();
        if rest.subtract(own).is_err() {
            return Self::default();
        }
        let at = |quantile, needed| (rest.len() >= needed).then(|| rest.value_at_quantile(quantile));
        Self { p50_ns: at(0.5, SAMPLES_FOR_P50), p99_ns: at(0.99, SAMPLES_FOR_P99) }
    }
}

/// Computes a run's latency percentiles without each strategy in turn; empty if all orders are of
/// one strategy.
pub fn leave_one_out(
    strategies: u16,
    merged: &MergedRun,
    figures: &Figures,
    ns_per_tick: f64,
) -> Vec<LeaveOneOut> {
    let pooled = MEASURES.map(|measure| figures.series(measure).histogram());
    let mut all = Vec::new();
    for strategy in StrategyIndex::first(strategies) {
        let mut own = MEASURES.map(|_| MeasureSeries::default());
        for (_, row) in merged.orders_of(strategy).filter(|(id, row)| merged.is_counted(*id, row)) {
            let ticks = [row.stage(Stage::Submit), row.stage(Stage::Return), Some(engine_ticks(row))];
            for (series, ticks) in own.iter_mut().zip(ticks) {
                ticks.into_iter().for_each(|ticks| series.record(ticks, ns_per_tick));
            }
        }
        let [submit, returned, engine] = [0, 1, 2].map(|at| (pooled[at], own[at].histogram()));
        let orders = engine.1.len();
        if orders == engine.0.len() {
            return Vec::new();
        }
        let without = |(pool, own)| PooledPercentiles::without(pool, own);
        let (submit, returned, rt_venue) = (without(submit), without(returned), without(engine));
        if orders > 0 {
            all.push(LeaveOneOut { strategy, orders, submit, returned, rt_venue });
        }
    }
    all
}

/// Returns a note for each percentile (p50, p99) that leaving out one strategy changes by more than
/// half of the smaller value. The note names the strategy with the largest change.
pub fn notes(all: &[LeaveOneOut], figures: &Figures) -> Vec<String> {
    let pooled = MEASURES.map(|measure| {
        let all = figures.distribution(measure);
        PooledPercentiles { p50_ns: all.p50_ns, p99_ns: all.p99_ns }
    });
    type Of = fn(&PooledPercentiles) -> Option<u64>;
    let percentiles: [(&str, Of); 2] = [("p50", |of| of.p50_ns), ("p99", |of| of.p99_ns)];
    let mut notes = Vec::new();
    for (name, of) in percentiles {
        let moved = all.iter().flat_map(|one| {
            let without = [one.submit, one.returned, one.rt_venue];
            MEASURES.iter().zip(pooled).zip(without).filter_map(move |((measure, with), without)| {
                let (with, without) = (of(&with)?, of(&without)?);
                let (low, high) = (with.min(without).max(1), with.max(without));
                Some(((high - low.min(high)) as f64 / low as f64, one.strategy, measure, with, without))
            })
        });
        let largest = moved.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|largest| largest.0 > NOTABLE_SHIFT);
        notes.extend(largest.map(|(_, strategy, measure, with, without)| {
            format!(
                "{name} of {} is {} with strategy-{strategy} and {} without it: the pooled figure depends on the stamps of one strategy",
                measure.name(),
                duration(with),
                duration(without)
            )
        }));
    }
    notes
}

/// Formats the range that p50 and p99 of rt_venue have when each strategy is left out in turn.
pub fn format_leave_one_out(all: &[LeaveOneOut]) -> Vec<String> {
    let range = |of: fn(&LeaveOneOut) -> Option<u64>| {
        let low = all.iter().filter_map(of).min()?;
        let high = all.iter().filter_map(of).max()?;
        Some(if low == high { duration(low) } else { format!("{} to {}", duration(low), duration(high)) })
    };
    let p50 = range(|one| one.rt_venue.p50_ns).map(|range| format!("rt_venue p50 {range}"));
    let p99 = range(|one| one.rt_venue.p99_ns).map(|range| format!("p99 {range}"));
    p50.into_iter().chain(p99).collect()
}
