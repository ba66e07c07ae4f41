//! Resource usage of the strategies at one isolation level in a run, strategy by strategy: CPU
//! time, orders, switches, faults and interrupts.

use protocol::index::StrategyIndex;
use protocol::labels::{Counter, StrategyCounter};
use protocol::plan::{Isolation, IsolationLevel, Role};
use serde::{Deserialize, Serialize};
use verdict::summary::{LevelDifference, Summary, ThreadSummary};

/// The resource usage of one set of a run's strategies with the same isolation level; in an A/A
/// test, a level has several sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelUsage {
    /// The isolation level.
    pub level: IsolationLevel,
    /// Number of earlier sets with the same level: above 0 in an A/A test.
    #[serde(default)]
    pub again: usize,
    /// Usage of each strategy of the set, without those whose log is not trusted.
    pub strategies: Vec<StrategyUsage>,
    /// Number of interrupts on the cores on which nothing but these strategies ran; null where they
    /// share their cores, or the kernel does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<u64>,
    /// Comparison of the level with threads, in a run in which the levels took turns; null in
    /// others, and for those threads themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<LevelDifference>,
}

/// The resource usage of one strategy's thread from the start of a run to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyUsage {
    /// Number of the strategy's orders that returned.
    pub returned: u64,
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Time from the thread's first to its last duty cycle, in nanoseconds.
    pub running_ns: u64,
    /// Number of involuntary context switches: the kernel preempted the thread.
    pub preempted: u64,
    /// Number of voluntary context switches: the thread slept or yielded.
    pub slept: u64,
    /// Number of page faults that were served from memory.
    pub minor_faults: u64,
    /// Number of page faults that read from a device.
    pub major_faults: u64,
}

impl StrategyUsage {
    fn from_thread(thread: &ThreadSummary) -> Self {
        let returned = StrategyCounter::LABELS.get(StrategyCounter::Returned.index());
        let returned = returned.map_or("", |label| label.name);
        let counts = thread.agents.iter().filter_map(|agent| agent.counters.get(returned));
        Self {
            returned: counts.fold(0, |sum, count| sum.saturating_add(*count)),
            cpu_ns: thread.cpu_ns,
            running_ns: thread.running_ns.unwrap_or(0),
            preempted: thread.involuntary_switches,
            slept: thread.voluntary_switches,
            minor_faults: thread.minor_faults,
            major_faults: thread.major_faults,
        }
    }

    /// Returns the strategy's CPU seconds for a million returned orders; `None` if no order
    /// returned.
    pub fn cpu_s_per_million(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.cpu_ns as f64 / 1e3 / self.returned as f64)
    }

    /// Converts one of the strategy's counts to a rate per second; `None` if its running time is
    /// not known.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        (self.running_ns > 0).then(|| count as f64 * 1e9 / self.running_ns as f64)
    }
}

impl LevelUsage {
    /// Returns the usage of each set of strategies with the same isolation level.
    pub fn from_summary(summary: &Summary) -> Vec<Self> {
        let plan = &summary.plan;
        let threads = |place: usize| {
            let strategies = StrategyIndex::first(plan.trading().strategies);
            let own = strategies.filter(move |strategy| plan.isolation.place_of(*strategy) == place);
            own.filter_map(|strategy| plan.thread_of(Role::Strategy(strategy)))
        };
        let places = plan.isolation.places().enumerate();
        let usage = |(place, (level, again)): (usize, (IsolationLevel, usize))| {
            let known = threads(place).filter_map(|thread| summary.processes.get(thread));
            let known = known.filter(|thread| !thread.untrusted).map(StrategyUsage::from_thread);
            Self {
                level,
                again,
                strategies: known.collect(),
                interrupts: interrupts(summary, &threads(place).collect::<Vec<_>>()),
                turns: turns(summary, place),
            }
        };
        places.map(usage).collect()
    }

    /// Returns the sum of the resource usage of all strategies of the set.
    pub fn total(&self) -> StrategyUsage {
        self.strategies.iter().fold(StrategyUsage::default(), |sum, own| StrategyUsage {
            returned: sum.returned.saturating_add(own.returned),
            cpu_ns: sum.cpu_ns.saturating_add(own.cpu_ns),
            running_ns: sum.running_ns.saturating_add(own.running_ns),
            preempted: sum.preempted.saturating_add(own.preempted),
            slept: sum.slept.saturating_add(own.slept),
            minor_faults: sum.minor_faults.saturating_add(own.minor_faults),
            major_faults: sum.major_faults.saturating_add(own.major_faults),
        })
    }
}

