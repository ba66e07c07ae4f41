//! The latency of the strategies without a fault, before and after the first fault of another
//! strategy.
//!
//! An incident's window has a few hundred orders. The time before and the time after have enough
//! for every percentile.

use merge::MergedRun;
use merge::figures::{Distribution, MeasureSeries, engine_ticks};
use protocol::index::StrategyIndex;
use protocol::plan::{FaultTarget, FaultTime};
use record::run::RunRecord;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The latency rt_venue of strategies without a fault: of orders that returned before another
/// strategy's first fault, and of all later orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AroundFault {
    /// rt_venue of the orders that returned before the first fault.
    pub before: Distribution,
    /// rt_venue of the orders that returned after the first fault.
    pub after: Distribution,
}

/// Measures the others' orders around the first fault of a strategy. `None` for a run without one,
/// or if its time is not known.
pub(super) fn measure(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Option<AroundFault> {
    let faults = record.plan.faults.iter().filter_map(|fault| match fault.target {
        FaultTarget::Strategy(strategy) if !fault.kind.is_disturbance() => Some((strategy, fault.when)),
        _ => None,
    });
    let faults: Vec<(StrategyIndex, FaultTime)> = faults.collect();
    let with_fault: BTreeSet<StrategyIndex> = faults.iter().map(|(strategy, _)| *strategy).collect();
    let incidents = record.incidents.iter().filter(|incident| with_fault.contains(&incident.strategy));
    let first_effects =
        incidents.map(|incident| incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns));
    let planned = faults.iter().filter_map(|(_, when)| match when {
        FaultTime::At { ns } => Some(*ns),
        FaultTime::Push { .. } => None,
    });
    let first_ns = first_effects.min().or_else(|| planned.min())?;
    let first = record.clock.start_ticks.saturating_add((first_ns as f64 / record.plan.ns_per_tick) as u64);
    let (mut before, mut after) = (MeasureSeries::default(), MeasureSeries::default());
    for (_, row) in merged.measured().filter(|(id, _)| !with_fault.contains(&id.strategy())) {
        let side = if row.ended() < first { &mut before } else { &mut after };
        side.record(engine_ticks(row), ns_per_tick);
    }
    Some(AroundFault { before: before.distribution(ns_per_tick), after: after.distribution(ns_per_tick) })
}
