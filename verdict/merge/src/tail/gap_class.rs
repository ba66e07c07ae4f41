//! The class of each gap in a thread's duty cycles: what took the core away, as far as the run
//! recorded it.
//!
//! - The kernel's counters of the thread tell a preemption and a page fault for each gap.
//! - A gap without any kernel event, of which 200 µs and more have no stamp, is *steal*: the kernel
//!   counts each time that it takes a core away itself, no interrupt takes as long, and a thread
//!   that works stamps orders. What is left is the host.
//! - A shorter one is the host's or an interrupt's. The kernel has only the sums of a core, so it
//!   is called *interrupt* only within them, from the shortest up. Everything else is *other*.
//!
//! So steal is told by elimination, gap by gap. The kernel's own account of steal has ticks of 10
//! ms, and is only a check of the sum ([`StealAccount`]). Without the kernel's record of a run
//! nothing is called steal: it is not known.
//!
//! Only steal is taken out of figures, and only of those that are named *without steal*.

use super::pauses::{GapSplitter, Pause};
use crate::ThreadLog;
use crate::cause::GapClass;
use crate::figures::to_ns;
use protocol::plan::Role;
use protocol::stamps::{Gap, KernelEvents};
use record::kernel::CoreAccount;
use record::numbers::duration;
use record::run::RunRecord;
use record::run::ns_per_tick;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Minimum length, 200,000 nanoseconds, of a gap without a context switch or page fault that counts
/// as steal (time that the hypervisor took). An interrupt may take as long as a shorter gap.
pub const MIN_STEAL_NS: u64 = 200_000;
/// The resolution of the kernel's account of steal, in nanoseconds.
const TICK_NS: u64 = 10_000_000;

/// Returns each thread's confirmed steal: in gaps of class steal, the parts that have no stamp and
/// are at least [`MIN_STEAL_NS`] long. A gap without such a part was work, such as a duty cycle
/// that served many orders, and loses the class. `stamps` passes each thread's stamps on,
/// ascending.
pub fn confirm_steal(
    gaps: &[&[Gap]],
    classes: &mut [Vec<GapClass>],
    ns_per_tick: f64,
    stamps: impl FnOnce(&mut dyn FnMut(usize, u64)),
) -> Vec<Vec<Gap>> {
    let min_ticks = (MIN_STEAL_NS as f64 / ns_per_tick) as u64;
    let candidates = |(gaps, classes): (&&[Gap], &Vec<GapClass>)| -> Vec<Gap> {
        let stolen = gaps.iter().zip(classes).filter(|(_, class)| **class == GapClass::Steal);
        stolen.map(|(gap, _)| *gap).collect()
    };
    let candidates: Vec<Vec<Gap>> = gaps.iter().zip(classes.iter()).map(candidates).collect();
    if candidates.iter().all(Vec::is_empty) {
        return candidates;
    }
    let mut splitters: Vec<GapSplitter> =
        candidates.iter().map(|gaps| GapSplitter::new(gaps, &[], min_ticks)).collect();
    stamps(&mut |thread, at| splitters.get_mut(thread).into_iter().for_each(|splitter| splitter.stamp(at)));
    let part = |pause: &Pause| Gap { ended: pause.to, ticks: pause.to - pause.from, events: KernelEvents(0) };
    let stolen: Vec<Vec<Gap>> =
        splitters.into_iter().map(|splitter| splitter.finish().iter().map(part).collect()).collect();
    for ((gaps, classes), stolen) in gaps.iter().zip(classes).zip(&stolen) {
        let mut ends: Vec<u64> = stolen.iter().map(|part| part.ended).collect();
        ends.sort_unstable();
        for (gap, class) in gaps.iter().zip(classes).filter(|(_, class)| **class == GapClass::Steal) {
            let begun = gap.ended.saturating_sub(gap.ticks);
            let next = ends.get(ends.partition_point(|ended| *ended <= begun));
            if next.is_none_or(|ended| *ended > gap.ended) {
                *class = GapClass::Other;
            }
        }
    }
    stolen
}

