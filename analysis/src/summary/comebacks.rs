//! Roles of the engine that died and came back from their journals: how long that took, and what it did to the orders that were there.
//!
//! ```text
//! its order        t4 ───────────────────────────── t5      there then: t4 before the comeback, t5 after the death
//! the exchange        fault ─ detected ─── recovered ─ first
//! ```

use super::figures::to_ns;
use crate::merge::{Merged, OrderRow};
use crate::record::{Comeback, RunRecord};
use protocol::plan::Role;
use protocol::stamps::Point;
use serde::{Deserialize, Serialize};

/// A death of a role of the engine, and its comeback. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComebackSummary {
    /// Who came back: `exchange-0`.
    pub role: String,
    /// `signal 9 (SIGKILL)`, `hangs: no duty cycle for 200ms`, …
    pub cause: String,
    /// When the fault was done on purpose; null if it was not.
    pub fault_ns: Option<u64>,
    /// When the launcher noticed the death or the hang.
    pub detected_ns: u64,
    /// From there until the successor was in its duty cycles, in the state that the journal has; null: the run ended before.
    pub detect_to_recovery_ns: Option<u64>,
    /// From the death, or its detection if its time is not known, until the successor stamped its first order; null: no order came.
    pub first_served_ns: Option<u64>,
    /// Records that the journal had then.
    pub records: u64,
    /// Those of them that it carried out again; the others were in a state that it went on from: a snapshot, or that of one that had
    /// followed the journal.
    #[serde(default)]
    pub again: u64,
    /// Orders that were there while it was away, or came then.
    pub in_flight: u64,
    /// Of those, the ones that its successor has answered; the others' strategies died.
    pub answered: u64,
    /// The longest round trip of those that came back; null where there was none.
    pub longest_ns: Option<u64>,
}

/// When an order was at an exchange, from its gateway's stamps, as far as it came.
fn there(row: &OrderRow) -> Option<(u64, u64)> {
    Some((row.at(Point::GatewayRecv)?, row.at(Point::GatewayDone).unwrap_or(u64::MAX)))
}

/// Every comeback of the record, in its order. Linear in orders and comebacks.
pub(super) fn summarise(record: &RunRecord, merged: &Merged, ns_per_tick: f64) -> Vec<ComebackSummary> {
    let trading = record.plan.trading();
    let start = record.clock.start_ticks;
    let ticks = |ns: u64| start.saturating_add((ns as f64 / record.plan.ns_per_tick) as u64);
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    let one = |comeback: &Comeback| {
        let Comeback { role, cause, fault_ns, detected_ns, recovered_ns, records, again, .. } = comeback;
        let died = ticks(fault_ns.unwrap_or(u64::MAX).min(*detected_ns));
        let recovered = recovered_ns.map(ticks);
        let mut summary = ComebackSummary {
            role: role.to_string(),
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
        let mut first = None;
        for (id, row) in merged.orders() {
            let is_its = row
                .pushed()
                .is_some_and(|(gateway, _)| *role == Role::Exchange(trading.venue_of(gateway as u16)));
            let Some((t4, t5)) = there(row).filter(|_| is_its) else { continue };
            let received =
                merged.at_exchange(id).received().filter(|at| recovered.is_some_and(|from| *at >= from));
            first = received.into_iter().chain(first).min();
            if t4 <= recovered.unwrap_or(u64::MAX) && t5 >= died {
                summary.in_flight += 1;
                summary.answered += u64::from(row.has(Point::GatewayDone));
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
