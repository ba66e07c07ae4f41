//! The class of each gap: what took the core away, as far as the run recorded it.
//!
//! - The kernel's counters of the thread tell a preemption and a page fault for each gap.
//! - A gap without any kernel event is the hypervisor's or an interrupt's. The kernel has only the
//!   sums of a core, so a gap is called *steal* or *interrupt* only within them: steal from the
//!   longest gap down, interrupts from the shortest up.
//! - Everything else is *other*. So never more time is called steal than the kernel counted.
//!
//! Only steal is taken out of figures, and only of those that are named *without steal*.

use crate::cause::GapClass;
use crate::merge::ThreadLog;
use crate::summary::figures::to_ns;
use crate::summary::ns_per_tick;
use protocol::stamps::{Gap, KernelEvents};
use record::kernel::CoreAccount;
use record::run::RunRecord;
use std::collections::BTreeMap;

/// A gap without a kernel event that is shorter than this is not called steal, in nanoseconds: an
/// interrupt takes as long.
pub const MIN_STEAL_NS: u64 = 50_000;

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

/// Classifies gaps of one core, given by their lengths in nanoseconds and kernel events.
fn classify_core(gaps: &[(u64, KernelEvents)], core: Option<&CoreAccount>) -> Vec<GapClass> {
    let mut classes: Vec<GapClass> =
        gaps.iter().map(|(_, events)| counted_class(*events).unwrap_or(GapClass::Other)).collect();
    let Some(core) = core else { return classes };
    let mut open: Vec<usize> = (0..gaps.len()).filter(|at| counted_class(gaps[*at].1).is_none()).collect();
    open.sort_by_key(|at| gaps[*at].0);
    let mut steal_left = core.steal_ns.unwrap_or(0);
    while let Some(at) = open.pop_if(|at| gaps[*at].0 >= MIN_STEAL_NS) {
        if gaps[at].0 <= steal_left {
            steal_left -= gaps[at].0;
            classes[at] = GapClass::Steal;
        }
    }
    let mut handler_left = core.irq_ns.unwrap_or(0).saturating_add(core.softirq_ns.unwrap_or(0));
    for at in open.into_iter().take(core.interrupts.unwrap_or(0) as usize) {
        let Some(left) = handler_left.checked_sub(gaps[at].0) else { break };
        (handler_left, classes[at]) = (left, GapClass::Interrupt);
    }
    classes
}

/// Returns the class of every gap of every thread. Threads of one core share the core's sums.
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
        for ((thread, at, _), class) in gaps.into_iter().zip(classify_core(&lengths, account)) {
            classes[thread][at] = class;
        }
    }
    classes
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
        ];
        let found = classify_core(&gaps, Some(&account(Some(10_000_000), 10_000_000, 100)));
        use GapClass::{Fault, Interrupt, Other, Preempted, Steal};
        assert_eq!(found, [Steal, Preempted, Fault, Interrupt, Other]);
        // Without the kernel's sums nothing tells steal from an interrupt.
        for core in [None, Some(&account(None, 0, 0)), Some(&account(Some(0), 0, 0))] {
            assert_eq!(classify_core(&gaps, core), [Other, Preempted, Fault, Other, Other]);
        }
        // A stop of the process, longer than all steal of the core, is not steal.
        let stop = [(20_000_000, NONE), (4_000_000, NONE)];
        assert_eq!(classify_core(&stop, Some(&account(Some(10_000_000), 0, 0))), [Other, Steal]);
    }

    proptest! {
        #[test]
        fn no_more_is_called_steal_than_the_kernel_counted(
            gaps in prop::collection::vec((3_000u64..9_000_000, 0u8..16), 0..40),
            steal in 0u64..60_000_000,
            irq in 0u64..20_000_000,
        ) {
            let gaps: Vec<(u64, KernelEvents)> = gaps.into_iter().map(|(ns, events)| (ns, KernelEvents(events))).collect();
            let found = classify_core(&gaps, Some(&account(Some(steal), irq, 1_000)));
            let sum = |class| -> u64 { gaps.iter().zip(&found).filter(|(_, of)| **of == class).map(|((ns, _), _)| ns).sum() };
            prop_assert!(sum(GapClass::Steal) <= steal && sum(GapClass::Interrupt) <= irq);
            let keeps_events = |((_, events), class): (&(u64, KernelEvents), &GapClass)| {
                events.0 & 15 == 0 || ![GapClass::Steal, GapClass::Interrupt].contains(class)
            };
            prop_assert!(gaps.iter().zip(&found).all(keeps_events), "a gap with kernel events is neither steal nor interrupt");
        }
    }
}
