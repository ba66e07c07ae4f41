//! Effects of venue faults on the venue's own orders and on those of other venues.
//!
//! Start and end of a fault are from the plan; everything else follows from the gateways' stamps,
//! and nothing from the venue's own statements.
//!
//! ```text
//! its order        t4 ───────────────── t5      at the venue: t4 < until, t5 > from
//! fault                 from ──── until         stuck: took longer than any order before
//! another's order     t1 ─ t4 ······ t5 ─ t8    affected: in the engine during the fault
//! ```

use super::figures::{Distribution, MeasureSeries, rt_venue, to_ns};
use crate::merge::{MergedRun, OrderRow};
use crate::record::RunRecord;
use protocol::labels::GatewayCounter;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime, Plan, Role};
use serde::{Deserialize, Serialize};

/// A venue fault and its effects on orders at this and at other venues. Times are nanoseconds since
/// the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VenueIncident {
    /// Index of the venue.
    pub venue: u16,
    /// Kind of fault.
    pub fault: FaultKind,
    /// Start of the fault.
    pub from_ns: u64,
    /// End of the fault; null if it lasted.
    pub until_ns: Option<u64>,
    /// Number of orders that were at the venue during the fault and returned.
    pub orders: u64,
    /// Longest time of an order at the venue before; the longest delay of the schedule if there was
    /// none.
    pub usual_ns: u64,
    /// Number of orders at the venue during the fault that took longer than that.
    pub stuck: u64,
    /// Longest time of a stuck order at the venue; null if there was none.
    pub longest_ns: Option<u64>,
    /// Time from the end of the fault until the last stuck order was closed; null if it never
    /// ended, 0 if none was open.
    pub recover_ns: Option<u64>,
    /// Number of orders that the venue refused or that found its session down, in the whole run.
    pub refused: u64,
    /// Number of invalid messages from the venue, in the whole run.
    pub errors: u64,
    /// Number of orders that the venue's gateway closed without an answer, in the whole run.
    pub closed: u64,
    /// rt_venue of the orders at venues without a fault that had returned before.
    pub others_before: Distribution,
    /// rt_venue of the orders at venues without a fault that were in the engine during the fault.
    pub others_during: Distribution,
}

/// A venue fault with its time in ticks.
struct VenueFaultWindow {
    venue: u16,
    fault: FaultKind,
    from: u64,
    until: u64,
}

/// Totals of one venue fault.
#[derive(Default)]
struct VenueFaultTotals {
    usual: Option<u64>,
    orders: u64,
    stuck: u64,
    longest: Option<u64>,
    last_stuck: u64,
    before: MeasureSeries,
    during: MeasureSeries,
}

/// Returns the time in which an order was at its venue, from its gateway's stamps.
fn at_venue(row: &OrderRow) -> (u64, u64) {
    let [_, _, _, t4, t5, ..] = row.stamps();
    (t4, t5)
}

/// Summarizes every venue fault of a run, in the order of the plan. Linear in orders and faults.
pub(super) fn summarize(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<VenueIncident> {
    let (plan, trading) = (&record.plan, record.plan.trading());
    let start = record.clock.start_ticks;
    // With the calibration before the run, which the gateways used.
    let ticks = |ns: u64| start.saturating_add((ns as f64 / plan.ns_per_tick) as u64);
    let window = |fault: &Fault| match (fault.target, fault.when) {
        (FaultTarget::Venue(venue), FaultTime::At { ns }) => Some(VenueFaultWindow {
            venue,
            fault: fault.kind,
            from: ticks(ns),
            until: fault.lasts_ns.map_or(u64::MAX, |lasts| ticks(ns.saturating_add(lasts))),
        }),
        _ => None,
    };
    let windows: Vec<VenueFaultWindow> = plan.faults.iter().filter_map(window).collect();
    if windows.is_empty() {
        return Vec::new();
    }
    let venue_of = |row: &OrderRow| row.pushed().map(|(gateway, _)| gateway as u16);
    let mut all: Vec<VenueFaultTotals> = windows.iter().map(|_| VenueFaultTotals::default()).collect();
    for (_, row) in merged.measured() {
        let (venue, (t4, t5)) = (venue_of(row), at_venue(row));
        for (window, gathered) in windows.iter().zip(&mut all) {
            if venue == Some(window.venue) && t5 < window.from {
                gathered.usual = gathered.usual.max(Some(t5.saturating_sub(t4)));
            }
        }
    }
    let longest_delay = (trading.max_delay_ns as f64 / ns_per_tick) as u64;
    for (_, row) in merged.measured() {
        let (venue, (t4, t5)) = (venue_of(row), at_venue(row));
        let is_other = venue.is_some_and(|venue| windows.iter().all(|window| window.venue != venue));
        for (window, gathered) in windows.iter().zip(&mut all) {
            if is_other {
                let is_touched = (row.began() < window.until && t4 >= window.from)
                    || (t5 < window.until && row.ended() >= window.from);
                if row.ended() < window.from {
                    gathered.before.record(rt_venue(row), ns_per_tick);
                } else if is_touched {
                    gathered.during.record(rt_venue(row), ns_per_tick);
                }
            } else if venue == Some(window.venue) && t4 < window.until && t5 >= window.from {
                gathered.orders += 1;
                let there = t5.saturating_sub(t4);
                gathered.longest = gathered.longest.max(Some(there));
                if there > gathered.usual.unwrap_or(longest_delay) {
                    gathered.stuck += 1;
                    gathered.last_stuck = gathered.last_stuck.max(t5);
                }
            }
        }
    }
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    let incident = |(window, gathered): (&VenueFaultWindow, &VenueFaultTotals)| VenueIncident {
        venue: window.venue,
        fault: window.fault,
        from_ns: ns(window.from.saturating_sub(start)),
        until_ns: (window.until < u64::MAX).then(|| ns(window.until.saturating_sub(start))),
        orders: gathered.orders,
        usual_ns: ns(gathered.usual.unwrap_or(longest_delay)),
        stuck: gathered.stuck,
        longest_ns: gathered.longest.map(ns),
        recover_ns: (window.until < u64::MAX).then(|| ns(gathered.last_stuck.saturating_sub(window.until))),
        refused: counted(plan, merged, window.venue, GatewayCounter::Refused),
        errors: counted(plan, merged, window.venue, GatewayCounter::VenueErrors),
        closed: counted(plan, merged, window.venue, GatewayCounter::Stuck),
        others_before: gathered.before.distribution(ns_per_tick),
        others_during: gathered.during.distribution(ns_per_tick),
    };
    windows.iter().zip(&all).map(incident).collect()
}

/// Returns a counter of a venue's gateway; 0 if it has no counters.
fn counted(plan: &Plan, merged: &MergedRun, venue: u16, counter: GatewayCounter) -> u64 {
    let role = Role::Gateway(venue);
    let thread = plan.thread_of(role).and_then(|thread| Some((thread, merged.threads.get(thread)?)));
    thread.map_or(0, |(thread, merged)| {
        merged.counters.agent_counters(&plan.threads[thread].roles, role).get(counter)
    })
}
