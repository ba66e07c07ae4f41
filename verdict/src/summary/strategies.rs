//! Summary of each strategy, in runs with several kinds or levels, or external programs: latency
//! of its orders, resources of its process, and causes of its slowest orders.

use super::threads::ThreadSummary;
use merge::MergedRun;
use merge::figures::{Distribution, engine_ticks, quantile, to_ns};
use merge::tail::StrategyTail;
use protocol::index::StrategyIndex;
use protocol::plan::{IsolationLevel, ProcessPlan, Role};
use protocol::stamps::Point;
use record::run::{ProcessUsage, RunRecord};
use serde::{Deserialize, Serialize};

/// The summary of one strategy: latency, process resources and causes of slow orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrategySummary {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Kind of the strategy: a built-in name, or `exec:` and a command.
    pub kind: String,
    /// Isolation level between the strategy and the engine.
    #[serde(default)]
    pub level: Option<IsolationLevel>,
    /// Number of orders that the strategy sent.
    pub sent: u64,
    /// rt_venue of the strategy's orders: the time that the engine adds.
    pub rt_venue: Distribution,
    /// Time t1 − due by which the strategy sent its orders late, for orders with a due time.
    #[serde(rename = "slip")]
    pub send_lag: Distribution,
    /// Tick-to-trade: from the top of book that triggered an order to its t1.
    pub tick_to_trade: Distribution,
    /// Number of gaps of more than 3 µs in the strategy's duty cycles.
    pub gaps: u64,
    /// Longest time between the starts of two of the strategy's duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Resource usage of the strategy's process; null if it shares one.
    pub usage: Option<ProcessUsage>,
    /// Causes of the strategy's slowest orders; null with too few orders.
    pub tail: Option<StrategyTail>,
}

impl StrategySummary {
    /// Returns the CPU time of the strategy's process after its startup, in nanoseconds; `None` if
    /// unknown.
    pub fn cpu_ns(&self) -> Option<u64> {
        let usage = self.usage?;
        usage.cpu_ns?.checked_sub(usage.startup_cpu_ns?)
    }
}

/// The orders sent by one strategy, and the times of the measured ones, in ticks.
#[derive(Default)]
struct StrategyTimes {
    sent: u64,
    engine_ticks: Vec<u64>,
    send_lag: Vec<u64>,
    tick_to_trade: Vec<u64>,
}

/// Computes the distribution exactly, with the fields of a histogram's.
pub(super) fn distribution(times: &mut [u64], ns_per_tick: f64) -> Distribution {
    let ns = |ticks: Option<u64>| to_ns(ticks.unwrap_or(0), ns_per_tick);
    let extremes = [times.iter().min(), times.iter().max()].map(|ticks| ns(ticks.copied()));
    let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
    let count = times.len() as u64;
    let at = |share| ns(quantile(times, share, 1));
    Distribution::new(count, extremes, sum as f64 * ns_per_tick, at)
}

/// Returns the resource usage of the process that the strategy has for itself.
fn usage(record: &RunRecord, strategy: StrategyIndex) -> Option<ProcessUsage> {
    let is_alone = |process: &&ProcessPlan| record.plan.roles_of(process).eq([Role::Strategy(strategy)]);
    let process = record.plan.processes.iter().find(is_alone)?;
    record.exits.iter().find(|exit| exit.process == process.name)?.usage
}

/// Summarizes every strategy of a run with several kinds of strategies. Allocates 24 bytes per
/// order during the call.
pub(super) fn summarize(
    record: &RunRecord,
    merged: &MergedRun,
    threads: &[ThreadSummary],
    ns_per_tick: f64,
) -> Vec<StrategySummary> {
    let (plan, trading) = (&record.plan, record.plan.trading());
    if !trading.has_several_kinds() && plan.isolation.only().is_some() {
        return Vec::new();
    }
    let mut times: Vec<StrategyTimes> = Vec::new();
    times.resize_with(trading.strategies.into(), StrategyTimes::default);
    for (id, row) in merged.orders() {
        let Some(times) = times.get_mut(id.strategy().as_usize()) else { continue };
        times.sent += u64::from(row.has(Point::StrategySend));
        if !merged.is_past_warm_up(row) {
            continue;
        }
        times.engine_ticks.push(engine_ticks(row));
        times.send_lag.extend(row.at(Point::Due).map(|due| row.began().saturating_sub(due)));
        let written = merged.trigger(id).and_then(|trigger| trigger.written);
        times.tick_to_trade.extend(written.map(|written| row.began().saturating_sub(written)));
    }
    let summarize_strategy = |(strategy, mut times): (StrategyIndex, StrategyTimes)| {
        let thread = plan.thread_of(Role::Strategy(strategy)).and_then(|thread| threads.get(thread));
        StrategySummary {
            strategy,
            kind: trading.strategy_kind(strategy).to_owned(),
            level: Some(plan.isolation.level_of(strategy)),
            sent: times.sent,
            rt_venue: distribution(&mut times.engine_ticks, ns_per_tick),
            send_lag: distribution(&mut times.send_lag, ns_per_tick),
            tick_to_trade: distribution(&mut times.tick_to_trade, ns_per_tick),
            gaps: thread.map_or(0, |thread| thread.gaps),
            longest_gap_ns: thread.map_or(0, |thread| thread.longest_gap_ns),
            usage: usage(record, strategy),
            tail: None,
        }
    };
    StrategyIndex::first(u16::MAX).zip(times).map(summarize_strategy).collect()
}

impl super::Summary {
    /// Adds to each strategy's summary the causes of its slowest orders.
    pub fn attach_tails(&mut self, tails: &[StrategyTail]) {
        for own in &mut self.strategies {
            own.tail = tails.iter().find(|tail| tail.strategy == own.strategy).cloned();
        }
    }
}
