//! Checks `--huge-pages`, `--lock-memory` and `--working-set` against this machine, before the run
//! starts.

use crate::config::UsageError;
use crate::host::{Machine, MemoryFacts};
use protocol::plan::{Isolation, IsolationLevel, Plan, ProcessPlan, Role};
use protocol::topology;
use record::units::{Bytes, human_bytes};
use shm::memory::huge_pages::HUGE_PAGE_BYTES;
use std::io;
use system::keys::arena::ARENA_BYTES;

/// Memory of a role's process beyond segments and working sets, in bytes: text, stacks, heap.
const OTHER_BYTES: u64 = 64 << 20;

/// Checks that this machine supports the plan's memory settings: huge pages, locked memory and
/// working set (memory that each strategy walks). `limit`: raises the limit of locked memory, and
/// returns it.
pub fn check(
    plan: &Plan,
    machine: &Machine,
    facts: &MemoryFacts,
    limit: impl FnOnce() -> io::Result<Option<u64>>,
) -> Result<(), UsageError> {
    let trading = plan.trading();
    let walked = trading.memory.working_set_bytes.saturating_mul(trading.strategies.into());
    if machine.memory_bytes > 0 && walked > machine.memory_bytes / 2 {
        return Err(UsageError(format!(
            "--working-set {}: {} strategies walk {} in all, and the machine has {} of memory.\n\
             Use fewer --strategies, or a smaller --working-set",
            Bytes(trading.memory.working_set_bytes),
            trading.strategies,
            human_bytes(walked),
            human_bytes(machine.memory_bytes)
        )));
    }
    if trading.memory.huge_pages {
        check_huge_pages(plan, facts)?;
    }
    if trading.memory.lock_memory {
        let limit =
            limit().map_err(|error| UsageError(format!("--lock-memory on: no limit is known: {error}")))?;
        check_lock(plan, facts, limit)?;
    }
    Ok(())
}

fn check_huge_pages(plan: &Plan, facts: &MemoryFacts) -> Result<(), UsageError> {
    let segments = topology::segments(plan);
    let is_large = |segment: &&topology::RunSegment| segment.spec.words as u64 * 8 >= HUGE_PAGE_BYTES;
    let (nameless, named): (Vec<_>, Vec<_>) =
        segments.iter().filter(is_large).partition(|segment| segment.is_sealed(plan));
    let refuse = |why: &str| Err(UsageError(format!("--huge-pages on: {why}, or leave --huge-pages out")));
    if nameless.is_empty() && named.is_empty() {
        return refuse(
            "no segment of this run is as large as a huge page (2 MiB).\nUse --capacity 32768 or more, so that rings are",
        );
    }
    if facts.shmem_enabled.is_none() {
        return refuse(
            "this kernel has none for shared memory (CONFIG_TRANSPARENT_HUGEPAGE).\nUse another kernel",
        );
    }
    if !named.is_empty() && !facts.has_named_huge_pages() {
        return refuse(
            "the file system at /dev/shm has none.\nMount it with them (mount -o remount,huge=within_size /dev/shm)",
        );
    }
    if !nameless.is_empty() && !facts.has_nameless_huge_pages() {
        return refuse(
            "memory that is handed over without a name has none.\n\
             Write advise into /sys/kernel/mm/transparent_hugepage/shmem_enabled",
        );
    }
    Ok(())
}

/// Returns how many bytes a process of the plan locks, at most about.
fn locked_bytes(plan: &Plan, process: &ProcessPlan) -> u64 {
    let segments = topology::segments(plan).into_iter();
    let own = plan.processes.iter().position(|other| other == process);
    let mapped = segments.filter(|segment| segment.access(plan.roles_of(process)).is_some());
    let mapped = mapped.map(|segment| segment.spec.words as u64 * 8).fold(0, u64::saturating_add);
    let strategies = plan.roles_of(process).filter(|role| matches!(role, Role::Strategy(_))).count() as u64;
    let heaps = plan.strategies_with_keys().count() as u64 * ARENA_BYTES as u64;
    let heaps = if plan.process_of(Role::Orchestrator) == own { heaps } else { 0 };
    heaps + mapped + strategies * plan.trading().memory.working_set_bytes + OTHER_BYTES
}

fn check_lock(plan: &Plan, facts: &MemoryFacts, limit: Option<u64>) -> Result<(), UsageError> {
    let Some(limit) = limit else { return Ok(()) };
    let needed = plan.processes.iter().map(|process| locked_bytes(plan, process)).max().unwrap_or(0);
    // Confined strategies give up the capability.
    let keeps_rights = |level: IsolationLevel| level.kind().is_thread() || level.kind() == Isolation::Process;
    let is_capable = facts.may_lock_all && plan.isolation.distinct().all(keeps_rights);
    if is_capable || needed <= limit {
        return Ok(());
    }
    Err(UsageError(format!(
        "--lock-memory on: a role locks about {} and {} are allowed (ulimit -Hl).\n\
         Raise the limit (ulimit -l, LimitMEMLOCK= of a service, --ulimit memlock=-1 of a container), or leave --lock-memory out",
        human_bytes(needed),
        human_bytes(limit)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::planned;
    use crate::host::fake;

    fn checked(settings: &str, facts: &MemoryFacts, limit: Option<u64>) -> String {
        let machine = fake::two_core_vm().machine();
        let (_, plan, _) = planned(settings, &machine).unwrap();
        check(&plan, &machine, facts, || Ok(limit)).err().map_or_else(String::new, |error| error.0)
    }

    #[test]
    fn what_the_machine_lacks_is_refused() {
        let facts = |shm: &str, mode: &str, may_lock_all| MemoryFacts {
            shm_huge: Some(shm.to_owned()),
            shmem_enabled: (!mode.is_empty()).then(|| mode.to_owned()),
            may_lock_all,
        };
        let (none, all) = (facts("never", "never", false), facts("within_size", "advise", false));
        let mib = |size: u64| Some(size << 20);
        for (settings, facts, limit, wanted) in [
            ("", &none, mib(1), ""),
            ("huge_pages=on", &all, None, ""),
            ("huge_pages=on", &none, None, "huge=within_size /dev/shm"),
            ("huge_pages=on", &facts("always", "", false), None, "this kernel has none"),
            ("huge_pages=on isolation=sandbox", &facts("always", "never", false), None, "shmem_enabled"),
            ("huge_pages=on isolation=sandbox", &all, None, ""),
            ("huge_pages=on orders=10 capacity=64 max_open=4", &all, None, "--capacity 32768"),
            ("lock_memory=on", &none, None, ""),
            ("lock_memory=on", &none, mib(8), "8.0 MiB are allowed"),
            ("lock_memory=on", &none, mib(900), ""),
            ("lock_memory=on", &facts("never", "never", true), mib(8), ""),
            ("lock_memory=on isolation=sandbox", &facts("never", "never", true), mib(8), "ulimit -Hl"),
            ("lock_memory=on working_set=256MiB", &none, mib(256), "ulimit -l"),
            ("strategies=256 working_set=256MiB", &none, None, "256 strategies walk 64.0 GiB"),
        ] {
            let message = checked(settings, facts, limit);
            let is_as_wanted = if wanted.is_empty() { message.is_empty() } else { message.contains(wanted) };
            assert!(is_as_wanted && message.lines().count() <= 2, "{settings}: {message:?}");
        }
    }
}
