//! Containment figures of a run: every incident, and all of them together.
//!
//! The survivors of an incident are the orders of other strategies that it touched, as
//! [`super::touched`] has it, and that came back whole. Beside them stand the orders, of all
//! strategies, that had come back before the first incident began.

use super::figures::{
    Distribution, MeasureSeries, SAMPLES_FOR_P50, SAMPLES_FOR_P999, quantile, rt_venue, to_ns,
};
use super::touched::Windows;
use crate::merge::{Losses, Merged};
use crate::record::{Incident, RunRecord, StayedDown};
use protocol::supervision::ProtocolViolation;
use serde::{Deserialize, Serialize};

/// The death of one incarnation of a strategy, and what it cost. Times are nanoseconds since the
/// start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncidentSummary {
    /// The strategy.
    pub strategy: u16,
    /// The incarnation that died.
    pub epoch: u16,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, `quarantined: bad-cursor`, …
    pub cause: String,
    /// What the engine quarantined it for; null if it did not. Nothing is started again after that.
    pub quarantined: Option<ProtocolViolation>,
    /// When the fault was done on purpose; null if it was not.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed the death or the hang, or the engine quarantined the strategy.
    pub detected_ns: u64,
    /// From there until the engine had repaired what the dead one left; null: the run ended before.
    pub detect_to_repair_ns: Option<u64>,
    /// From there until the next incarnation was in its duty cycles; null if there is none.
    pub repair_to_restart_ns: Option<u64>,
    /// Why the strategy was given up after it; null: it was not, or the plan has no restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stayed_down: Option<StayedDown>,
    /// What became of the orders that the dead one got no report of.
    pub orders: Losses,
    /// rt_venue of the orders of other strategies that the incident touched.
    pub survivors: Survivors,
}

/// Orders that an incident touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivors {
    /// How many there are.
    pub orders: u64,
    /// The median of their rt_venue; from 20 orders on.
    pub p50_ns: Option<u64>,
    /// The 99.9th percentile; from 10,000 orders on.
    pub p999_ns: Option<u64>,
    /// The greatest.
    pub max_ns: Option<u64>,
}

/// All incidents of a run together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Containment {
    /// Deaths.
    pub incidents: u64,
    /// Strategies that died at least once.
    pub strategies: u64,
    /// Deaths after a quarantine.
    pub quarantined: u64,
    /// Deaths after which the strategy was started again.
    pub restarted: u64,
    /// What became of the orders that the dead got no report of.
    pub orders: Losses,
    /// Orders lost by incarnations that lived; more than none makes a complete run invalid.
    pub lost_of_survivors: u64,
    /// From detection to repair, one sample for each incident that was repaired.
    pub detect_to_repair: Distribution,
    /// rt_venue of all orders that had come back before the first incident began.
    pub survivors_before: Distribution,
    /// rt_venue of the orders that an incident of another strategy touched, each once.
    pub survivors_during: Distribution,
}

impl Containment {
    /// Its distributions with their names.
    pub const fn distributions(&self) -> [(&'static str, &Distribution); 3] {
        [
            ("detect_to_repair", &self.detect_to_repair),
            ("survivors_before", &self.survivors_before),
            ("survivors_during", &self.survivors_during),
        ]
    }
}

/// Every incident in the order of the record, and all together; nothing for a run without. Linear
/// in orders and incidents, with 8 bytes for each order and incident that touched it.
pub(super) fn summarise(
    record: &RunRecord,
    merged: &Merged,
    ns_per_tick: f64,
) -> (Vec<IncidentSummary>, Option<Containment>) {
    if record.incidents.is_empty() {
        return (Vec::new(), None);
    }
    let windows = Windows::of(record);
    let (mut before, mut during, mut repairs) =
        (MeasureSeries::new(), MeasureSeries::new(), MeasureSeries::new());
    let mut touched: Vec<Vec<u64>> = vec![Vec::new(); record.incidents.len()];
    for (id, row) in merged.measured() {
        let ticks = rt_venue(row);
        if windows.is_before_all(row) {
            before.take(ticks, ns_per_tick);
            continue;
        }
        let mut is_touched = false;
        windows.touching(id.strategy(), row, |incident| {
            touched[incident].push(ticks);
            is_touched = true;
        });
        if is_touched {
            during.take(ticks, ns_per_tick);
        }
    }
    let losses = merged.losses.iter().copied().chain(std::iter::repeat(Losses::default()));
    let incidents: Vec<IncidentSummary> = (record.incidents.iter().zip(losses).zip(&mut touched))
        .map(|((incident, losses), touched)| summary(incident, losses, survivors(touched, ns_per_tick)))
        .collect();
    for ns in incidents.iter().filter_map(|incident| incident.detect_to_repair_ns) {
        // Nanoseconds already.
        repairs.take(ns, 1.0);
    }
    let many =
        |is: fn(&IncidentSummary) -> bool| incidents.iter().filter(|incident| is(incident)).count() as u64;
    let mut strategies: Vec<u16> = incidents.iter().map(|incident| incident.strategy).collect();
    strategies.sort_unstable();
    strategies.dedup();
    let containment = Containment {
        incidents: incidents.len() as u64,
        strategies: strategies.len() as u64,
        quarantined: many(|incident| incident.quarantined.is_some()),
        restarted: many(|incident| incident.repair_to_restart_ns.is_some()),
        orders: merged.losses.iter().copied().sum(),
        lost_of_survivors: merged.lost_of_survivors,
        detect_to_repair: repairs.distribution(1.0),
        survivors_before: before.distribution(ns_per_tick),
        survivors_during: during.distribution(ns_per_tick),
    };
    (incidents, Some(containment))
}

fn summary(incident: &Incident, orders: Losses, survivors: Survivors) -> IncidentSummary {
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
        orders,
        survivors,
    }
}

/// The figures of some orders, exact. Reorders them.
fn survivors(ticks: &mut [u64], ns_per_tick: f64) -> Survivors {
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    Survivors {
        orders: ticks.len() as u64,
        p50_ns: quantile(ticks, 0.5, SAMPLES_FOR_P50 as usize).map(ns),
        p999_ns: quantile(ticks, 0.999, SAMPLES_FOR_P999 as usize).map(ns),
        max_ns: ticks.iter().max().copied().map(ns),
    }
}

/// The incidents to show where there is room for so many: those that the survivors felt most, in
/// the order of their detection.
pub fn worst(incidents: &[IncidentSummary], room: usize) -> Vec<&IncidentSummary> {
    let mut chosen: Vec<&IncidentSummary> = incidents.iter().collect();
    chosen.sort_by_key(|incident| std::cmp::Reverse(incident.survivors.max_ns));
    chosen.truncate(room);
    chosen.sort_by_key(|incident| incident.detected_ns);
    chosen
}
