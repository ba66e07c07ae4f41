//! Fitness: whether latencies may be quoted, in the same words on every screen, page and list.
//!
//! A run has its verdict from its summary. An experiment has it from its runs. Benchmarks without
//! runs of the engine (lab, board) have it from the machine and the cores that they used.

use crate::cpu_list;
use crate::machine::Machine;
use crate::numbers::{counted, plain, plural};
use protocol::plan::{Idle, Plan, Role, ThreadPlan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The text of the verdict that a run's latencies may be quoted.
pub const FIT: &str = "fit for latency claims";
/// The text of the verdict that a run's latencies may not be quoted.
pub const UNFIT: &str = "not fit for latency claims";
const MAX_REASONS: usize = 12;

/// The verdict whether latencies may be quoted, with the reasons against it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fitness {
    /// Whether the latencies may be quoted.
    pub is_fit: bool,
    /// Reasons against quoting the latencies, the gravest first; empty if they may be quoted.
    pub reasons: Vec<String>,
}

impl Fitness {
    /// Creates the verdict on a run's latencies from the reasons against quoting them: fit if none.
    pub fn new(reasons: Vec<String>) -> Self {
        Self { is_fit: reasons.is_empty(), reasons }
    }

    /// Creates the verdict that latencies of the deterministic simulation may not be quoted.
    pub fn simulated() -> Self {
        Self::new(vec!["simulated time: it counts steps, not nanoseconds".into()])
    }

    /// Creates the verdict on the latencies of several runs, each with its own verdict and reasons.
    /// `planned` is the number of runs that were to be made.
    pub fn from_runs<'a>(runs: impl Iterator<Item = (bool, &'a [String])>, planned: usize) -> Self {
        let runs: Vec<_> = runs.collect();
        let fit = runs.iter().filter(|(is_fit, _)| *is_fit).count();
        if fit == planned && planned > 0 {
            return Self { is_fit: true, reasons: Vec::new() };
        }
        let mut reasons = vec![format!("{fit} of {planned} runs are fit")];
        reasons.extend(reason_kinds(runs.iter().map(|(_, reasons)| *reasons)));
        Self { is_fit: false, reasons }
    }

    /// Creates the verdict on the latencies of a benchmark of `agents` threads on `cores`, which
    /// has no runs of the engine. `unfit` are the reasons for which `launcher doctor` called the
    /// machine unfit before.
    pub fn from_machine(machine: &Machine, cores: &[u32], agents: usize, unfit: &[String]) -> Self {
        let used: BTreeSet<u32> = cores.iter().copied().collect();
        let mut reasons = unfit.to_vec();
        if used.is_empty() {
            reasons.push(NOT_PINNED.to_owned());
        } else if used.len() == 1 && agents > 1 {
            reasons.push(SINGLE_CORE.to_owned());
        } else if used.len() < agents {
            let (cores, count) = (cpu_list::format(&used.iter().copied().collect::<Vec<_>>()), used.len());
            reasons.push(format!(
                "{agents} threads share {count} cores ({cores}): each waits while another runs. Allow more cores, or use fewer threads"
            ));
        }
        reasons.extend(sibling_reason(machine, &used));
        reasons.extend((!machine.tsc_invariant).then(|| NO_TSC.to_owned()));
        reasons.extend(governor_reason(machine));
        Self::new(reasons)
    }

    /// Returns the verdict on the latencies, without its reasons.
    pub const fn verdict(&self) -> &'static str {
        if self.is_fit { FIT } else { UNFIT }
    }

    /// Returns the verdict on the latencies with its first two reasons, on one line.
    pub fn sentence(&self) -> String {
        self.with_reasons(2)
    }

    /// Returns the verdict on the latencies with its first reason, on one line.
    pub fn brief(&self) -> String {
        self.with_reasons(1)
    }

    fn with_reasons(&self, max: usize) -> String {
        let shown = self.reasons.iter().take(max).map(String::as_str).collect::<Vec<_>>().join("; ");
        let more = match self.reasons.len().saturating_sub(max) {
            0 => String::new(),
            more => format!(" (and {})", counted(more as u64, "more reason")),
        };
        if shown.is_empty() { self.verdict().into() } else { format!("{}: {shown}{more}", self.verdict()) }
    }
}

