//! Restarts of engine roles from their journals: their duration, and their effect on open orders.
//!
//! ```text
//! its order        from ─────────────────────────── to
//! the role            fault ─ detected ─ steps ─ recovered ─ first
//! ```
//!
//! An order is at its exchange from t4 to t5, and in the engine from t1 to t8. It was in flight if
//! it was there between the death and the recovery. `first` is the first order that the successor
//! stamps: the exchange's own stamp, the engine's t3.

use merge::figures::to_ns;
use merge::{MergedRun, OrderRow};
use protocol::index::GatewayIndex;
use protocol::plan::Role;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use record::run::{Outage, RestartSteps, RoleRestart, RunRecord};
use serde::{Deserialize, Serialize};

/// The restart of an engine role after its death: its duration and its effect on open orders. Times
/// are nanoseconds since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleRestartSummary {
    /// Role that was restarted: `exchange-0`, `engine`.
    pub role: String,
    /// Cause of the death: `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// Time of the injected fault in nanoseconds; null without one.
    pub fault_ns: Option<u64>,
    /// Time in nanoseconds at which the launcher detected the death or the hang.
    pub detected_ns: u64,
    /// Nanoseconds from detection until the successor ran its duty cycles with the whole state of
    /// the journal; null if the run ended before.
    pub detect_to_recovery_ns: Option<u64>,
    /// The steps of the restart.
    #[serde(default)]
    pub steps: RestartSteps,
    /// Nanoseconds from the death (or its detection, if unknown) until the successor stamped its
    /// first order; null without an order.
    pub first_served_ns: Option<u64>,
    /// Number of records in the journal at the restart.
    pub records: u64,
    /// Number of journal records that the successor replayed; the others were part of its snapshot
    /// or standby state.
    #[serde(rename = "again", default)]
    pub replayed: u64,
    /// Number of orders that were at the role, or arrived, during its absence; for the engine,
    /// without those of dead strategies.
    pub in_flight: u64,
    /// Number of orders in flight that the successor answered; the strategies of the others died.
    pub answered: u64,
    /// Longest round trip of the answered orders in nanoseconds; null if none returned.
    pub longest_ns: Option<u64>,
}

/// Returns every outage of a venue, with the first order that the restarted gateway served. Linear
/// in orders and outages.
pub(super) fn outages(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<Outage> {
    let since_start = |ticks: u64| to_ns(ticks.saturating_sub(record.clock.start_ticks), ns_per_tick);
    let one = |outage: &Outage| {
        let first_after = |row: &OrderRow| {
            let (gateway, _) = row.pushed()?;
            let is_its = outage.gateways.contains(&GatewayIndex(gateway as u16));
            // The dead incarnation received none after its fence.
            let at = since_start(row.at(Point::GatewayRecv).filter(|_| is_its)?);
            (at >= outage.fenced_ns).then_some(at)
        };
        let is_back = outage.restarted_ns.is_some();
        let served_ns = merged.orders().filter(|_| is_back).filter_map(|(_, row)| first_after(row)).min();
        Outage { served_ns, ..outage.clone() }
    };
    record.outages.iter().map(one).collect()
}

/// Summarizes every restart of an engine role in a run. Linear in orders and restarts.
pub(super) fn summarize(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<RoleRestartSummary> {
    let start = record.clock.start_ticks;
    let ticks = |ns: u64| start.saturating_add((ns as f64 / record.plan.ns_per_tick) as u64);
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    let died_by_itself = |id: OrderId| {
        record.incidents.iter().any(|one| (one.strategy, one.epoch) == (id.strategy(), id.epoch()))
    };
    let one = |restart: &RoleRestart| {
        let RoleRestart {
            role,
            cause,
            fault_ns,
            detected_ns,
            recovered_ns,
            steps,
            records,
            replayed: again,
            ..
        } = restart;
        let died = ticks(fault_ns.unwrap_or(u64::MAX).min(*detected_ns));
        let recovered = recovered_ns.map(ticks);
        // The launcher notices that later than the first order may be served.
        let running = steps.running_ns.map(ticks).or(recovered);
        let mut summary = RoleRestartSummary {
            // Its gateways die and restart with it.
            role: if *role == Role::Orchestrator { "engine".into() } else { role.to_string() },
            cause: cause.clone(),
            fault_ns: *fault_ns,
            detected_ns: *detected_ns,
            detect_to_recovery_ns: recovered_ns.map(|at| at.saturating_sub(*detected_ns)),
            steps: *steps,
            first_served_ns: None,
            records: *records,
            replayed: *again,
            in_flight: 0,
            answered: 0,
            longest_ns: None,
        };
        let is_engine = *role == Role::Orchestrator;
        let mut first = None;
        for (id, row) in merged.orders() {
            let venue =
                row.pushed().map(|(gateway, _)| record.plan.trading().venue_of(GatewayIndex(gateway as u16)));
            let is_its = is_engine || venue.is_some_and(|venue| *role == Role::Exchange(venue));
            let (from, to, served) = match is_engine {
                true => (Point::StrategySend, Point::StrategyRecv, row.at(Point::OrchDispatch)),
                false => (Point::GatewayRecv, Point::GatewayDone, merged.at_exchange(id).received()),
            };
            let (is_answered, to) = (row.has(to), row.at(to).unwrap_or(u64::MAX));
            let Some(from) = row.at(from).filter(|_| is_its) else { continue };
            let served = served.filter(|at| running.is_some_and(|running| *at >= running));
            first = served.into_iter().chain(first).min();
            // A strategy that was dead by then expects no report.
            let is_asked_for = is_answered || !is_engine || !died_by_itself(id);
            if from <= recovered.unwrap_or(u64::MAX) && to >= died && is_asked_for {
                summary.in_flight += 1;
                summary.answered += u64::from(is_answered);
                if row.is_measured() {
                    summary.longest_ns = summary.longest_ns.max(Some(ns(row.round_trip())));
                }
            }
        }
        summary.first_served_ns = first.map(|first| ns(first.saturating_sub(died)));
        summary
    };
    record.role_restarts.iter().map(one).collect()
}
