//! Faults of the plan that were never injected: their order was never sent, the run ended before
//! their time, or no target was running.

use crate::merge::MergedRun;
use crate::record::{RunOutcome, RunRecord};
use protocol::plan::{Fault, FaultTarget, FaultTime};
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
    let strikes = record.strikes.iter().copied().chain(repeat(None));
    let faults = record.plan.faults.iter().zip(strikes);
    faults.filter_map(|(fault, strikes)| unfired_reason(fault, strikes, record, end_ns)).collect()
}

fn unfired_reason(fault: &Fault, strikes: Option<u64>, record: &RunRecord, end_ns: u64) -> Option<String> {
    let orders = &record.plan.trading().orders;
    let name = fault.target;
    let (kind, planned) = (fault.kind, |index: u16| orders.get(usize::from(index)).copied().unwrap_or(0));
    match fault.when {
        FaultTime::Push { order, .. } => {
            let max_order = match fault.target {
                FaultTarget::Strategy(index) => planned(index),
                _ => orders.iter().copied().max().unwrap_or(0),
            };
            (order >= max_order).then(|| {
                format!("the fault {kind}:{name} never fired: it waits for order {order}, and the strategy has {max_order}, from 0")
            })
        }
        FaultTime::At { ns } if ns > end_ns && strikes.is_none_or(|times| times == 0) => {
            let [due, end] = [ns, end_ns].map(crate::numbers::duration);
            Some(format!(
                "the fault {kind}:{name} never fired: it was due after {due}, and the last order was back after {end}"
            ))
        }
        FaultTime::At { ns } if strikes == Some(0) => {
            let due = crate::numbers::duration(ns);
            Some(format!(
                "the fault {kind}:{name} never fired: it was due after {due}, and no target was running"
            ))
        }
        FaultTime::At { .. } => None,
    }
}