/// The CPU time, in nanoseconds, that the hypervisor took (steal) in a run: as gaps without another
/// explanation, and as the kernel counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StealAccount {
    /// Steal by elimination, in nanoseconds: times of 200 µs and more without a kernel event or a
    /// stamp, of all threads.
    pub eliminated_ns: u64,
    /// Steal of the run's cores according to `/proc/stat`, in nanoseconds; null if the kernel has
    /// none.
    pub counted_ns: Option<u64>,
    /// Number of the run's cores: each account is right to within a tick of 10 ms.
    pub cores: u64,
}

impl StealAccount {
    /// Computes a run's steal (CPU time that the hypervisor took) by both accounts; `None` without
    /// the kernel's record.
    pub fn new(record: &RunRecord, stolen: &[Vec<Gap>]) -> Option<Self> {
        let cores = &record.kernel.as_ref()?.cores;
        let ticks = stolen.iter().flatten().fold(0u64, |sum, part| sum.saturating_add(part.ticks));
        Some(Self {
            eliminated_ns: to_ns(ticks, ns_per_tick(record)),
            counted_ns: cores.iter().map(|core| core.steal_ns).sum(),
            cores: cores.len() as u64,
        })
    }

    /// Returns a text on why the two accounts of steal cannot both be right; `None` unless the gaps
    /// show much more than the kernel counted. A quarter more and one kernel tick (10 ms) per core
    /// are allowed. The reverse proves nothing: cores are stolen from threads that sleep, too.
    pub fn contradiction(&self) -> Option<String> {
        let counted = self.counted_ns?;
        let most = counted.saturating_add(counted / 4).saturating_add(self.cores.saturating_mul(TICK_NS));
        (self.eliminated_ns > most).then(|| {
            format!(
                "steal: {} of gaps have no kernel event, and /proc/stat counts {}: the host does not report its steal, or something \
                 else took the cores",
                duration(self.eliminated_ns),
                duration(counted)
            )
        })
    }
}

/// Returns the class that the kernel's counters of a thread tell; `None` if they counted nothing.
const fn counted_class(events: KernelEvents) -> Option<GapClass> {
    if events.has_counted(KernelEvents::INVOLUNTARY) {
        Some(GapClass::Preempted)
    } else if events.has_counted(KernelEvents::MINOR_FAULT) || events.has_counted(KernelEvents::MAJOR_FAULT) {
        Some(GapClass::Fault)
    } else if events.has_counted(KernelEvents::VOLUNTARY) {
        Some(GapClass::Other)
    } else {
        None
    }
}

/// Classifies gaps of one core, given by their lengths in nanoseconds and kernel events. Without
/// the kernel's record of the run (`is_recorded`) no gap is steal.
fn classify_core(
    gaps: &[(u64, KernelEvents)],
    is_recorded: bool,
    core: Option<&CoreAccount>,
) -> Vec<GapClass> {
    let class = |(ns, events): &(u64, KernelEvents)| match counted_class(*events) {
        Some(class) => class,
        None if is_recorded && *ns >= MIN_STEAL_NS => GapClass::Steal,
        None => GapClass::Other,
    };
    let mut classes: Vec<GapClass> = gaps.iter().map(class).collect();
    let Some(core) = core else { return classes };
    let is_open = |at: &usize| gaps[*at].0 < MIN_STEAL_NS && counted_class(gaps[*at].1).is_none();
    let mut open: Vec<usize> = (0..gaps.len()).filter(is_open).collect();
    open.sort_by_key(|at| gaps[*at].0);
    let mut handler_left = core.irq_ns.unwrap_or(0).saturating_add(core.softirq_ns.unwrap_or(0));
    for at in open.into_iter().take(core.interrupts.unwrap_or(0) as usize) {
        let Some(left) = handler_left.checked_sub(gaps[at].0) else { break };
        (handler_left, classes[at]) = (left, GapClass::Interrupt);
    }
    classes
}