/// Returns the text of a reason in front of its colon, without figures.
fn reason_kind(reason: &str) -> String {
    let head = reason.split(':').next().unwrap_or(reason);
    let is_figure =
        |word: &&str| word.contains(|c: char| c.is_ascii_digit()) || ["ns", "µs", "ms", "s"].contains(word);
    head.split(' ').filter(|word| !is_figure(word)).collect::<Vec<_>>().join(" ")
}

/// One reason of each kind, with the number of runs that have one, the most frequent kind first.
/// Reasons of one kind differ by their figures; the kind is the text in front of the colon.
fn reason_kinds<'a>(runs: impl Iterator<Item = &'a [String]>) -> Vec<String> {
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for reasons in runs {
        let of_run: BTreeMap<String, &str> =
            reasons.iter().rev().map(|reason| (reason_kind(reason), reason.as_str())).collect();
        for (kind, reason) in of_run {
            kinds.entry(kind).or_insert((0, reason)).0 += 1;
        }
    }
    let mut kinds: Vec<(usize, &str)> = kinds.into_values().collect();
    kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let unit = |count| if count == 1 { "run" } else { "runs, e.g." };
    let mut listed: Vec<String> = kinds
        .iter()
        .take(MAX_REASONS)
        .map(|(count, reason)| format!("{count} {}: {reason}", unit(*count)))
        .collect();
    if kinds.len() > MAX_REASONS {
        listed.push(format!("{} more kinds of reasons", kinds.len() - MAX_REASONS));
    }
    listed
}

/// Preemptions a second and thread above which figures are disturbed: the kernel's own housekeeping
/// causes a few.
const MAX_PREEMPTIONS_PER_S: f64 = 10.0;

/// Returns the reason against quoting latencies if a thread had more than ten involuntary context
/// switches a second. `switches` is their number in `running_ns`.
pub fn preemption_reason(thread: &str, switches: u64, running_ns: u64) -> Option<String> {
    // One or two in a short run do not make a rate.
    let rate = switches as f64 / (running_ns as f64 / 1e9).max(1.0);
    (rate > MAX_PREEMPTIONS_PER_S).then(|| {
        format!(
            "{thread} was preempted {} times a second: other threads want its core; isolate it or use fewer threads",
            plain(rate)
        )
    })
}

/// The least share of its core that a thread gets that never sleeps.
const MIN_CPU_SHARE: f64 = 0.9;

/// Returns the reason against quoting latencies if a thread that never sleeps ran for less than 90
/// % of the time. `share` is its CPU time as a share of the time.
pub fn starved_reason(thread: &str, share: f64) -> Option<String> {
    (share < MIN_CPU_SHARE).then(|| {
        format!(
            "{thread} had its core for {:.0}% of the time: other threads want it; isolate it or use fewer threads",
            share * 100.0
        )
    })
}

/// The reason against quoting latencies if no thread is pinned, because the machine does not report
/// which cores may be used.
pub const NOT_PINNED: &str =
    "the machine does not say which cores may be used: no thread is pinned. Mount /proc";
/// The reason against quoting latencies of a run if the user turned the pinning of threads to cores
/// off (`--pin off`).
pub const PIN_OFF: &str = "no thread is pinned (--pin off): the kernel moves threads between cores, and the figures have the cost of it. \
                           Leave --pin out";
/// The reason against quoting latencies if all threads are on one core.
pub const SINGLE_CORE: &str =
    "everything runs on a single core: every hand-off waits for a context switch. Allow two cores or more";
/// The reason against quoting latencies if stamps come from the kernel's clock instead of the TSC.
pub const NO_TSC: &str = "no time stamp counter that the kernel trusts: every stamp asks the kernel's clock, which costs more than the \
                          hand-offs measured. Use a machine whose clock source is tsc";

/// Returns the reason against quoting latencies if the clock rate of the cores follows the load.
pub fn governor_reason(machine: &Machine) -> Option<String> {
    let governor = machine.governor.as_deref().filter(|name| *name != "performance")?;
    Some(format!(
        "the frequency governor is {governor}: the clock rate follows the load. Set it with \
         `cpupower frequency-set -g performance`"
    ))
}