/// Returns the interrupts of the cores that only these threads of a run have.
fn interrupts(summary: &Summary, own: &[usize]) -> Option<u64> {
    let threads = &summary.plan.threads;
    let cores: Option<Vec<u32>> = own.iter().map(|at| threads.get(*at)?.core).collect();
    let mut cores = cores?;
    cores.sort_unstable();
    cores.dedup();
    let others = threads.iter().enumerate().filter(|(at, _)| !own.contains(at));
    if cores.is_empty()
        || others.into_iter().any(|(_, other)| other.core.is_none_or(|core| cores.contains(&core)))
    {
        return None;
    }
    let count =
        |core: &u32| summary.interrupts.iter().find(|found| found.core == *core).map(|found| found.count);
    cores.iter().map(count).sum()
}

/// Returns the comparison of a place with the first threads of a run whose levels took turns.
fn turns(summary: &Summary, place: usize) -> Option<LevelDifference> {
    let found = summary.crossover.as_ref()?;
    let is_against_threads = found.reference()?.level == Isolation::Thread && place != found.reference;
    found.levels.get(place).copied().filter(|_| is_against_threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::{IsolationLevels, Plan, ThreadPlan, Trading};
    use verdict::summary::{AgentSummary, CoreInterrupts};

    fn summary() -> Summary {
        let mut summary: Summary = crate::fixture("golden/summary.json");
        let levels: IsolationLevels = "process+thread+thread".parse().unwrap();
        let trading = Trading { orders: vec![10; 6], ..Trading::new(6, 1) };
        summary.plan = Plan { isolation: levels, ..Plan::for_trading(trading) }.arranged();
        let thread = |(at, plan): (usize, &ThreadPlan)| ThreadSummary {
            role: plan.name.clone(),
            cpu_ns: 1_000 * (at as u64 + 1),
            running_ns: Some(2_000_000_000),
            involuntary_switches: 10,
            minor_faults: 4,
            agents: vec![AgentSummary {
                role: plan.name.clone(),
                counters: [("returned".to_owned(), 100)].into(),
            }],
            ..ThreadSummary::default()
        };
        summary.processes = summary.plan.threads.iter().enumerate().map(thread).collect();
        summary
    }

    #[test]
    fn usage_is_that_of_the_strategies_of_a_place() {
        let mut summary = summary();
        let of = |place: usize, strategy: u16| {
            let thread = summary.plan.thread_of(Role::Strategy(StrategyIndex(strategy))).unwrap();
            assert_eq!(summary.plan.isolation.place_of(StrategyIndex(strategy)), place);
            summary.processes[thread].cpu_ns
        };
        let wanted = [[of(0, 0), of(0, 3)], [of(1, 1), of(1, 4)], [of(2, 2), of(2, 5)]];
        let found = LevelUsage::from_summary(&summary);
        let cpu: Vec<Vec<u64>> =
            found.iter().map(|own| own.strategies.iter().map(|one| one.cpu_ns).collect()).collect();
        assert_eq!(cpu, wanted);
        let places: Vec<_> = found.iter().map(|own| (own.level.kind(), own.again)).collect();
        assert_eq!(places, [(Isolation::Process, 0), (Isolation::Thread, 0), (Isolation::Thread, 1)]);
        let total = found[0].total();
        assert_eq!((total.returned, total.preempted), (200, 20));
        assert_eq!(total.per_second(total.minor_faults), Some(2.0), "of each strategy");
        summary.processes.iter_mut().for_each(|thread| thread.untrusted = true);
        assert!(LevelUsage::from_summary(&summary)[0].strategies.is_empty());
    }

    #[test]
    fn interrupts_are_known_of_cores_that_one_level_has_alone() {
        let mut summary = summary();
        summary.interrupts =
            (0..4).map(|core| CoreInterrupts { core, count: 100 + u64::from(core) }).collect();
        let isolation = summary.plan.isolation;
        let mut place = |core_of: &dyn Fn(usize) -> u32| {
            for thread in &mut summary.plan.threads {
                let strategy = thread.roles.iter().find_map(|role| match role {
                    Role::Strategy(strategy) => Some(isolation.place_of(*strategy)),
                    _ => None,
                });
                thread.core = Some(strategy.map_or(0, core_of));
            }
            LevelUsage::from_summary(&summary).iter().map(|own| own.interrupts).collect::<Vec<_>>()
        };
        assert_eq!(place(&|level| level as u32 + 1), [Some(101), Some(102), Some(103)]);
        assert_eq!(place(&|level| u32::from(level > 0) + 1), [Some(101), None, None], "two share a core");
        assert_eq!(place(&|_| 1), [None; 3]);
    }
}
