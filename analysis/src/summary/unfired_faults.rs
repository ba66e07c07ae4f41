//! Faults of the plan that were never injected: their order was never sent, the run or their target
//! ended before their time, or no target was running.

use crate::merge::MergedRun;
use crate::numbers::{count, duration};
use crate::record::{Incident, RunOutcome, RunRecord};
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use std::iter::repeat;

/// Returns a line for each fault that was planned and not injected. None for a run that did not end
/// normally, where a fault might still have been injected.
pub(super) fn unfired_faults(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<String> {
    if record.outcome != RunOutcome::Complete || record.plan.faults.is_empty() {
        return Vec::new();
    }
    let start = record.clock.start_ticks;
    let last = merged.measured().map(|(_, row)| row.ended()).max().unwrap_or(start);
    let end_ns = super::figures::to_ns(last.saturating_sub(start), ns_per_tick);
    let injections = record.fault_injections.iter().copied().chain(repeat(None));
    let unfired = |(fault, injections): (&Fault, Option<u64>)| {
        let Fault { kind, target, when, .. } = fault;
        let why = match injections {
            Some(0) => Some(no_signal_reason(fault, end_ns)),
            Some(_) => None,
            None => not_done_reason(fault, record, merged, end_ns),
        }?;
        let when = match when {
            FaultTime::At { ns } => duration(*ns),
            FaultTime::Push { order, step } => format!("order {order}, {step}"),
        };
        Some(format!("the fault {kind}:{target} (at {when}) never fired: {why}"))
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
fn not_done_reason(fault: &Fault, record: &RunRecord, merged: &MergedRun, end_ns: u64) -> Option<String> {
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
    let is_missed = match (fault.when, death) {
        // It may have overwritten the stamps by which its orders are counted.
        (FaultTime::Push { .. }, Some(_)) if fault.kind == FaultKind::Scribble => false,
        (FaultTime::Push { order, .. }, Some(_)) => sent < order,
        (FaultTime::At { ns }, Some(death)) => death.detected_ns < ns,
        (FaultTime::Push { order, .. }, None) => sent < order || (sent == order && kills(fault.kind)),
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

/// Returns `true` if a strategy that does this to itself cannot end normally.
const fn kills(kind: FaultKind) -> bool {
    use FaultKind::{Abort, Exit, Feign, Hang, Kill, Oom, Panic, Segv, Stop};
    matches!(kind, Kill | Stop | Hang | Segv | Abort | Exit | Panic | Oom | Feign)
}