/// Returns the class (what took the core away) of each gap between a thread's duty cycles, for each
/// thread in the order of `logs`. The classes are preemption, page fault, steal, interrupt and
/// other. Threads of one core share the core's sums. Steal is a candidate until [`confirm_steal`]
/// has seen the stamps.
pub fn classify(record: &RunRecord, logs: &[ThreadLog]) -> Vec<Vec<GapClass>> {
    let ns_per_tick = ns_per_tick(record);
    let mut by_core: BTreeMap<Option<u32>, Vec<(usize, usize, Gap)>> = BTreeMap::new();
    for (thread, log) in logs.iter().enumerate() {
        let core = record.plan.threads.get(thread).and_then(|thread| thread.core);
        let gaps = log.gaps.iter().enumerate().map(|(at, gap)| (thread, at, *gap));
        by_core.entry(core).or_default().extend(gaps);
    }
    let mut classes: Vec<Vec<GapClass>> =
        logs.iter().map(|log| vec![GapClass::Other; log.gaps.len()]).collect();
    for (core, gaps) in by_core {
        let account = record.kernel.iter().flat_map(|kernel| &kernel.cores);
        let account = account.into_iter().find(|account| Some(account.core) == core);
        let lengths: Vec<(u64, KernelEvents)> =
            gaps.iter().map(|(.., gap)| (to_ns(gap.ticks, ns_per_tick), gap.events)).collect();
        for ((thread, at, _), class) in
            gaps.into_iter().zip(classify_core(&lengths, record.kernel.is_some(), account))
        {
            classes[thread][at] = class;
        }
    }
    for (thread, (log, classes)) in logs.iter().zip(&mut classes).enumerate() {
        let longest_ns = planned_work_ns(record, thread);
        for (gap, class) in log.gaps.iter().zip(classes) {
            let is_steal = *class == GapClass::Steal;
            if is_steal && to_ns(gap.ticks, ns_per_tick) < MIN_STEAL_NS.saturating_add(longest_ns) {
                *class = GapClass::Other;
            }
        }
    }
    classes
}

