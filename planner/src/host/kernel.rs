//! The kernel's statistics of CPU cores: read before and after a run, and subtracted.
//!
//! Every file may be missing or malformed: then its figures are absent, and the account records
//! that.

use super::cgroups;
use super::files::text;
use record::kernel::{CoreAccount, CpuThrottling, KernelAccount};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Hundredths of a second: what `/proc/stat` counts in on every Linux for x86-64 (`USER_HZ`).
const HUNDREDTH_NS: u64 = 10_000_000;
const MAX_NAMED: usize = 3;

/// The kernel's counters for the machine's cores at one time: steal time, interrupts, run-queue
/// delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// By core: steal, interrupts, soft interrupts, in hundredths of a second.
    times: BTreeMap<u32, [u64; 3]>,
    /// By core: nanoseconds in which threads waited for it.
    delays: BTreeMap<u32, u64>,
    /// By core: interrupts by name.
    interrupts: BTreeMap<u32, BTreeMap<String, u64>>,
    throttled: Option<CpuThrottling>,
    may_trace: bool,
}

impl KernelCounts {
    /// Reads the kernel's current counters of this machine's cores.
    pub fn now() -> Self {
        Self::at(Path::new("/"))
    }

    fn at(root: &Path) -> Self {
        let text = |path: &str| text(root, path);
        let group = cgroups::own_cgroups(root).into_iter().find(|(controllers, _)| controllers.is_empty());
        let throttled =
            group.and_then(|(_, group)| throttled(&text(&format!("sys/fs/cgroup{group}/cpu.stat"))));
        Self {
            times: times(&text("proc/stat")),
            delays: delays(&text("proc/schedstat")),
            interrupts: interrupts(&text("proc/interrupts")),
            throttled,
            may_trace: root.join("sys/kernel/tracing/osnoise").is_dir(),
        }
    }

    /// Returns how much the kernel's counters of the given cores have grown since `earlier`.
    pub fn since(&self, earlier: &Self, cores: &BTreeSet<u32>) -> KernelAccount {
        let core = |core: &u32| {
            let pair = (self.times.get(core), earlier.times.get(core));
            let time = |which: usize| {
                let (now, then) = (pair.0?[which], pair.1?[which]);
                Some(now.saturating_sub(then).saturating_mul(HUNDREDTH_NS))
            };
            let delay = self.delays.get(core).zip(earlier.delays.get(core));
            let pair = self.interrupts.get(core).zip(earlier.interrupts.get(core));
            let by_name = pair.map(|(now, then)| {
                let increase = |(name, count): (&String, &u64)| {
                    (name.clone(), count.saturating_sub(then.get(name).copied().unwrap_or(0)))
                };
                let mut all: Vec<(String, u64)> =
                    now.iter().map(increase).filter(|(_, count)| *count > 0).collect();
                all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                all
            });
            CoreAccount {
                core: *core,
                steal_ns: time(0),
                irq_ns: time(1),
                softirq_ns: time(2),
                run_delay_ns: delay.map(|(now, then)| now.saturating_sub(*then)),
                interrupts: by_name
                    .as_ref()
                    .map(|all| all.iter().map(|(_, count)| *count).fold(0, u64::saturating_add)),
                top_interrupts: by_name
                    .map_or_else(Vec::new, |all| all.into_iter().take(MAX_NAMED).collect()),
            }
        };
        let throttled = self.throttled.zip(earlier.throttled).map(|(now, then)| CpuThrottling {
            times: now.times.saturating_sub(then.times),
            ns: now.ns.saturating_sub(then.ns),
        });
        KernelAccount {
            cores: cores.iter().map(core).collect(),
            throttled,
            absent: self.absent(),
            launcher: None,
        }
    }

    fn absent(&self) -> Vec<String> {
        [
            (self.times.is_empty(), "/proc/stat: no steal, no time in interrupts"),
            (
                self.delays.is_empty(),
                "/proc/schedstat: how long threads waited for a core (a kernel with CONFIG_SCHEDSTATS has it)",
            ),
            (self.interrupts.is_empty(), "/proc/interrupts: which interrupts came"),
            (self.throttled.is_none(), "cpu.stat of the cgroup: throttling (cgroup v2 with the cpu controller has it)"),
            (
                !self.may_trace,
                "the osnoise and timerlat tracers, which tell interrupts, soft interrupts, threads and the hypervisor apart \
                 (root, tracefs, a kernel with CONFIG_OSNOISE_TRACER; rtla reads them)",
            ),
        ]
        .into_iter()
        .filter(|(is_absent, _)| *is_absent)
        .map(|(_, description)| description.to_owned())
        .collect()
    }
}

fn core_of(word: &str) -> Option<u32> {
    word.strip_prefix("cpu")?.parse().ok()
}

