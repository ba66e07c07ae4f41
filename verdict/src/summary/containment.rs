//! Orders that were lost, and the latency of the survivors, for each incident and for all together.
//!
//! The survivors of an incident are the complete orders of other strategies that it affected, as
//! [`super::incident_windows`] defines it. The reference are the orders, of all strategies, that
//! had returned before the first incident began.

use super::incident_windows::IncidentWindows;
use merge::figures::{
    Distribution, MeasureSeries, SAMPLES_FOR_P50, SAMPLES_FOR_P999, engine_ticks, quantile, to_ns,
};
use merge::{MergedRun, OrderLosses};
use protocol::index::StrategyIndex;
use protocol::supervision::ProtocolViolation;
use record::cpu_shortage::CpuShortage;
use record::run::{EndByOperator, Incident, RunRecord, StayedDown};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The death of one incarnation of a strategy and its effects. Times are nanoseconds since the
/// start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncidentSummary {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Epoch of the incarnation that died.
    pub epoch: u16,
    /// Cause of the death: `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, `quarantined:
    /// bad-cursor`, …
    pub cause: String,
    /// Violation for which the engine quarantined the strategy; null if it did not. A quarantined
    /// strategy is not restarted.
    pub quarantined: Option<ProtocolViolation>,
    /// Time of the injected fault in nanoseconds; null without one.
    pub fault_ns: Option<u64>,
    /// Time in nanoseconds at which the launcher detected the death or the hang, or the engine
    /// quarantined the strategy.
    pub detected_ns: u64,
    /// Nanoseconds from detection until the engine had repaired the rings; null if the run ended
    /// before.
    pub detect_to_repair_ns: Option<u64>,
    /// Nanoseconds from repair until the next incarnation ran its duty cycles; null if there is
    /// none.
    pub repair_to_restart_ns: Option<u64>,
    /// Reason for which the strategy was not restarted any more; null if it was, or the plan has no
    /// restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
    /// CPU time of the silent thread, if the strategy was killed because it hung.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<CpuShortage>,
    /// CPU time of the killed process until it ended, if that took long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_exit: Option<CpuShortage>,
    /// Whether the strategy's death was proven before the kernel had dismantled its process.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub proven_early: bool,
    /// How an operator ended the incarnation; null if it died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_operator: Option<EndByOperator>,
    /// The strategies that shared its process and ended with it, this one included; absent if it
    /// had a process of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<StrategyIndex>,
    /// Outcomes of the orders that the dead incarnation received no report for.
    pub orders: OrderLosses,
    /// rt_venue of the orders of other strategies that the incident affected.
    pub survivors: Survivors,
}

/// The number and rt_venue of other strategies' orders that were in the engine between one
/// strategy's death and 10 ms after its repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// Number of affected orders.
    pub orders: u64,
    /// Median of rt_venue in nanoseconds; from 20 orders on.
    pub p50_ns: Option<u64>,
    /// 99.9th percentile of rt_venue in nanoseconds; from 10,000 orders on.
    pub p999_ns: Option<u64>,
    /// Maximum of rt_venue in nanoseconds.
    pub max_ns: Option<u64>,
}

/// The effects of all strategy deaths of a run together: lost orders, and the latency of surviving
/// strategies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Containment {
    /// Number of deaths and of ends by operators.
    pub incidents: u64,
    /// Number of incarnations that operators ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub by_operators: u64,
    /// Number of strategies that died at least once.
    pub strategies: u64,
    /// Number of deaths after a quarantine.
    pub quarantined: u64,
    /// Number of deaths after which the strategy was restarted.
    pub restarted: u64,
    /// Outcomes of the orders that dead incarnations received no report for.
    pub orders: OrderLosses,
    /// Orders lost by incarnations that survived; any makes a complete run invalid.
    pub lost_of_survivors: u64,
    /// Time from detection to repair, one sample for each repaired incident.
    pub detect_to_repair: Distribution,
    /// rt_venue of all orders that had returned before the first incident began.
    pub survivors_before: Distribution,
    /// rt_venue of the orders that an incident of another strategy affected, each once.
    pub survivors_during: Distribution,
}

