//! The costs of strategies at each isolation level besides latency: CPU time, memory, faults,
//! switches, cache misses, start and restart.

use super::IncidentSummary;
use super::threads::ThreadSummary;
use protocol::index::StrategyIndex;
use protocol::labels::{Counter, StrategyCounter};
use protocol::plan::{IsolationLevel, Role};
use record::run::{ProcessUsage, RunRecord};
use serde::{Deserialize, Serialize};

/// The costs, besides latency, of a run's strategies at one isolation level. Means are over the
/// strategies of the level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrategyCosts {
    /// The isolation level.
    pub isolation: IsolationLevel,
    /// Number of strategies at the level.
    pub strategies: u64,
    /// CPU seconds of the level's strategies for a million of their orders; null if none returned.
    pub cpu_s_per_million: Option<f64>,
    /// CPU seconds for each second in which a strategy had nothing to do; null if it was never
    /// idle.
    pub idle_cpu: Option<f64>,
    /// Private memory of a strategy's process, or its share of that of its group, mean in bytes;
    /// null for threads, which have none of their own, and where the kernel does not show it.
    pub private_bytes: Option<f64>,
    /// Proportional set size (PSS) of a strategy's process, mean in bytes; null for threads, and
    /// where it was not saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_bytes: Option<f64>,
    /// Memory that a strategy's process shares with others, mean in bytes.
    pub shared_bytes: Option<f64>,
    /// Page tables of a strategy's process, mean in bytes.
    pub page_table_bytes: Option<f64>,
    /// Memory of a strategy's process that is mapped by huge pages, mean in bytes.
    pub huge_bytes: Option<f64>,
    /// Minor page faults of a strategy's thread, mean.
    pub minor_faults: f64,
    /// Voluntary context switches of a strategy's thread, mean.
    pub voluntary_switches: f64,
    /// Involuntary context switches of a strategy's thread, mean.
    pub involuntary_switches: f64,
    /// Misses of the data TLB for each order; null where they cannot be counted.
    pub dtlb_misses: Option<f64>,
    /// Misses of the last-level cache for each order; null where they cannot be counted.
    pub last_level_misses: Option<f64>,
    /// Time from the start of a strategy's process until it was ready to trade, mean in
    /// nanoseconds; null for threads.
    pub startup_ns: Option<f64>,
    /// Time from the detection of a strategy's death until its successor ran duty cycles, mean in
    /// nanoseconds; null without a restart.
    pub restart_ns: Option<f64>,
}

impl StrategyCosts {
    /// Combines the costs of several runs at one isolation level into one, passing the values of
    /// each figure to `combine`; `None` for no runs.
    pub fn combine(all: &[Self], combine: fn(&[f64]) -> Option<f64>) -> Option<Self> {
        let middle =
            |figure: fn(&Self) -> Option<f64>| combine(&all.iter().filter_map(figure).collect::<Vec<_>>());
        let first = all.first()?;
        Some(Self {
            isolation: first.isolation,
            strategies: first.strategies,
            cpu_s_per_million: middle(|of| of.cpu_s_per_million),
            idle_cpu: middle(|of| of.idle_cpu),
            private_bytes: middle(|of| of.private_bytes),
            pss_bytes: middle(|of| of.pss_bytes),
            shared_bytes: middle(|of| of.shared_bytes),
            page_table_bytes: middle(|of| of.page_table_bytes),
            huge_bytes: middle(|of| of.huge_bytes),
            minor_faults: middle(|of| Some(of.minor_faults))?,
            voluntary_switches: middle(|of| Some(of.voluntary_switches))?,
            involuntary_switches: middle(|of| Some(of.involuntary_switches))?,
            dtlb_misses: middle(|of| of.dtlb_misses),
            last_level_misses: middle(|of| of.last_level_misses),
            startup_ns: middle(|of| of.startup_ns),
            restart_ns: middle(|of| of.restart_ns),
        })
    }
}

/// The threads, usages and misses of one level's strategies.
#[derive(Default)]
struct LevelParts<'a> {
    strategies: Vec<StrategyIndex>,
    threads: Vec<&'a ThreadSummary>,
    /// The usage of each strategy's process, and how many strategies share that.
    usages: Vec<(ProcessUsage, usize)>,
    misses: [Vec<f64>; 2],
}

