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

use merge::MergedRun;
use merge::figures::{Distribution, MeasureSeries, engine_ticks, to_ns};
use protocol::index::{GatewayIndex, VenueIndex};
use protocol::labels::GatewayCounter;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime, Plan, Role};
use record::run::RunRecord;
use serde::{Deserialize, Serialize};

/// A fault of one venue, and its effects on orders to that venue and on orders to the venues
/// without a fault. Times are nanoseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VenueIncident {
    /// Index of the venue that had the fault.
    pub venue: VenueIndex,
    /// Kind of the venue fault.
    pub fault: FaultKind,
    /// Start of the fault, in nanoseconds.
    pub from_ns: u64,
    /// End of the fault, in nanoseconds; null if it lasted.
    pub until_ns: Option<u64>,
    /// Number of orders that were at the venue during the fault and returned.
    pub orders: u64,
    /// Longest time of an order at the venue before the fault, in nanoseconds; the longest delay of
    /// the schedule if there was none.
    pub usual_ns: u64,
    /// Number of orders at the venue during the fault that took longer than `usual_ns`.
    pub stuck: u64,
    /// Longest time of a stuck order at the venue, in nanoseconds; null if there was none.
    pub longest_ns: Option<u64>,
    /// Nanoseconds from the end of the fault until the last stuck order was closed; null if the
    /// fault never ended, 0 if none was open.
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

/// The time of a venue fault, in ticks.
struct VenueFaultWindow {
    venue: VenueIndex,
    fault: FaultKind,
    from: u64,
    until: u64,
}

/// Summarizes every venue fault of a run, in the order of the plan. Linear in orders and faults.
pub(super) fn summarize(record: &RunRecord, merged: &MergedRun, ns_per_tick: f64) -> Vec<VenueIncident> {
    // With the calibration before the run, which the gateways used.
    let ticks =
        |ns: u64| record.clock.start_ticks.saturating_add((ns as f64 / record.plan.ns_per_tick) as u64);
    let window = |fault: &Fault| match (fault.target, fault.when) {
        (FaultTarget::Venue(venue), FaultTime::At { ns }) => Some(VenueFaultWindow {
            venue,
            fault: fault.kind,
            from: ticks(ns),
            until: fault.lasts_ns.map_or(u64::MAX, |lasts| ticks(ns.saturating_add(lasts))),
        }),
        _ => None,
    };
    let windows: Vec<VenueFaultWindow> = record.plan.faults.iter().filter_map(window).collect();
    let faulty: Vec<VenueIndex> = windows.iter().map(|window| window.venue).collect();
    windows.iter().map(|window| incident(window, &faulty, record, merged, ns_per_tick)).collect()
}

fn incident(
    window: &VenueFaultWindow,
    faulty: &[VenueIndex],
    record: &RunRecord,
    merged: &MergedRun,
    ns_per_tick: f64,
) -> VenueIncident {
    let VenueFaultWindow { venue, fault, from, until } = *window;
    let venue_of = |gateway: usize| record.plan.trading().venue_of(GatewayIndex(gateway as u16));
    let rows =
        || merged.measured().filter_map(|(_, row)| Some((venue_of(row.pushed()?.0), row.stamps(), row)));
    let before = rows().filter(|(other, [.., t5, _, _, _], _)| *other == venue && *t5 < from);
    let longest_before = before.map(|(_, [_, _, _, t4, t5, ..], _)| t5.saturating_sub(t4)).max();
    let longest_delay = (record.plan.trading().max_delay_ns as f64 / ns_per_tick) as u64;
    let usual = longest_before.unwrap_or(longest_delay);
    let (mut orders, mut stuck, mut longest, mut last_stuck) = (0, 0, None, 0);
    let (mut others_before, mut others_during) = (MeasureSeries::default(), MeasureSeries::default());
    for (other, [t1, _, _, t4, t5, _, _, t8], row) in rows() {
        let is_faulty = faulty.contains(&other);
        if other == venue && t4 < until && t5 >= from {
            let time_at_venue = t5.saturating_sub(t4);
            orders += 1;
            longest = longest.max(Some(time_at_venue));
            if time_at_venue > usual {
                stuck += 1;
                last_stuck = t5.max(last_stuck);
            }
        } else if !is_faulty && t8 < from {
            others_before.record(engine_ticks(row), ns_per_tick);
        } else if !is_faulty && ((t1 < until && t4 >= from) || t5 < until) {
            others_during.record(engine_ticks(row), ns_per_tick);
        }
    }
    let ns = |ticks: u64| to_ns(ticks, ns_per_tick);
    let start = record.clock.start_ticks;
    let count = |counter| counted(&record.plan, merged, venue, counter);
    VenueIncident {
        venue,
        fault,
        from_ns: ns(from.saturating_sub(start)),
        until_ns: (until < u64::MAX).then(|| ns(until.saturating_sub(start))),
        orders,
        usual_ns: ns(usual),
        stuck,
        longest_ns: longest.map(ns),
        recover_ns: (until < u64::MAX).then(|| ns(last_stuck.saturating_sub(until))),
        refused: count(GatewayCounter::Refused),
        errors: count(GatewayCounter::VenueErrors),
        closed: count(GatewayCounter::Stuck),
        others_before: others_before.distribution(ns_per_tick),
        others_during: others_during.distribution(ns_per_tick),
    }
}

/// Returns the sum of a counter over the gateways of a venue; 0 if they have no counters.
fn counted(plan: &Plan, merged: &MergedRun, venue: VenueIndex, counter: GatewayCounter) -> u64 {
    let of_gateway = |gateway| {
        let role = Role::Gateway(gateway);
        let thread = plan.thread_of(role)?;
        let counters = &merged.threads.get(thread)?.counters;
        Some(counters.agent_counters(&plan.threads[thread].roles, role).get(counter))
    };
    plan.trading().gateways_of(venue).filter_map(of_gateway).sum()
}
