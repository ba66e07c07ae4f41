//! Checks how much of `/dev/shm` and how many open files a plan needs, and names the remedy.

use crate::config::UsageError;
use crate::host::Machine;
use anyhow::{Context, Result};
use protocol::plan::{Binary, Isolation, Plan, Workload};
use protocol::{journals, segments, topology};
use system::descriptors;

const MIB: u64 = 1024 * 1024;

/// Returns the bytes that a plan needs in `/dev/shm`, control segment included.
pub fn bytes_needed(plan: &Plan) -> u64 {
    let pages = |words: usize| (words as u64 * 8).next_multiple_of(4096);
    let segments = topology::segments(plan);
    let control = segments::control_words(plan, &segments).unwrap_or(0);
    segments.iter().map(|segment| pages(segment.spec.words)).sum::<u64>() + pages(control)
}

/// Checks that `/dev/shm` has enough space for a plan.
pub fn check_shm_space(plan: &Plan, machine: &Machine) -> Result<(), UsageError> {
    let needed = bytes_needed(plan);
    let (free, total) = (machine.shm_free_bytes, machine.shm_total_bytes);
    if total == 0 || needed <= free {
        return Ok(());
    }
    let problem =
        format!("/dev/shm: this run needs {} MiB and {} MiB are free", needed.div_ceil(MIB), free / MIB);
    let remedy = remedy(plan, free);
    let size = total.saturating_sub(free).saturating_add(needed);
    if machine.memory_bytes != 0 && size > machine.memory_bytes {
        let memory = machine.memory_bytes / MIB;
        return Err(UsageError(format!("{problem}.\nThe machine has {memory} MiB of memory: use {remedy}")));
    }
    let size = size.div_ceil(MIB);
    Err(UsageError(format!(
        "{problem}. Use {remedy}, or make room:\n\
         mount -o remount,size={size}m /dev/shm (in a container: start it with --shm-size={size}m)"
    )))
}

/// Returns the flags of the plan's command that make its memory smaller.
fn remedy(plan: &Plan, free: u64) -> String {
    match plan.workload {
        Workload::Board(_) => "fewer --cells, a smaller --size or a shorter --duration".into(),
        Workload::Queue(_) => "fewer --events or a smaller --capacity".into(),
        Workload::Trading(_) => match smaller_rings(plan, free) {
            Some(capacity) => {
                format!("--capacity {capacity} (now {}) or fewer --orders", plan.trading().capacity)
            }
            None => "fewer --orders".into(),
        },
    }
}

/// Returns the largest smaller capacity whose rings fit; `None` if the rings are not what takes the
/// space.
fn smaller_rings(plan: &Plan, free: u64) -> Option<u32> {
    const LEAST: u32 = 64;
    let halves = std::iter::successors(Some(plan.trading().capacity / 2), |capacity| Some(capacity / 2));
    halves.take_while(|capacity| *capacity >= LEAST).find(|capacity| {
        let mut smaller = plan.clone();
        smaller.trading_mut().capacity = *capacity;
        smaller.links.iter_mut().for_each(|link| link.slots = *capacity);
        bytes_needed(&smaller) <= free
    })
}

/// Spare descriptors of the launcher and each role: terminal, files being written, pipes.
const SPARE_DESCRIPTORS: u64 = 64;

/// Returns the maximum number of file descriptors that one process of the run opens. That is the
/// launcher, which watches every process and, where memory is passed as descriptors, holds each
/// segment twice; or the engine, which has a connection to each strategy and gateway with kernel
/// techniques.
pub fn descriptors_needed(plan: &Plan) -> u64 {
    let sealed = || 2 * topology::segments(plan).iter().filter(|segment| segment.is_sealed(plan)).count();
    let segments = match plan.isolation.has(Isolation::Sandbox) {
        true => 2 * topology::segments(plan).len(),
        false => sealed(),
    };
    // Of each container it watches the first process and the strategy as well.
    let containers = 2 * plan.processes.iter().filter(|process| plan.is_contained(process)).count();
    let copies = match plan.trading().memory.binary {
        Binary::Own => usize::from(plan.trading().strategies),
        Binary::Shared => 0,
    };
    let locks = journals::writers(plan).count() + copies;
    let ends = 2 * (usize::from(plan.trading().strategies) + usize::from(plan.trading().gateways()));
    (segments + containers + locks + ends.max(plan.processes.len() + 1)) as u64 + SPARE_DESCRIPTORS
}