fn counter(thread: &ThreadSummary, counter: StrategyCounter) -> u64 {
    let name = StrategyCounter::LABELS.get(counter.index()).map_or("", |label| label.name);
    thread
        .agents
        .iter()
        .filter_map(|agent| agent.counters.get(name))
        .fold(0, |sum, count| sum.saturating_add(*count))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Returns the CPU time that threads used while they had nothing to do, for each second of that.
fn idle_cpu(threads: &[&ThreadSummary]) -> Option<f64> {
    let idle = |thread: &&ThreadSummary| {
        let running = thread.running_ns? as f64;
        let busy = running * thread.utilization?;
        Some(((thread.cpu_ns as f64 - busy).max(0.0), running - busy))
    };
    let (cpu, time) =
        threads.iter().filter_map(idle).fold((0.0, 0.0), |(a, b), (cpu, time)| (a + cpu, b + time));
    (time > 0.0).then(|| cpu / time)
}

impl LevelParts<'_> {
    fn costs(&self, isolation: IsolationLevel, incidents: &[IncidentSummary]) -> StrategyCosts {
        let Self { strategies, threads, usages, misses } = self;
        let returned: u64 = threads.iter().map(|thread| counter(thread, StrategyCounter::Returned)).sum();
        let cpu_ns: u64 = threads.iter().map(|thread| thread.cpu_ns).fold(0, u64::saturating_add);
        // A strategy of a group has its share of their process.
        let of_usage = |figure: fn(&ProcessUsage) -> Option<u64>| {
            let share = |(usage, sharing): &(ProcessUsage, usize)| {
                Some(figure(usage)? as f64 / (*sharing).max(1) as f64)
            };
            mean(usages.iter().filter_map(share))
        };
        let of_thread = |figure: fn(&ThreadSummary) -> u64| {
            mean(threads.iter().map(|thread| figure(thread) as f64)).unwrap_or(0.0)
        };
        let per_order = |counts: &[f64]| {
            let counted = !counts.is_empty() && counts.len() == threads.len() && returned > 0;
            counted.then(|| counts.iter().sum::<f64>() / returned as f64)
        };
        let restart = |incident: &IncidentSummary| {
            Some(incident.detect_to_repair_ns?.saturating_add(incident.repair_to_restart_ns?) as f64)
        };
        let own = incidents.iter().filter(|incident| strategies.contains(&incident.strategy));
        StrategyCosts {
            isolation,
            strategies: strategies.len() as u64,
            cpu_s_per_million: (returned > 0).then(|| cpu_ns as f64 / 1e3 / returned as f64),
            idle_cpu: idle_cpu(threads),
            private_bytes: of_usage(|usage| usage.private_bytes),
            pss_bytes: of_usage(|usage| usage.pss_bytes),
            shared_bytes: of_usage(|usage| usage.resident_shared_bytes),
            page_table_bytes: of_usage(|usage| usage.page_table_bytes),
            huge_bytes: of_usage(|usage| usage.huge_bytes),
            minor_faults: of_thread(|thread| thread.minor_faults),
            voluntary_switches: of_thread(|thread| thread.voluntary_switches),
            involuntary_switches: of_thread(|thread| thread.involuntary_switches),
            dtlb_misses: per_order(&misses[0]),
            last_level_misses: per_order(&misses[1]),
            startup_ns: mean(usages.iter().filter_map(|(usage, _)| usage.startup_ns).map(|ns| ns as f64)),
            restart_ns: mean(own.filter_map(restart)),
        }
    }
}