/// Returns for how long a thread works between two stamps because its plan says so: the extra work
/// of the orchestrator, and of a strategy the walk of its working set, whose time no plan knows.
fn planned_work_ns(record: &RunRecord, thread: usize) -> u64 {
    let trading = record.plan.trading();
    let roles = record.plan.threads.get(thread).map_or(&[][..], |thread| thread.roles.as_slice());
    let has_strategy = roles.iter().any(|role| matches!(role, Role::Strategy(_)));
    if has_strategy && trading.memory.working_set_bytes > 0 { u64::MAX } else { trading.work_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account(steal_ns: Option<u64>, irq_ns: u64, interrupts: u64) -> CoreAccount {
        let irq_ns = Some(irq_ns);
        CoreAccount { steal_ns, irq_ns, interrupts: Some(interrupts), ..CoreAccount::default() }
    }

    const NONE: KernelEvents = KernelEvents(0);

    #[test]
    fn each_planted_gap_has_its_class() {
        let gaps = [
            (4_000_000, NONE),
            (4_000_000, KernelEvents(KernelEvents::INVOLUNTARY | KernelEvents::MINOR_FAULT)),
            (4_000, KernelEvents(KernelEvents::MINOR_FAULT)),
            (5_000, NONE),
            (7_000_000, KernelEvents(KernelEvents::VOLUNTARY)),
            (150_000, NONE),
        ];
        let found = classify_core(&gaps, true, Some(&account(Some(10_000_000), 10_000, 100)));
        use GapClass::{Fault, Interrupt, Other, Preempted, Steal};
        assert_eq!(found, [Steal, Preempted, Fault, Interrupt, Other, Other]);
        // Ticks decide nothing: a gap that is shorter than one is found.
        for core in [None, Some(&account(None, 0, 0)), Some(&account(Some(0), 0, 0))] {
            assert_eq!(classify_core(&gaps, true, core), [Steal, Preempted, Fault, Other, Other, Other]);
        }
        // Without the kernel's record nothing tells.
        assert_eq!(classify_core(&gaps, false, None), [Other, Preempted, Fault, Other, Other, Other]);
    }

    #[test]
    fn work_that_stamps_orders_is_not_steal() {
        let gap = |from: u64, to: u64| Gap { ended: to, ticks: to - from, events: NONE };
        // A cycle that serves an order each 50 µs, a core that is stolen, and both in one gap.
        let gaps = vec![gap(1_000_000, 4_000_000), gap(5_000_000, 8_000_000), gap(9_000_000, 12_000_000)];
        let served = (1_000_000..4_000_000).chain(9_000_000..10_000_000).step_by(50_000);
        let stamps: Vec<u64> = served.filter(|at| !(4_000_000..9_000_000).contains(at)).collect();
        let confirmed = |stamps: &[u64]| {
            let mut classes = vec![vec![GapClass::Steal; 3]];
            let pass_on = |stamp: &mut dyn FnMut(usize, u64)| stamps.iter().for_each(|at| stamp(0, *at));
            let stolen = confirm_steal(&[&gaps], &mut classes, 1.0, pass_on);
            let lengths: Vec<u64> = stolen[0].iter().map(|part| part.ticks).collect();
            (classes.remove(0), lengths)
        };
        let (classes, lengths) = confirmed(&stamps);
        assert_eq!(classes, [GapClass::Other, GapClass::Steal, GapClass::Steal]);
        assert!(lengths[0] == 3_000_000 && (2_000_000..=2_050_000).contains(&lengths[1]), "{lengths:?}");
        // The broken variant: lengths alone, which takes a busy engine for a stolen core.
        assert_eq!(confirmed(&[]), (vec![GapClass::Steal; 3], vec![3_000_000; 3]));
    }

    /// The rule before: ticks of 10 ms as a budget, from the longest gap down.
    fn classify_by_ticks(gaps: &[u64], steal_ns: u64) -> Vec<bool> {
        let mut order: Vec<usize> = (0..gaps.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(gaps[*at]));
        let (mut left, mut stolen) = (steal_ns, vec![false; gaps.len()]);
        for at in order {
            if let Some(rest) = left.checked_sub(gaps[at]) {
                (left, stolen[at]) = (rest, true);
            }
        }
        stolen
    }

    #[test]
    fn planted_steal_is_found_where_ticks_count_none() {
        // In a run of one second the host takes a core away for 1 to 3 ms, five times. Few ticks
        // fall into one of them, so that the kernel counts none or 10 ms.
        let gaps: Vec<u64> = [1_000_000, 3_000_000, 2_000_000, 1_500_000, 1_000_000].to_vec();
        let with_events: Vec<(u64, KernelEvents)> = gaps.iter().map(|ns| (*ns, NONE)).collect();
        assert_eq!(classify_core(&with_events, true, Some(&account(Some(0), 0, 0))), [GapClass::Steal; 5]);
        assert_eq!(classify_by_ticks(&gaps, 0), [false; 5], "the broken variant finds none");
    }

    #[test]
    fn sums_are_checked_against_the_ticks() {
        let of = |eliminated_ms: u64, counted_ms: Option<u64>| {
            let [eliminated_ns, counted] =
                [Some(eliminated_ms), counted_ms].map(|ms| ms.map(|ms| ms * 1_000_000));
            StealAccount { eliminated_ns: eliminated_ns.unwrap(), counted_ns: counted, cores: 2 }
                .contradiction()
        };
        assert_eq!(
            [of(8, Some(0)), of(60, Some(50)), of(3, Some(500)), of(900, None)],
            [None, None, None, None]
        );
        let why = of(400, Some(10)).unwrap();
        assert!(
            why.starts_with("steal: 400 ms of gaps have no kernel event, and /proc/stat counts 10.0 ms"),
            "{why}"
        );
    }

    proptest! {
        #[test]
        fn gaps_with_kernel_events_are_never_the_hosts(
            gaps in prop::collection::vec((3_000u64..9_000_000, 0u8..16), 0..40),
            irq in 0u64..20_000_000,
            is_recorded: bool,
        ) {
            let gaps: Vec<(u64, KernelEvents)> = gaps.into_iter().map(|(ns, events)| (ns, KernelEvents(events))).collect();
            let found = classify_core(&gaps, is_recorded, Some(&account(Some(0), irq, 1_000)));
            let sum = |class| -> u64 { gaps.iter().zip(&found).filter(|(_, of)| **of == class).map(|((ns, _), _)| ns).sum() };
            prop_assert!(sum(GapClass::Interrupt) <= irq);
            for ((ns, events), class) in gaps.iter().zip(&found) {
                let is_eliminated = is_recorded && events.0 & 15 == 0 && *ns >= MIN_STEAL_NS;
                prop_assert_eq!(*class == GapClass::Steal, is_eliminated);
                prop_assert!(events.0 & 15 == 0 || *class != GapClass::Interrupt);
            }
        }
    }
}