/// Returns the reason against quoting latencies if some of these cores are hardware threads of one
/// core.
pub fn sibling_reason(machine: &Machine, cores: &BTreeSet<u32>) -> Option<String> {
    let pairs: Vec<String> = machine
        .smt_siblings
        .iter()
        .map(|group| group.iter().copied().filter(|core| cores.contains(core)).collect::<Vec<_>>())
        .filter(|siblings| siblings.len() > 1)
        .map(|siblings| siblings.iter().map(u32::to_string).collect::<Vec<_>>().join("+"))
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let shown = if pairs.len() > 4 {
        format!("{} and {} more", pairs[..4].join(", "), pairs.len() - 4)
    } else {
        pairs.join(", ")
    };
    Some(format!(
        "cores {shown} are hardware threads of one core each and slow one another down. Use fewer roles, or \
         name whole cores with --cores"
    ))
}

/// Returns each core that the threads of two or more strategies share with no other thread, if none
/// of these threads spins when idle. Their waits for the core are a part of what the run measures.
pub fn shared_by_strategies(plan: &Plan) -> Vec<u32> {
    let mut by_core: BTreeMap<u32, Vec<&ThreadPlan>> = BTreeMap::new();
    for thread in &plan.threads {
        if let Some(core) = thread.core {
            by_core.entry(core).or_default().push(thread);
        }
    }
    let gives_way =
        |thread: &&ThreadPlan| thread.idle != Idle::Spin && matches!(thread.roles[..], [Role::Strategy(_)]);
    let shared = by_core.iter().filter(|(_, threads)| threads.len() > 1 && threads.iter().all(gives_way));
    shared.map(|(core, _)| *core).collect()
}

/// Returns the note on a run whose strategies share cores; `None` if each has its own.
pub fn shared_cores_note(plan: &Plan) -> Option<String> {
    let cores = shared_by_strategies(plan);
    let on = |thread: &&ThreadPlan| thread.core.is_some_and(|core| cores.contains(&core));
    let strategies = plan.threads.iter().filter(on);
    let idle = strategies.clone().next()?.idle;
    Some(format!(
        "{} strategies share {} {} (idle {idle}): each waits for its turn, and the figures have that wait",
        strategies.count(),
        plural("core", cores.len() as u64),
        cpu_list::format(&cores),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_fit_together_or_say_why_not() {
        let preempted = |times: u32| vec![format!("engine was preempted {times} times a second: isolate it")];
        let (one, other, none) = (preempted(12), preempted(40), Vec::new());
        let fitness_of =
            |runs: &[(bool, &[String])], planned| Fitness::from_runs(runs.iter().copied(), planned);
        assert_eq!(fitness_of(&[(true, &none), (true, &none)], 2).sentence(), FIT);
        assert_eq!(
            fitness_of(&[(true, &none), (false, &one), (false, &other)], 3).sentence(),
            "not fit for latency claims: 1 of 3 runs are fit; 2 runs, e.g.: engine was preempted 12 times a second: isolate it"
        );
        let twice = [preempted(12), preempted(40)].concat();
        assert!(
            fitness_of(&[(false, &twice)], 1).sentence().contains("; 1 run: engine was"),
            "it counts runs"
        );
        assert_eq!(
            fitness_of(&[(true, &none)], 2).sentence(),
            "not fit for latency claims: 1 of 2 runs are fit",
            "one run is missing"
        );
    }

    #[test]
    fn few_preemptions_are_no_reason() {
        assert_eq!(preemption_reason("writer", 9, 300_000_000), None);
        assert!(preemption_reason("writer", 90, 3_000_000_000).unwrap().contains("preempted 30.0 times"));
    }

    #[test]
    fn benchmarks_are_judged_by_machine_and_cores() {
        let machine = Machine { tsc_invariant: true, ..Machine::default() };
        let reasons = |machine: &Machine, cores: &[u32], agents| {
            Fitness::from_machine(machine, cores, agents, &[]).reasons.join("; ")
        };
        assert_eq!(reasons(&machine, &[0, 1], 2), "");
        for (machine, cores, agents, wanted) in [
            (&machine, &[][..], 2, "no thread is pinned"),
            (&machine, &[3, 3], 2, "a single core"),
            (&machine, &[0, 1, 0], 3, "3 threads share 2 cores (0,1)"),
            (&Machine { tsc_invariant: false, ..machine.clone() }, &[0, 1], 2, "clock source is tsc"),
            (&Machine { governor: Some("powersave".into()), ..machine.clone() }, &[0, 1], 2, "powersave"),
            (&Machine { smt_siblings: vec![vec![0, 1]], ..machine.clone() }, &[0, 1], 2, "cores 0+1 are"),
        ] {
            assert!(reasons(machine, cores, agents).contains(wanted), "{wanted}");
        }
    }
}