/// `cpu0 user nice system idle iowait irq softirq steal …`
fn times(text: &str) -> BTreeMap<u32, [u64; 3]> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let at = |column: usize| fields.get(column)?.parse().ok();
        Some((core_of(fields.first()?)?, [at(8)?, at(6)?, at(7)?]))
    };
    text.lines().filter_map(line).collect()
}

/// `cpu0 yields 0 schedules idles wakeups local running waiting slices`: times in nanoseconds.
fn delays(text: &str) -> BTreeMap<u32, u64> {
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let core = core_of(fields.next()?)?;
        Some((core, fields.nth(7)?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// A head with the cores, then a line for each kind: its name, a count for each core, what it is.
fn interrupts(text: &str) -> BTreeMap<u32, BTreeMap<String, u64>> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let cores: Vec<u32> =
        head.split_whitespace().filter_map(|word| word.strip_prefix("CPU")?.parse().ok()).collect();
    let mut found: BTreeMap<u32, BTreeMap<String, u64>> = BTreeMap::new();
    for line in lines {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let counts: Vec<u64> = fields.iter().take(cores.len()).map_while(|word| word.parse().ok()).collect();
        if counts.len() < cores.len() {
            continue;
        }
        let description: Vec<&str> = fields[cores.len()..].to_vec();
        // A device is known by its last word, what the kernel itself does by all of them.
        let is_device = key.trim().bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_device {
            description.last().map_or_else(String::new, |word| (*word).to_owned())
        } else {
            description.join(" ")
        };
        let name = if name.is_empty() { key.trim().to_owned() } else { name };
        for (core, count) in cores.iter().zip(counts) {
            let sum = found.entry(*core).or_default().entry(name.clone()).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    found
}

fn throttled(text: &str) -> Option<CpuThrottling> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
    Some(CpuThrottling {
        times: value("nr_throttled ")?,
        ns: value("throttled_usec ")?.saturating_mul(1_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;

    fn counts(steal: u64, delay: u64, timer: u64, throttled: u64) -> KernelCounts {
        let tree = fake::two_core_vm();
        tree.put(
            "proc/stat",
            &format!("cpu 1 2\ncpu0 9 9 9 9 9 3 4 {steal} 0 0\ncpu1 9 9 9 9 9 0 0 0 0 0\nintr 5\n"),
        );
        tree.put("proc/schedstat", &format!("version 17\ncpu0 0 0 1 2 3 4 77 {delay} 5\ndomain0 3 0\n"));
        let interrupts = format!(
            "    CPU0  CPU1\n 24:  7 0  IO-APIC 5-edge  disk\nLOC: {timer} 1 Local timer interrupts\nERR: 0\n"
        );
        tree.put("proc/interrupts", &interrupts);
        tree.put("proc/self/cgroup", "0::/a\n");
        tree.put(
            "sys/fs/cgroup/a/cpu.stat",
            &format!("usage_usec 3\nnr_throttled {throttled}\nthrottled_usec {}\n", throttled * 1_000),
        );
        KernelCounts::at(tree.root())
    }

    #[test]
    fn since_subtracts_the_counts_of_each_core() {
        let account = counts(7, 900, 1_250, 3).since(&counts(2, 400, 1_000, 1), &BTreeSet::from([0, 1]));
        let [first, second] = &account.cores[..] else { panic!("{account:?}") };
        assert_eq!(
            (first.steal_ns, first.irq_ns, first.run_delay_ns),
            (Some(50_000_000), Some(0), Some(500))
        );
        assert_eq!(
            (first.interrupts, first.top_interrupts[0].clone()),
            (Some(250), ("Local timer interrupts".into(), 250))
        );
        assert_eq!((second.steal_ns, second.run_delay_ns, second.interrupts), (Some(0), None, Some(0)));
        assert_eq!(account.throttled, Some(CpuThrottling { times: 2, ns: 2_000_000 }));
        assert!(
            account.absent.iter().any(|description| description.contains("osnoise")),
            "{:?}",
            account.absent
        );
    }

    #[test]
    fn missing_kernel_facts_are_named() {
        let empty = KernelCounts::at(fake::two_core_vm().root());
        let account = empty.since(&empty, &BTreeSet::from([0]));
        assert_eq!(account.absent.len(), 5, "{:?}", account.absent);
        assert_eq!(account.cores, [CoreAccount { core: 0, ..CoreAccount::default() }]);
        for text in ["", "cpu0", "cpuX 1 2 3 4 5 6 7 8 9", "CPU0 CPU1\n 1: 2\n x\n:"] {
            assert!(times(text).is_empty() && delays(text).is_empty() && throttled(text).is_none());
            assert!(interrupts(text).is_empty(), "{text}");
        }
        KernelCounts::now();
    }
}
