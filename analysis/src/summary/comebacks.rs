//! Roles of the engine that died and came back from their journals: how long that took, and what it
//! did to the orders that were there.
//!
//! ```text
//! its order        from ─────────────────────────── to      there then: from before the comeback, to after the death
//! the role            fault ─ detected ─── recovered ─ first
//! ```
//! An order is at its exchange from t4 to t5, and the engine's from t1 to t8.
//! ```text
//! first: the first order that the successor stamps: the exchange's own stamp, the engine's t3
//! ```

use super::figures::to_ns;
use crate::merge::{Merged, OrderRow};
use crate::record::{Outage, RoleRestart, RunRecord};
use protocol::plan::Role;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use serde::{Deserialize, Serialize};

/// A death of a role of the engine, and its comeback. Times are nanoseconds since the start of the
/// run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComebackSummary {
    /// Who came back: `exchange-0`, `engine`.
    pub role: String,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// When the fault was done on purpose; null if it was not.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed the death or the hang.
    pub detected_ns: u64,
    /// From there until the successor was in its duty cycles, in the state that the journal has;
    /// null: the run ended before.
    pub detect_to_recovery_ns: Option<u64>,
    /// From the death, or its detection if its time is not known, until the successor stamped its
    /// first order; null: no order came.
    pub first_served_ns: Option<u64>,
    /// Records that the journal had then.
    pub records: u64,
    /// Those of them that it carried out again; the others were in a state that it went on from: a
    /// snapshot, or that of one that had followed the journal.
    #[serde(default)]
    pub again: u64,
    /// Orders that were there while it was away, or came then; of the engine, without those of
    /// strategies that died.
    pub in_flight: u64,
    /// Of those, the ones that its successor has answered; the others' strategies died.
    pub answered: u64,
    /// The longest round trip of those that came back; null where there was none.
    pub longest_ns: Option<u64>,
}

/// The points between which an order is that role's.
const fn ends_of(role: Role) -> [Point; 2] {
    match role {
        Role::Exchange(_) => [Point::GatewayRecv, Point::GatewayDone],
        _ => [Point::StrategySend, Point::StrategyRecv],
    }
}

/// When an order was a role's, as far as it came.
fn there(row: &OrderRow, [from, to]: [Point; 2]) -> Option<(u64, u64)> {
    Some((row.at(from)?, row.at(to).unwrap_or(u64::MAX)))
}

/// Every outage of the record, in its order, with the first order of the next incarnation. Linear
/// in orders and outages.
pub(super) fn outages(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Vec<Outage> {
    let since_start = |ticks: u64| to_ns(ticks.saturating_sub(record.clock.start_ticks), ns_per_tick);
    let one = |outage: &Outage| {
        let first_after = |row: &OrderRow| {
            let (gateway, _) = row.pushed()?;
            let is_its = outage.gateways.contains(&(gateway as u16));
            // The dead one has taken none after its fence.
            let at = since_start(row.at(Point::GatewayRecv).filter(|_| is_its)?);
            (at >= outage.fenced_ns).then_some(at)
        };
        let is_back = outage.restarted_ns.is_some();
        let served_ns = merged.orders().filter(|_| is_back).filter_map(|(_, row)| first_after(row)).min();
        Outage { served_ns, ..outage.clone() }
    };
    record.outages.iter().map(one).collect()
}

/// Every comeback of the record, in its order. Linear in orders and comebacks.
pub(super) fn summarise(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Vec<ComebackSummary> {
    let trading = record.plan.trading();
    let start = record.clock.start_ticks;
    let ticks = |ns: u64| start.saturating_add((ns as f64 / record.plan.ns_per_tick) as u64);
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    let died_by_itself = |id: OrderId| {
        record.incidents.iter().any(|one| (one.strategy, one.epoch) == (id.strategy(), id.epoch()))
    };
    let one = |comeback: &RoleRestart| {
        let RoleRestart { role, cause, fault_ns, detected_ns, recovered_ns, records, again, .. } = comeback;
        let died = ticks(fault_ns.unwrap_or(u64::MAX).min(*detected_ns));
        let recovered = recovered_ns.map(ticks);
        let mut summary = ComebackSummary {
            // Its gateways die and come back with it.
            role: if *role == Role::Orchestrator { "engine".into() } else { role.to_string() },
            cause: cause.clone(),
            fault_ns: *fault_ns,
            detected_ns: *detected_ns,
            detect_to_recovery_ns: recovered_ns.map(|at| at.saturating_sub(*detected_ns)),
            first_served_ns: None,
            records: *records,
            again: *again,
            in_flight: 0,
            answered: 0,
            longest_ns: None,
        };
        let (ends, mut first) = (ends_of(*role), None);
        for (id, row) in merged.orders() {
            let venue = row.pushed().map(|(gateway, _)| trading.venue_of(gateway as u16));
            let is_its =
                *role == Role::Orchestrator || venue.is_some_and(|venue| *role == Role::Exchange(venue));
            let Some((from, to)) = there(row, ends).filter(|_| is_its) else { continue };
            let served = match role {
                Role::Exchange(_) => merged.at_exchange(id).received(),
                _ => row.at(Point::OrchDispatch),
            };
            let served = served.filter(|at| recovered.is_some_and(|recovered| *at >= recovered));
            first = served.into_iter().chain(first).min();
            // Who was dead then asks for nothing any more.
            let is_asked_for = to != u64::MAX || *role != Role::Orchestrator || !died_by_itself(id);
            if from <= recovered.unwrap_or(u64::MAX) && to >= died && is_asked_for {
                summary.in_flight += 1;
                summary.answered += u64::from(row.has(ends[1]));
                if row.is_measured() {
                    summary.longest_ns = summary.longest_ns.max(Some(ns(row.round_trip())));
                }
            }
        }
        summary.first_served_ns = first.map(|first| ns(first.saturating_sub(died)));
        summary
    };
    record.comebacks.iter().map(one).collect()
}