/// Raises this process's limit of open files to what the plan needs.
pub fn allow_descriptors(plan: &Plan) -> Result<()> {
    let needed = descriptors_needed(plan);
    let allowed = descriptors::raise_limit(needed).context("cannot raise the limit of open files")?;
    if allowed < needed {
        let is_sealed = plan.isolation.has(Isolation::Container) || plan.isolation.has(Isolation::Sandbox);
        let process = if is_sealed { ", --isolation process" } else { "" };
        let why = format!(
            "this run has {needed} files open at once and {allowed} are allowed (ulimit -Hn).\n\
             Use fewer --strategies{process}, or raise the hard limit (in a container: --ulimit nofile={needed})"
        );
        return Err(UsageError(why).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::planned;
    use super::*;
    use crate::host::fake;
    use protocol::plan::{BoardWork, ReaderWaiting, Technique};

    #[test]
    fn missing_shm_space_names_size_and_remedy() {
        let machine = fake::container().machine();
        let unknown = Machine { shm_total_bytes: 0, shm_free_bytes: 0, ..machine.clone() };
        for (settings, machine, wanted) in [
            ("", &machine, ""),
            ("orders=1000M", &unknown, ""),
            (
                "orders=4M",
                &machine,
                "/dev/shm: this run needs 985 MiB and 63 MiB are free. Use fewer --orders, or make room:\n\
                 mount -o remount,size=986m /dev/shm (in a container: start it with --shm-size=986m)",
            ),
            ("orders=1000M", &machine, "The machine has 24105 MiB of memory: use fewer --orders"),
            (
                "orders=1000 strategies=2 capacity=1048576",
                &machine,
                "Use --capacity 65536 (now 1048576) or fewer --orders",
            ),
        ] {
            let (_, plan, _) = planned(settings, machine).unwrap();
            let message = check_shm_space(&plan, machine).err().map_or_else(String::new, |error| error.0);
            assert!(
                message.contains(wanted) && message.is_empty() == wanted.is_empty(),
                "{settings}: {message}"
            );
        }
    }

    #[test]
    fn benchmarks_are_advised_their_own_flags() {
        let board = BoardWork {
            readers: 4,
            waiting: ReaderWaiting::Spin,
            cells: 1,
            words: 8,
            scheduled: None,
            duration_ns: 1_000_000_000,
            folder: None,
            decide_every_ns: None,
        };
        let machine = Machine { shm_total_bytes: MIB, shm_free_bytes: 0, ..fake::container().machine() };
        let plan = |work| Plan::for_benchmark(work, Technique::default(), Isolation::Process, &[None; 5]);
        let refused = check_shm_space(&plan(Workload::Board(board)), &machine).unwrap_err().0;
        assert!(refused.contains("fewer --cells") && !refused.contains("--orders"), "{refused}");
    }

    #[test]
    fn only_unnamed_segments_need_descriptors() {
        for (settings, range) in [
            ("strategies=70 isolation=sandbox", 1025..u64::MAX),
            ("strategies=70 isolation=container", 513..u64::MAX),
            ("strategies=70", 0..256),
            ("strategies=256 venues=64", 0..1024),
            ("strategies=70 isolation=thread", 0..256),
        ] {
            let (_, plan, _) = planned(settings, &fake::two_core_vm().machine()).unwrap();
            let needed = descriptors_needed(&plan);
            assert!(range.contains(&needed), "{settings}: {needed}");
        }
    }
}
