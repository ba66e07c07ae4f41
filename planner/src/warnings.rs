//! Reasons not to quote a plan's latencies, each with its remedy.

use crate::host::Machine;
use protocol::plan::{ClockSource, Plan, Role, ThreadPlan};
use record::cpu_list;
use record::fitness;
use record::numbers::plural;
use std::collections::BTreeMap;

/// Returns every reason against quoting the latencies of a planned run. Without any, the run may be
/// fit for latency figures.
pub(super) fn collect(plan: &Plan, machine: &Machine) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut by_core: BTreeMap<u32, Vec<&ThreadPlan>> = BTreeMap::new();
    for thread in &plan.threads {
        if let Some(core) = thread.core {
            by_core.entry(core).or_default().push(thread);
        }
    }
    if by_core.is_empty() && !machine.cores_allowed.is_empty() {
        reasons.push(fitness::PIN_OFF.into());
    } else {
        let given = fitness::shared_by_strategies(plan);
        shared_cores(&by_core, &given, &mut reasons);
    }
    reasons.extend(fitness::sibling_reason(machine, &by_core.keys().copied().collect()));
    reasons.extend((plan.clock == ClockSource::Monotonic).then(|| fitness::NO_TSC.to_owned()));
    reasons.extend(fitness::governor_reason(machine));
    reasons
}

/// `given`: cores that strategies share as a normal layout, which a note says.
fn shared_cores(by_core: &BTreeMap<u32, Vec<&ThreadPlan>>, given: &[u32], reasons: &mut Vec<String>) {
    if by_core.is_empty() {
        reasons.push(fitness::NOT_PINNED.into());
        return;
    }
    if by_core.len() == 1 {
        reasons.push(fitness::SINGLE_CORE.into());
        return;
    }
    let strategy = |thread: &&ThreadPlan| matches!(thread.roles[..], [Role::Strategy(_)]);
    let crowded: Vec<u32> = by_core
        .iter()
        .filter(|(core, threads)| !given.contains(core) && threads.iter().filter(|t| strategy(t)).count() > 1)
        .map(|(core, _)| *core)
        .collect();
    if !crowded.is_empty() {
        let on = plural("core", crowded.len() as u64);
        reasons.push(format!(
            "strategies share {on} {}: an order or its report may wait for a time slice. Use --idle park or \
             yield, or at most --strategies {} on this many cores",
            cpu_list::format(&crowded),
            by_core.len() - 1
        ));
    }
    for (core, threads) in by_core {
        if threads.len() > 1 && !threads.iter().all(strategy) {
            let names: Vec<&str> = threads.iter().map(|t| t.name.as_str()).collect();
            reasons.push(format!(
                "{} share core {core}: each waits while another runs. Allow more cores, or use fewer roles",
                names.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::planned;
    use crate::host::{Machine, fake};

    #[test]
    fn each_reason_is_given_with_its_remedy() {
        let two = fake::two_core_vm().machine();
        let server = Machine { governor: None, ..fake::server().machine() };
        for (settings, machine, wanted) in [
            ("", &two, ""),
            ("", &fake::plain(64).machine(), ""),
            ("", &Machine { governor: Some("performance".into()), ..two.clone() }, ""),
            ("", &server, ""),
            ("strategies=3", &two, ""),
            ("strategies=3 idle=park strategy_cores=1", &two, ""),
            ("strategies=3 idle=spin", &two, "strategies share core 0: an order"),
            ("strategies=3 idle=spin", &two, "at most --strategies 1 on"),
            ("strategy_cores=2 idle=park", &two, ""),
            ("pin=off", &two, "(--pin off)"),
            ("cores=0", &two, "single core"),
            ("", &Machine { cores_allowed: vec![], ..two.clone() }, "no thread is pinned"),
            ("", &Machine { tsc_invariant: false, ..two.clone() }, "clock source is tsc"),
            ("", &Machine { governor: Some("powersave".into()), ..two.clone() }, "governor is powersave"),
            (
                "",
                &Machine { smt_siblings: vec![vec![0, 1]], ..two.clone() },
                "cores 0+1 are hardware threads",
            ),
            // Many siblings are counted, not listed.
            ("strategies=8 venues=4 threading=dedicated", &server, "and 1 more are hardware threads"),
        ] {
            let warnings = planned(settings, machine).unwrap().2;
            let is_as_wanted = match &warnings[..] {
                [] => wanted.is_empty(),
                [only] => !wanted.is_empty() && only.contains(wanted),
                _ => false,
            };
            assert!(is_as_wanted, "{settings} {wanted}: {warnings:?}");
        }
    }
}
