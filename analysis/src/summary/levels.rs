//! Latency by isolation level, in a run whose strategies have several.

use super::figures::{Distribution, Measure, MeasureSeries, from_due, rt_venue};
use crate::merge::MergedRun;
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
    const MEASURES: [Measure; 5] = [
        Measure::RtVenue,
        Measure::RtVenueFromDue,
        Measure::SendLag,
        Measure::StallFree,
        Measure::WithoutSteal,
    ];

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
            own.record(Measure::RtVenue, rt_venue(row), ns_per_tick);
            if let (Some(due), Some(from_due)) = (row.at(Point::Due), from_due(row)) {
                own.record(Measure::RtVenueFromDue, from_due, ns_per_tick);
                own.record(Measure::SendLag, row.began().saturating_sub(due), ns_per_tick);
            }
        }
        levels
    }

    /// Adds a sample of one of [`Self::MEASURES`]; others are ignored.
    pub fn record(&mut self, measure: Measure, ticks: u64, ns_per_tick: f64) {
        if let Some(at) = Self::MEASURES.iter().position(|own| *own == measure) {
            self.series[at].record(ticks, ns_per_tick);
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
