//! Latency by isolation level, in a run whose strategies have several.

use super::figures::{Distribution, Measure, MeasureSeries, rt_venue};
use crate::merge::MergedRun;
use crate::radix_select::BitSet;
use protocol::plan::{Isolation, IsolationLevels};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The latencies of the orders of the strategies that have one of a run's isolation levels. The
/// levels of a run share its engine, its clock and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// The isolation level.
    pub level: Isolation,
    /// Number of earlier groups of strategies in the run at the same level: 0 except in an A/A test.
    #[serde(default)]
    pub again: usize,
    /// Number of strategies in the group.
    pub strategies: u16,
    /// Distributions by the name of their measure: those of [`LevelSeries::MEASURES`].
    pub measures: BTreeMap<String, Distribution>,
}

/// The samples of the orders of strategies at one level.
#[derive(Clone, Debug)]
pub(super) struct LevelSeries {
    level: Isolation,
    again: usize,
    series: [MeasureSeries; Self::MEASURES.len()],
}

impl LevelSeries {
    /// The durations that are measured for each level.
    const MEASURES: [Measure; 4] =
        [Measure::RtVenue, Measure::RtVenueFromDue, Measure::SendLag, Measure::StallFree];

    /// Takes the samples of every measured order, for each level; none if all strategies have the
    /// same level.
    pub fn measure(merged: &MergedRun, isolation: IsolationLevels, ns_per_tick: f64) -> Vec<Self> {
        if isolation.only().is_some() {
            return Vec::new();
        }
        let new = |(level, again)| Self { level, again, series: Default::default() };
        let mut levels: Vec<Self> = isolation.places().map(new).collect();
        for (id, row) in merged.measured().filter(|(_, row)| merged.is_counted(row)) {
            let own = &mut levels[isolation.place_of(id.strategy())];
            let rt_venue = rt_venue(row);
            own.series[0].record(rt_venue, ns_per_tick);
            if let Some(due) = row.at(Point::Due) {
                let lag = row.began().saturating_sub(due);
                own.series[1].record(rt_venue.saturating_add(lag), ns_per_tick);
                own.series[2].record(lag, ns_per_tick);
            }
        }
        levels
    }

    /// Adds the samples of orders that no stall affected.
    pub fn record_stall_free(
        levels: &mut [Self],
        merged: &MergedRun,
        untouched: &BitSet,
        isolation: IsolationLevels,
        ns_per_tick: f64,
    ) {
        if levels.is_empty() {
            return;
        }
        let free = merged.measured().enumerate().filter(|(index, _)| untouched.get(*index));
        for (_, (id, row)) in free.filter(|(_, (_, row))| merged.is_counted(row)) {
            levels[isolation.place_of(id.strategy())].series[3].record(rt_venue(row), ns_per_tick);
        }
    }

    /// Summarizes the samples of a level with this number of strategies.
    pub fn summarize(&self, strategies: u16, ns_per_tick: f64) -> LevelSummary {
        let measured = Self::MEASURES.iter().zip(&self.series);
        let distribution = |(measure, series): (&Measure, &MeasureSeries)| {
            (measure.name().to_owned(), series.distribution(ns_per_tick))
        };
        let Self { level, again, .. } = *self;
        LevelSummary { level, again, strategies, measures: measured.map(distribution).collect() }
    }
}

impl LevelSummary {
    /// Returns the distribution of a measured duration; empty if the level lacks it.
    pub fn measure(&self, measure: Measure) -> Distribution {
        self.measures.get(measure.name()).copied().unwrap_or_default()
    }
}