/// Summarizes the costs of each level's strategies, in the order of the levels.
pub(super) fn summarize(
    record: &RunRecord,
    threads: &[ThreadSummary],
    incidents: &[IncidentSummary],
) -> Vec<StrategyCosts> {
    let plan = &record.plan;
    let mut parts: Vec<(IsolationLevel, LevelParts<'_>)> =
        plan.isolation.distinct().map(|level| (level, LevelParts::default())).collect();
    for strategy in StrategyIndex::first(plan.trading().strategies) {
        let level = plan.isolation.level_of(strategy);
        let Some((_, part)) = parts.iter_mut().find(|(other, _)| *other == level) else { continue };
        part.strategies.push(strategy);
        let role = Role::Strategy(strategy);
        let thread = plan.thread_of(role).and_then(|thread| threads.get(thread));
        part.threads.extend(thread.filter(|thread| !thread.untrusted));
        let process = plan.process_of(role).map(|process| &plan.processes[process]);
        let sharing = process.map_or(0, |process| plan.strategies_of(process).len());
        let process = process.filter(|_| sharing > 0);
        let exit = process.and_then(|process| record.exits.iter().find(|exit| exit.process == process.name));
        part.usages.extend(exit.and_then(|exit| exit.usage).map(|usage| (usage, sharing)));
        let misses = record.misses.strategies.iter().find(|misses| misses.strategy == strategy);
        for (kind, count) in
            misses.into_iter().flat_map(|misses| [misses.dtlb, misses.last_level]).enumerate()
        {
            part.misses[kind].extend(count.map(|count| count as f64));
        }
    }
    let used = parts.iter().filter(|(_, part)| !part.strategies.is_empty());
    used.map(|(level, part)| part.costs(*level, incidents)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::threads::AgentSummary;
    use protocol::plan::{Isolation, IsolationLevels, Plan, ProcessPlan, Trading};
    use record::kernel::StrategyMisses;
    use record::run::{ProcessExit, RunOutcome};

    fn thread(strategy: StrategyIndex, cpu_ns: u64, returned: u64) -> ThreadSummary {
        ThreadSummary {
            role: format!("strategy-{strategy}"),
            cpu_ns,
            running_ns: Some(1_000_000_000),
            utilization: Some(0.25),
            minor_faults: 4,
            voluntary_switches: 10 * u64::from(strategy.0),
            agents: vec![AgentSummary {
                role: format!("strategy-{strategy}"),
                counters: [("returned".to_owned(), returned)].into(),
            }],
            ..ThreadSummary::default()
        }
    }

    fn record(isolation: impl Into<IsolationLevels>) -> RunRecord {
        let trading = Trading { orders: vec![10, 10], ..Trading::new(2, 1) };
        let plan = Plan { isolation: isolation.into(), ..Plan::for_trading(trading) }.arranged();
        let exit = |process: &ProcessPlan, private: u64| ProcessExit {
            process: process.name.clone(),
            usage: Some(ProcessUsage {
                private_bytes: Some(private),
                page_table_bytes: Some(4096),
                startup_ns: Some(private),
                ..ProcessUsage::default()
            }),
            ..ProcessExit::default()
        };
        let exits = plan.processes.iter().zip([100, 300, 900]).map(|(process, bytes)| exit(process, bytes));
        let exits = exits.collect();
        RunRecord { exits, ..RunRecord::new(plan, RunOutcome::Complete) }
    }

    #[test]
    fn costs_are_those_of_strategies_alone() {
        let mut record = record(Isolation::Process);
        let threads = [
            thread(StrategyIndex(0), 500_000_000, 300),
            thread(StrategyIndex(1), 250_000_000, 700),
            thread(StrategyIndex(9), 9, 9),
        ];
        let restarted = IncidentSummary {
            strategy: StrategyIndex(1),
            detect_to_repair_ns: Some(20),
            repair_to_restart_ns: Some(40),
            ..IncidentSummary::default()
        };
        let [found] = &summarize(&record, &threads, &[restarted])[..] else { panic!("one level") };
        assert!(found.isolation == Isolation::Process && found.strategies == 2, "{found:?}");
        assert_eq!(found.cpu_s_per_million, Some(750.0));
        // 0.25 s and nothing of 0.75 s each.
        assert_eq!(found.idle_cpu, Some(0.25 / 1.5));
        assert_eq!((found.private_bytes, found.startup_ns), (Some(200.0), Some(200.0)));
        assert_eq!((found.page_table_bytes, found.shared_bytes), (Some(4096.0), None));
        assert_eq!((found.minor_faults, found.voluntary_switches), (4.0, 5.0));
        assert_eq!((found.restart_ns, found.dtlb_misses), (Some(60.0), None));
        let misses = |strategy| StrategyMisses { strategy, dtlb: Some(4_000), last_level: None };
        record.misses.strategies = vec![misses(StrategyIndex(0))];
        assert_eq!(summarize(&record, &threads, &[])[0].dtlb_misses, None, "not of all of them");
        record.misses.strategies.push(misses(StrategyIndex(1)));
        let found = &summarize(&record, &threads, &[])[0];
        assert_eq!((found.dtlb_misses, found.last_level_misses), (Some(8.0), None));
    }

    #[test]
    fn strategy_of_group_has_its_share_of_memory() {
        let levels: IsolationLevels = "process*2".parse().unwrap();
        let threads = [thread(StrategyIndex(0), 1, 1), thread(StrategyIndex(1), 1, 1)];
        let found = summarize(&record(levels), &threads, &[]);
        let [found] = found.as_slice() else { panic!("one level: {found:?}") };
        assert_eq!((found.strategies, found.private_bytes), (2, Some(50.0)));
        assert_eq!((found.page_table_bytes, found.startup_ns), (Some(2048.0), Some(100.0)));
    }

    #[test]
    fn threads_have_no_memory_of_their_own() {
        let found = summarize(
            &record(Isolation::Thread),
            &[thread(StrategyIndex(0), 1, 1), thread(StrategyIndex(1), 1, 1)],
            &[],
        );
        assert_eq!((found[0].strategies, found[0].private_bytes, found[0].startup_ns), (2, None, None));
    }
}
