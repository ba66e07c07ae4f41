//! The walks of strategies over their working sets: how long they took, and how often they touched
//! the whole set.

use super::threads::{AgentSummary, ThreadSummary};
use protocol::labels::{Counter, StrategyCounter};
use protocol::plan::{MemorySettings, Plan};
use serde::{Deserialize, Serialize};

/// The size in bytes of strategies' working sets, memory that they walk between orders, and the
/// time in nanoseconds of the walk for one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkingSetSummary {
    /// Size of each strategy's working set, in bytes.
    pub bytes: u64,
    /// Cache lines walked for each order.
    pub lines_per_order: u64,
    /// Cache lines walked by all strategies together.
    pub lines: u64,
    /// Mean time of the walk for one order, in nanoseconds, with the walk's clock reads; null
    /// without a walk.
    pub walk_ns: Option<f64>,
    /// Median of the walk time in the median strategy, in nanoseconds, to an eighth; null if no
    /// strategy ended.
    #[serde(default)]
    pub walk_p50_ns: Option<f64>,
    /// 99th percentile of the walk time in the strategy with the longest, in nanoseconds, to an
    /// eighth.
    #[serde(default)]
    pub walk_p99_ns: Option<f64>,
    /// Number of passes over the whole working set, by the strategy with the fewest cache lines
    /// walked.
    pub passes: f64,
}

fn counter(agent: &AgentSummary, counter: StrategyCounter) -> u64 {
    let name = StrategyCounter::LABELS.get(counter.index()).map_or("", |label| label.name);
    agent.counters.get(name).copied().unwrap_or(0)
}

/// Summarizes the walks of a run's strategies; `None` without working sets.
pub(super) fn summarize(
    plan: &Plan,
    threads: &[ThreadSummary],
    ns_per_tick: f64,
) -> Option<WorkingSetSummary> {
    let settings = &plan.trading().memory;
    let count = settings.lines();
    if count == 0 {
        return None;
    }
    let is_strategy = |agent: &&AgentSummary| agent.role.starts_with("strategy-");
    let agents = || threads.iter().flat_map(|thread| &thread.agents).filter(is_strategy);
    let total = |wanted| agents().fold(0, |sum: u64, agent| sum.saturating_add(counter(agent, wanted)));
    let (lines, ticks) = (total(StrategyCounter::Walked), total(StrategyCounter::WalkTime));
    let known = |wanted| {
        let mut found: Vec<u64> =
            agents().map(|agent| counter(agent, wanted)).filter(|ticks| *ticks > 0).collect();
        found.sort_unstable();
        found
    };
    let (medians, tails) = (known(StrategyCounter::WalkP50), known(StrategyCounter::WalkP99));
    let ns = |ticks: Option<&u64>| ticks.map(|ticks| *ticks as f64 * ns_per_tick);
    let fewest = agents().map(|agent| counter(agent, StrategyCounter::Walked)).min().unwrap_or(0);
    let per_order = MemorySettings::LINES_PER_ORDER;
    Some(WorkingSetSummary {
        bytes: settings.working_set_bytes,
        lines_per_order: per_order,
        lines,
        walk_ns: (lines > 0).then(|| ticks as f64 * ns_per_tick / lines as f64 * per_order as f64),
        walk_p50_ns: ns(medians.get(medians.len() / 2)),
        walk_p99_ns: ns(tails.last()),
        passes: fewest as f64 / count as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::Trading;

    #[test]
    fn walk_time_is_the_mean_of_an_order() {
        let memory = MemorySettings { working_set_bytes: 100 * 64, ..MemorySettings::default() };
        let plan = Plan::for_trading(Trading { memory, orders: vec![10, 10], ..Trading::new(2, 1) });
        let thread = |role: &str, walked: u64, ticks: u64| ThreadSummary {
            agents: vec![AgentSummary {
                role: role.into(),
                counters: [
                    ("walked", walked),
                    ("walk-time", ticks),
                    ("walk-p50", walked),
                    ("walk-p99", ticks),
                ]
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            }],
            ..ThreadSummary::default()
        };
        let threads = [thread("strategy-0", 640, 1_000), thread("strategy-1", 640 - 64, 900)];
        let found = summarize(&plan, &threads, 0.5).unwrap();
        assert_eq!((found.bytes, found.lines, found.passes), (6_400, 1_216, 5.76));
        assert_eq!(found.walk_ns, Some(950.0 / 19.0));
        assert_eq!((found.walk_p50_ns, found.walk_p99_ns), (Some(320.0), Some(500.0)));
        assert_eq!(summarize(&plan, &[], 0.5).unwrap().walk_ns, None);
        assert_eq!(summarize(&Plan::for_trading(Trading::new(1, 1)), &threads, 0.5), None);
    }
}
