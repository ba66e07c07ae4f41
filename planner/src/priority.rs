//! Validates `--priority` against the plan's cores. A real-time thread gives up its core only when
//! it sleeps, or, with `sched_yield`, to threads of its own priority; all others wait without a
//! bound.
//!
//! | idle | on a core of its own | on a core that others of the run share |
//! |---|---|---|
//! | `spin` | no other thread gets this core | the others never run: refused |
//! | `yield` | the same | they take turns; no other thread gets this core |
//! | `backoff`, `park` | others have it while it sleeps | others have it while all of them sleep |

use crate::config::{Priority, UsageError};
use protocol::plan::{Idle, Plan, ThreadPlan};
use record::cpu_list;
use record::numbers::plural;
use std::collections::{BTreeMap, BTreeSet};

/// Returns an error for a plan whose priority leaves threads that would never run.
pub(super) fn check(plan: &Plan) -> Result<(), UsageError> {
    let Some(priority) = plan_priority(plan) else { return Ok(()) };
    let mut by_core: BTreeMap<Option<u32>, Vec<&ThreadPlan>> = BTreeMap::new();
    for thread in &plan.threads {
        by_core.entry(thread.core).or_default().push(thread);
    }
    if by_core.contains_key(&None) {
        return Err(UsageError(format!(
            "--priority {priority}: the machine does not say which cores may be used, and no thread is pinned.\n\
             Mount /proc, or leave --priority out"
        )));
    }
    let spins = |threads: &[&ThreadPlan]| threads.iter().any(|thread| thread.idle == Idle::Spin);
    let starved = by_core.iter().find(|(_, threads)| threads.len() > 1 && spins(threads));
    let Some((core, threads)) = starved else { return Ok(()) };
    let names: Vec<&str> = threads.iter().map(|thread| thread.name.as_str()).collect();
    Err(UsageError(format!(
        "--priority {priority} with --idle spin: of {} on core {} the one that runs first would starve the others.\n\
         Use --idle yield or park, more cores or fewer roles, or leave --priority out",
        names.join(", "),
        core.unwrap_or(0)
    )))
}

/// Returns the real-time priority of the plan's threads; `None` for ordinary threads.
pub fn plan_priority(plan: &Plan) -> Option<Priority> {
    Priority::new(plan.priority?)
}

/// Returns the CPU cores on which the plan's real-time threads spin or yield, and so never release
/// to ordinary threads.
pub fn kept_cores(plan: &Plan) -> BTreeSet<u32> {
    let never_sleeps = |thread: &&ThreadPlan| matches!(thread.idle, Idle::Spin | Idle::Yield);
    let threads = plan.threads.iter().filter(|_| plan.priority.is_some());
    threads.filter(never_sleeps).filter_map(|thread| thread.core).collect()
}

/// Describes the effect of real-time priority on the run, if it has one.
pub(super) fn note(plan: &Plan) -> Option<String> {
    let priority = plan_priority(plan)?;
    let kept: Vec<u32> = kept_cores(plan).into_iter().collect();
    let all: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    let shared = if all.len() < plan.threads.len() {
        " Threads that share a core give way to each other when they yield or sleep, and to nobody else before."
    } else {
        ""
    };
    Some(match kept[..] {
        [] => format!(
            "Priority {priority}: a thread that has something to do waits for no ordinary one.{shared}"
        ),
        _ => format!(
            "Priority {priority}: no ordinary thread runs on {} {} meanwhile but when the kernel makes room.{shared}",
            plural("core", kept.len() as u64),
            cpu_list::format(&kept)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, refuses};
    use super::*;
    use crate::host::{Machine, fake};

    #[test]
    fn spinning_on_shared_core_is_refused() {
        let two = fake::two_core_vm().machine();
        let spin = "priority=fifo:50 strategies=3 idle=spin";
        refuses(spin, "of strategy-0, strategy-1, strategy-2 on core 0 the one", &two);
        refuses(spin, "--idle yield or park", &two);
        refuses("priority=fifo:1 cores=1 idle=spin", "strategy-0, engine on core 1", &two);
        refuses("priority=fifo:1", "no thread is pinned", &Machine::default());
        for idle in ["auto", "yield", "backoff", "park"] {
            let (_, plan, _) = planned(&format!("priority=fifo:50 strategies=3 idle={idle}"), &two).unwrap();
            assert_eq!(plan.priority, Some(50));
        }
        assert!(planned("strategies=3 idle=spin", &two).is_ok(), "ordinary threads take turns");
    }

    #[test]
    fn cores_withheld_from_ordinary_threads_are_named() {
        for (settings, kept, expected) in [
            ("", &[][..], ""),
            ("priority=fifo:7", &[0, 1], "fifo:7: no ordinary thread runs on cores 0,1"),
            ("priority=fifo:7 cores=1", &[1], "share a core give way to each other"),
            ("priority=fifo:7 idle=park", &[], "waits for no ordinary one"),
        ] {
            let (_, plan, _) = planned(settings, &fake::two_core_vm().machine()).unwrap();
            let note = note(&plan).unwrap_or_default();
            assert!(kept_cores(&plan).iter().eq(kept) && note.contains(expected), "{settings}: {note}");
            assert_eq!(note.is_empty(), expected.is_empty(), "{settings}: {note}");
        }
    }
}