impl Containment {
    /// Returns the three distributions over all strategy deaths, with their names: detection to
    /// repair, and rt_venue before the first incident and during incidents.
    pub const fn distributions(&self) -> [(&'static str, Distribution); 3] {
        [
            ("detect_to_repair", self.detect_to_repair),
            ("survivors_before", self.survivors_before),
            ("survivors_during", self.survivors_during),
        ]
    }
}

/// Summarizes every strategy death, and all together; `None` for a run without any. Linear in
/// orders and incidents, with 8 bytes for each pair of an incident and an affected order.
pub(super) fn summarize(
    record: &RunRecord,
    merged: &MergedRun,
    ns_per_tick: f64,
) -> (Vec<IncidentSummary>, Option<Containment>) {
    if record.incidents.is_empty() {
        return (Vec::new(), None);
    }
    let windows = IncidentWindows::from_record(record);
    let (mut before, mut during, mut repairs) =
        (MeasureSeries::default(), MeasureSeries::default(), MeasureSeries::default());
    let mut touched: Vec<Vec<u64>> = vec![Vec::new(); record.incidents.len()];
    for (id, row) in merged.measured() {
        let ticks = engine_ticks(row);
        if windows.is_before_all(row) {
            before.record(ticks, ns_per_tick);
            continue;
        }
        let mut is_touched = false;
        for incident in windows.affecting(id.strategy(), row) {
            touched[incident].push(ticks);
            is_touched = true;
        }
        if is_touched {
            during.record(ticks, ns_per_tick);
        }
    }
    let losses = merged.losses.iter().copied().chain(std::iter::repeat(OrderLosses::default()));
    let incidents: Vec<IncidentSummary> = (record.incidents.iter().zip(losses).zip(&mut touched))
        .map(|((incident, losses), touched)| summary(incident, losses, survivors(touched, ns_per_tick)))
        .collect();
    for ns in incidents.iter().filter_map(|incident| incident.detect_to_repair_ns) {
        // Already nanoseconds.
        repairs.record(ns, 1.0);
    }
    let count_incidents =
        |is: fn(&IncidentSummary) -> bool| incidents.iter().filter(|incident| is(incident)).count() as u64;
    let strategies: BTreeSet<StrategyIndex> = incidents.iter().map(|incident| incident.strategy).collect();
    let containment = Containment {
        incidents: incidents.len() as u64,
        by_operators: count_incidents(|incident| incident.by_operator.is_some()),
        strategies: strategies.len() as u64,
        quarantined: count_incidents(|incident| incident.quarantined.is_some()),
        restarted: count_incidents(|incident| incident.repair_to_restart_ns.is_some()),
        orders: merged.losses.iter().copied().sum(),
        lost_of_survivors: merged.lost_of_survivors,
        detect_to_repair: repairs.distribution(1.0),
        survivors_before: before.distribution(ns_per_tick),
        survivors_during: during.distribution(ns_per_tick),
    };
    (incidents, Some(containment))
}

fn summary(incident: &Incident, orders: OrderLosses, survivors: Survivors) -> IncidentSummary {
    let repaired = incident.repaired_ns;
    let restarted = incident.restarted_ns.zip(repaired);
    IncidentSummary {
        strategy: incident.strategy,
        epoch: incident.epoch,
        cause: incident.cause.clone(),
        quarantined: incident.quarantined,
        fault_ns: incident.fault_ns,
        detected_ns: incident.detected_ns,
        detect_to_repair_ns: repaired.map(|repaired| repaired.saturating_sub(incident.detected_ns)),
        repair_to_restart_ns: restarted.map(|(restarted, repaired)| restarted.saturating_sub(repaired)),
        stayed_down: incident.stayed_down.clone(),
        silence: incident.silence,
        slow_exit: incident.slow_exit,
        proven_early: incident.proven_early,
        by_operator: incident.by_operator.clone(),
        group: incident.group.clone(),
        orders,
        survivors,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Returns exact figures of some orders. Reorders the slice.
fn survivors(ticks: &mut [u64], ns_per_tick: f64) -> Survivors {
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    Survivors {
        orders: ticks.len() as u64,
        p50_ns: quantile(ticks, 0.5, SAMPLES_FOR_P50 as usize).map(ns),
        p999_ns: quantile(ticks, 0.999, SAMPLES_FOR_P999 as usize).map(ns),
        max_ns: ticks.iter().max().copied().map(ns),
    }
}

/// Returns up to `max` strategy deaths, those with the greatest effect on survivors, in the order
/// of detection.
pub fn worst(incidents: &[IncidentSummary], max: usize) -> Vec<&IncidentSummary> {
    let mut chosen: Vec<&IncidentSummary> = incidents.iter().collect();
    chosen.sort_by_key(|incident| std::cmp::Reverse(incident.survivors.max_ns));
    chosen.truncate(max);
    chosen.sort_by_key(|incident| incident.detected_ns);
    chosen
}
