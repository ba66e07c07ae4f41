//! Each strategy by itself, in a run whose strategies are of several kinds or programs of somebody
//! else's: what its orders cost, what its process took, and why its slowest orders were slow.

use super::figures::{
    Distribution, SAMPLES_FOR_P50, SAMPLES_FOR_P99, SAMPLES_FOR_P999, quantile, rt_venue, to_ns,
};
use super::threads::ThreadSummary;
use crate::cause::{Cause, Causes};
use crate::merge::Merged;
use crate::record::{ProcessUsage, RunRecord};
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};

/// One strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrategySummary {
    /// Which one, from 0.
    pub strategy: u16,
    /// Its kind: one of bulkhead's own, or `exec:` and a command.
    pub kind: String,
    /// Orders that it sent.
    pub sent: u64,
    /// What the engine added to its orders.
    pub rt_venue: Distribution,
    /// t1 − due of its orders: how late it was. Of orders that were due at a time.
    pub slip: Distribution,
    /// From the touch that triggered an order to its t1: how fast it is.
    pub tick_to_trade: Distribution,
    /// How often it was away from its duty cycles for longer than 3 µs.
    pub gaps: u64,
    /// The longest time between the starts of two of its duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// What the kernel says of its process; null: it shares one with others.
    pub usage: Option<ProcessUsage>,
    /// Why its slowest orders were slow; null: it has too few.
    pub tail: Option<StrategyTail>,
}

impl StrategySummary {
    /// CPU time of its process from the barrier on, in nanoseconds.
    pub fn cpu_ns(&self) -> Option<u64> {
        let usage = self.usage?;
        usage.cpu_ns?.checked_sub(usage.startup_cpu_ns?)
    }
}

/// Why the slowest 1 % of a strategy's orders were slow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyTail {
    /// The strategy.
    pub strategy: u16,
    /// Its orders that were explained.
    pub explained: u64,
    /// Of them, those that a gap or the backlog behind one touched.
    pub touched: u64,
    /// How many the slowest 1 % are.
    pub orders: u64,
    /// Their time, in nanoseconds, by cause: machine, memory, backlog, queueing, usual,
    /// unexplained, wake-up.
    pub causes_ns: Causes,
}

impl StrategyTail {
    /// The share of a cause in that time, 0 to 1.
    pub fn share(&self, cause: Cause) -> Option<f64> {
        let all = self.causes_ns.total();
        (all > 0).then(|| self.causes_ns.of(cause) as f64 / all as f64)
    }
}

/// The times of orders, in ticks.
#[derive(Default)]
struct Times {
    rt_venue: Vec<u64>,
    slip: Vec<u64>,
    tick_to_trade: Vec<u64>,
}

/// The same figures as of a histogram, exact.
fn distribution(times: &mut [u64], ns_per_tick: f64) -> Distribution {
    let ns = |ticks| to_ns(ticks, ns_per_tick);
    let (min_ns, max_ns) = (times.iter().min().copied().map(ns), times.iter().max().copied().map(ns));
    let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
    let mean_ns = (!times.is_empty()).then(|| sum as f64 * ns_per_tick / times.len() as f64);
    let count = times.len() as u64;
    let mut at = |share, needed: u64| quantile(times, share, needed as usize).map(ns);
    Distribution {
        count,
        min_ns,
        p50_ns: at(0.5, SAMPLES_FOR_P50),
        p90_ns: at(0.9, 100),
        p99_ns: at(0.99, SAMPLES_FOR_P99),
        p999_ns: at(0.999, SAMPLES_FOR_P999),
        p9999_ns: at(0.9999, 100_000),
        max_ns,
        mean_ns,
    }
}

/// What the kernel said of the process that is the strategy's alone.
fn usage(record: &RunRecord, plan: &Plan, strategy: u16) -> Option<ProcessUsage> {
    let is_alone = |process: &&protocol::plan::ProcessPlan| {
        let mut roles = plan.roles_of(process);
        roles.next() == Some(Role::Strategy(strategy)) && roles.next().is_none()
    };
    let process = plan.processes.iter().find(is_alone)?;
    record.exits.iter().find(|exit| exit.process == process.name)?.usage
}

/// Every strategy of a run that tells them apart; takes 24 bytes an order while it counts.
pub(super) fn summarise(
    record: &RunRecord,
    merged: &Merged,
    threads: &[ThreadSummary],
    ns_per_tick: f64,
) -> Vec<StrategySummary> {
    let (plan, trading) = (&record.plan, record.plan.trading());
    if !trading.has_several_kinds() {
        return Vec::new();
    }
    let mut times: Vec<Times> = Vec::new();
    times.resize_with(trading.strategies.into(), Times::default);
    let mut sent = vec![0; times.len()];
    for (id, row) in merged.orders() {
        let Some(times) = times.get_mut(usize::from(id.strategy())) else { continue };
        sent[usize::from(id.strategy())] += u64::from(row.has(Point::StrategySend));
        if !row.is_measured() {
            continue;
        }
        times.rt_venue.push(rt_venue(row));
        times.slip.extend(row.at(Point::Due).map(|due| row.began().saturating_sub(due)));
        let written = merged.trigger(id).and_then(|trigger| trigger.written);
        times.tick_to_trade.extend(written.map(|written| row.began().saturating_sub(written)));
    }
    let one = |(strategy, mut times): (u16, Times)| {
        let thread = plan.thread_of(Role::Strategy(strategy)).and_then(|thread| threads.get(thread));
        StrategySummary {
            strategy,
            kind: trading.strategy_kind(strategy).to_owned(),
            sent: sent[usize::from(strategy)],
            rt_venue: distribution(&mut times.rt_venue, ns_per_tick),
            slip: distribution(&mut times.slip, ns_per_tick),
            tick_to_trade: distribution(&mut times.tick_to_trade, ns_per_tick),
            gaps: thread.map_or(0, |thread| thread.gaps),
            longest_gap_ns: thread.map_or(0, |thread| thread.longest_gap_ns),
            usage: usage(record, plan, strategy),
            tail: None,
        }
    };
    (0..).zip(times).map(one).collect()
}

impl super::Summary {
    /// Adds to each strategy why its slowest orders were slow.
    pub fn explain(&mut self, tails: &[StrategyTail]) {
        for own in &mut self.strategies {
            own.tail = tails.iter().find(|tail| tail.strategy == own.strategy).cloned();
        }
    }
}
