//! Latency by isolation level, in a run whose strategies have several.

use merge::figures::{Distribution, Figures, Measure};
use protocol::index::StrategyIndex;
use protocol::plan::{IsolationLevel, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The latencies of the strategies at one isolation level, in a run with several levels. The levels
/// of a run share its engine, its clock and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSummary {
    /// The isolation level.
    pub level: IsolationLevel,
    /// Number of earlier groups of strategies in the run at the same level: 0 except in an A/A
    /// test.
    #[serde(default)]
    pub again: usize,
    /// Number of strategies in the group.
    pub strategies: u16,
    /// Distributions by the name of their measure.
    pub measures: BTreeMap<String, Distribution>,
}

/// Summarizes the latencies of each isolation level; none in a run with one.
pub(super) fn summarize(figures: &Figures, plan: &Plan) -> Vec<LevelSummary> {
    let count = |place: usize| {
        let is_there = |strategy: &StrategyIndex| plan.isolation.place_of(*strategy) == place;
        StrategyIndex::first(plan.trading().strategies).filter(is_there).count() as u16
    };
    let levels = figures.levels().enumerate();
    let summary =
        |(place, (level, again, measures))| LevelSummary { level, again, strategies: count(place), measures };
    levels.map(summary).collect()
}

impl LevelSummary {
    /// Returns the distribution of a measured duration at this isolation level; empty if the level
    /// lacks it.
    pub fn measure(&self, measure: Measure) -> Distribution {
        self.measures.get(measure.name()).copied().unwrap_or_default()
    }
}
