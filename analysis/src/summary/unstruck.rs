//! Faults of the plan that cannot have struck: their order was never sent, or the run was over before their time.

use crate::merge::Merged;
use crate::record::{Outcome, RunRecord};
use protocol::plan::{Fault, Target, When};

/// One line for each; nothing for a run that did not come to its end, where nobody can say what would have come.
pub(super) fn faults(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Vec<String> {
    if record.outcome != Outcome::Complete || record.plan.faults.is_empty() {
        return Vec::new();
    }
    let start = record.clock.start_ticks;
    let last = merged.measured().map(|(_, row)| row.ended()).max().unwrap_or(start);
    let end_ns = super::figures::to_ns(last.saturating_sub(start), ns_per_tick);
    record.plan.faults.iter().filter_map(|fault| unstruck(fault, record, end_ns)).collect()
}

fn unstruck(fault: &Fault, record: &RunRecord, end_ns: u64) -> Option<String> {
    let orders = &record.plan.trading().orders;
    let name = match fault.target {
        Target::Strategy(index) => format!("strategy-{index}"),
        Target::Any => "any".into(),
        Target::Engine => "engine".into(),
        Target::Launcher => "launcher".into(),
        Target::Venue(index) => format!("venue-{index}"),
        Target::Exchange(index) => format!("exchange-{index}"),
    };
    let (kind, planned) = (fault.kind, |index: u16| orders.get(usize::from(index)).copied().unwrap_or(0));
    match fault.when {
        When::Push { order, .. } => {
            let most = match fault.target {
                Target::Strategy(index) => planned(index),
                _ => orders.iter().copied().max().unwrap_or(0),
            };
            (order >= most).then(|| {
                format!("the fault {kind}:{name} never struck: it waits for order {order}, and the strategy has {most}, from 0")
            })
        }
        When::At { ns } => (ns > end_ns).then(|| {
            let [due, end] = [ns, end_ns].map(crate::numbers::duration);
            format!("the fault {kind}:{name} never struck: it was due after {due}, and the last order was back after {end}")
        }),
    }
}
