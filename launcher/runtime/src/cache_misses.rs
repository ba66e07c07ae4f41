//! Misses of the data TLB and of the last-level cache by strategies' threads, from the kernel's
//! performance events. The counters are the launcher's: a strategy does not notice them.

use perf_event::events::{Cache, CacheOp, CacheResult, WhichCache};
use perf_event::{Builder, Counter};
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, ProcessPlan, Role};
use record::kernel::{CacheMisses, StrategyMisses};
use std::io;

/// What is counted: read misses of the data TLB, then of the last-level cache.
const KINDS: [WhichCache; 2] = [WhichCache::DTLB, WhichCache::LL];
/// Maximum number of strategies whose misses are counted: each thread takes two descriptors.
const MAX_STRATEGIES: u16 = 64;
/// Length of a thread's name in the kernel, in bytes.
const NAME_BYTES: usize = 15;

struct StrategyCounters {
    strategy: StrategyIndex,
    counters: [Vec<Counter>; 2],
    /// The counts when the run began.
    before: [Option<u64>; 2],
}

/// The hardware counters of data-TLB and last-level-cache misses of a run's strategies, or the
/// reason why there are none.
#[derive(Default)]
pub struct MissCounters {
    strategies: Vec<StrategyCounters>,
    absent: Option<String>,
}

/// Returns why an event cannot be counted, and the remedy.
fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::ENOENT | nix::libc::EOPNOTSUPP | nix::libc::ENODEV) => {
            "the machine has no such counters, as many virtual machines".into()
        }
        Some(nix::libc::EACCES | nix::libc::EPERM) => {
            "not permitted: `sysctl kernel.perf_event_paranoid=1`, or CAP_PERFMON".into()
        }
        Some(nix::libc::ENOSYS) => "the kernel has no performance events here".into(),
        _ => format!("cannot be counted: {error}"),
    }
}

/// Returns the ids of the threads of a process that has one role, or of its thread of that name.
fn threads_of(pid: u32, name: Option<&str>) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let is_it = |task: &u32| match name {
        None => true,
        Some(name) => std::fs::read_to_string(format!("/proc/{pid}/task/{task}/comm"))
            .is_ok_and(|comm| comm.trim_end() == name.get(..NAME_BYTES).unwrap_or(name)),
    };
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).filter(is_it).collect()
}

fn open(thread: u32, which: WhichCache) -> io::Result<Counter> {
    let event = Cache { which, operation: CacheOp::READ, result: CacheResult::MISS };
    let mut counter = Builder::new().observe_pid(thread as i32).kind(event).build()?;
    counter.enable()?;
    Ok(counter)
}

/// Returns the sum of some counters, each scaled to the time for which the kernel counted it;
/// `None` if one was never counted.
fn sum(counters: &mut [Counter]) -> Option<u64> {
    let mut total = (!counters.is_empty()).then_some(0u64);
    for counter in counters {
        let read = counter.read_count_and_time().ok().filter(|read| read.time_running > 0);
        let scaled = read.map(|read| {
            (u128::from(read.count) * u128::from(read.time_enabled) / u128::from(read.time_running)) as u64
        });
        total = total.zip(scaled).map(|(total, scaled)| total.saturating_add(scaled));
    }
    total
}

impl MissCounters {
    /// Opens the data-TLB and cache-miss counters of a process's strategies, once its threads have
    /// reached the start barrier.
    pub fn attach(&mut self, plan: &Plan, process: &ProcessPlan, pid: u32) {
        for strategy in plan.roles_of(process).filter_map(|role| match role {
            Role::Strategy(index) if index < StrategyIndex(MAX_STRATEGIES) => Some(index),
            _ => None,
        }) {
            if self.absent.is_some() || self.strategies.iter().any(|of| of.strategy == strategy) {
                continue;
            }
            let thread = plan.thread_of(Role::Strategy(strategy)).map(|thread| &plan.threads[thread].name);
            let name = thread.map(String::as_str).filter(|_| process.threads.len() > 1);
            let threads = threads_of(pid, name);
            let open_all =
                |which| threads.iter().map(|thread| open(*thread, which)).collect::<io::Result<_>>();
            match (open_all(KINDS[0]), open_all(KINDS[1])) {
                (Ok(tlb), Ok(cache)) => {
                    let counters = [tlb, cache];
                    self.strategies.push(StrategyCounters { strategy, counters, before: [None; 2] });
                }
                (Err(error), _) | (_, Err(error)) => self.absent = Some(describe(&error)),
            }
        }
    }

    /// Records the miss counts at the run's start, which [`Self::read`] subtracts.
    pub fn begin(&mut self) {
        for of in &mut self.strategies {
            of.before = of.counters.each_mut().map(|counters| sum(counters));
        }
    }

    /// Returns the data-TLB and last-level-cache misses of each strategy since the run's start.
    pub fn read(&mut self) -> CacheMisses {
        let misses = |of: &mut StrategyCounters| {
            let before = of.before;
            let since = |kind: usize, counters: &mut Vec<Counter>| sum(counters)?.checked_sub(before[kind]?);
            let [tlb, cache] = &mut of.counters;
            StrategyMisses { strategy: of.strategy, dtlb: since(0, tlb), last_level: since(1, cache) }
        };
        let strategies =
            if self.absent.is_none() { self.strategies.iter_mut().map(misses).collect() } else { Vec::new() };
        CacheMisses { absent: self.absent.clone(), strategies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use planner::host::fake;

    #[test]
    fn misses_are_counted_or_their_absence_explained() {
        let (_, plan, _) = planned("", &fake::two_core_vm().machine()).unwrap();
        let mut counters = MissCounters::default();
        plan.processes.iter().for_each(|process| counters.attach(&plan, process, std::process::id()));
        counters.begin();
        let memory: Vec<u64> = (0..1 << 20).collect();
        std::hint::black_box(memory.iter().sum::<u64>());
        let CacheMisses { absent, strategies } = counters.read();
        match absent {
            Some(why) => assert!(strategies.is_empty() && !why.is_empty()),
            None => assert_eq!(strategies.len(), 1, "only those of the strategy"),
        }
    }

    #[test]
    fn reason_names_remedy() {
        let message = |errno| describe(&io::Error::from_raw_os_error(errno));
        assert!(message(nix::libc::ENOENT).contains("virtual machines"));
        assert!(message(nix::libc::EACCES).contains("perf_event_paranoid=1"));
        assert!(message(nix::libc::EMFILE).contains("cannot be counted"));
    }

    #[test]
    fn threads_are_found_by_their_name() {
        let own = std::thread::Builder::new().name("a-long-thread-name".into());
        let found =
            own.spawn(|| threads_of(std::process::id(), Some("a-long-thread-name"))).unwrap().join().unwrap();
        assert_eq!(found.len(), 1);
        assert!(threads_of(std::process::id(), None).len() > 1);
    }
}
