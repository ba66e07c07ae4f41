//! Faults of the plan that were never injected: their order was never sent, the run or their target
//! ended before their time, or no target was running. And those that began and were cut short: the
//! run was over before a leak had reached its limit.

use merge::MergedRun;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use record::numbers::{count, duration};
use record::run::{Incident, RunOutcome, RunRecord};
use std::iter::repeat;

/// The words `was cut short`, used in messages on a fault that began and had not reached its end
/// when the run was over.
pub const CUT_SHORT: &str = "was cut short";

/// Returns a line for each fault that was planned and not injected, or cut short. None for a run
/// that did not end normally, where a fault might still have been injected.
pub(super) fn unfired_faults(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<String> {
    if record.outcome != RunOutcome::Complete || record.plan.faults.is_empty() {
        return Vec::new();
    }
    let start = record.clock.start_ticks;
    let last = merged.measured().map(|(_, row)| row.ended()).max().unwrap_or(start);
    let end_ns = merge::figures::to_ns(last.saturating_sub(start), ns_per_tick);
    let injections = record.fault_injections.iter().copied().chain(repeat(None));
    let unfired = |(fault, injections): (&Fault, Option<u64>)| {
        let Fault { kind, target, when, .. } = fault;
        let why = match injections {
            Some(0) => Some(no_signal_reason(fault, end_ns)),
            Some(_) => None,
            None => not_done_reason(fault, record, merged, (end_ns, ns_per_tick)),
        };
        let why = match why {
            Some(why) => format!("never fired: {why}"),
            None => cut_short_reason(fault, record, end_ns)?,
        };
        let when = match when {
            FaultTime::At { ns } => duration(*ns),
            FaultTime::Push { order, step } => format!("order {order}, {step}"),
        };
        Some(format!("the fault {kind}:{target} (at {when}) {why}"))
    };
    record.plan.faults.iter().zip(injections).filter_map(unfired).collect()
}

/// Returns why the launcher never sent the signal of a fault.
fn no_signal_reason(fault: &Fault, end_ns: u64) -> String {
    match fault.when {
        FaultTime::At { ns } if ns > end_ns => too_late(ns, end_ns),
        _ => "no target was running then".into(),
    }
}

fn too_late(due_ns: u64, end_ns: u64) -> String {
    format!("it was due after {}, and the last order was back after {}", duration(due_ns), duration(end_ns))
}

/// Returns why a strategy or venue never did to itself what the plan says; `None` if it did, or if
/// that is not known.
fn not_done_reason(
    fault: &Fault,
    record: &RunRecord,
    merged: &MergedRun,
    (end_ns, ns_per_tick): (u64, f64),
) -> Option<String> {
    let strategy = match (fault.target, fault.when) {
        // A signal of the launcher that was not counted.
        (FaultTarget::Strategy(_), FaultTime::At { ns })
            if matches!(fault.kind, FaultKind::Kill | FaultKind::Stop) =>
        {
            return (ns > end_ns).then(|| too_late(ns, end_ns));
        }
        (FaultTarget::Strategy(strategy), _) => strategy,
        (_, FaultTime::At { ns }) => return (ns > end_ns).then(|| too_late(ns, end_ns)),
        (_, FaultTime::Push { .. }) => return None,
    };
    // Only the first incarnation does it.
    let death = record.incidents.iter().find(|one| one.strategy == strategy && one.epoch == 0);
    let sent = merged.orders_of(strategy).filter(|(id, _)| id.epoch() == 0).count() as u64;
    let last_ns = || {
        let own = merged.orders_of(strategy).filter(|(id, _)| id.epoch() == 0);
        let last = own.map(|(_, row)| row.ended()).max().unwrap_or(0);
        merge::figures::to_ns(last.saturating_sub(record.clock.start_ticks), ns_per_tick)
    };
    let is_missed = match (fault.when, death) {
        // It may have overwritten the stamps by which its orders are counted.
        (FaultTime::Push { .. }, Some(_)) if fault.kind == FaultKind::Scribble => false,
        (FaultTime::Push { order, .. }, Some(_)) => sent < order,
        (FaultTime::At { ns }, Some(death)) => death.detected_ns < ns,
        (FaultTime::Push { order, .. }, None) => sent < order || (sent == order && ends(fault.kind)),
        (FaultTime::At { ns }, None) if ends_gradually(fault.kind) => ns > last_ns(),
        (FaultTime::At { ns }, None) => ns > end_ns || kills(fault.kind),
    };
    is_missed.then(|| match (fault.when, death) {
        (_, Some(Incident { cause, .. })) => {
            format!("strategy-{strategy} had died before ({cause}), and its successors have no faults")
        }
        (FaultTime::Push { order, .. }, None) => {
            let [order, sent] = [order, sent].map(count);
            format!("it waits for order {order}, counted from 0, and strategy-{strategy} sent {sent}")
        }
        (FaultTime::At { ns }, None) if ns > end_ns => too_late(ns, end_ns),
        (FaultTime::At { .. }, None) => format!("strategy-{strategy} had finished before"),
    })
}

/// Returns why a fault that began has not ended its strategy; `None` if it has, or does not.
fn cut_short_reason(fault: &Fault, record: &RunRecord, end_ns: u64) -> Option<String> {
    let FaultTarget::Strategy(strategy) = fault.target else { return None };
    let has_died = record.incidents.iter().any(|one| one.strategy == strategy && one.epoch == 0);
    (ends_gradually(fault.kind) && !has_died).then(|| {
        let end = duration(end_ns);
        format!("{CUT_SHORT}: it had not ended strategy-{strategy} when the last order was back, after {end}")
    })
}

/// Returns `true` if the fault ends its strategy, at once or later.
const fn ends(kind: FaultKind) -> bool {
    kills(kind) || ends_gradually(kind)
}

/// Returns `true` if the fault ends its strategy after some of its duty cycles.
const fn ends_gradually(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Leak | FaultKind::CoreDump) || kind.is_resource_fault()
}

/// Returns `true` if a strategy that does this to itself cannot end normally.
const fn kills(kind: FaultKind) -> bool {
    use FaultKind::{Abort, Exit, Feign, Hang, Kill, Oom, Panic, Segv, Stop};
    matches!(kind, Kill | Stop | Hang | Segv | Abort | Exit | Panic | Oom | Feign)
}
