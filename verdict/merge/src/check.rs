//! Checks that the stages of each joined order are complete, its stamps in order and its reports
//! consistent.
//!
//! The required stamps depend on the order's incarnation:
//!
//! | its incarnation | allowed losses | cancelled, orphaned | otherwise |
//! |---|---|---|---|
//! | survived the run | none | none | every check |
//! | died in an incident | the last order, if the engine never received it | any | every check |
//! | has an untrusted log | counted | counted | no check |
//!
//! t1 is stamped in shared memory before the push, so no death explains an order that the engine
//! received and no strategy sent. In a run that failed or was interrupted, orders may be lost, and
//! stamps of processes that died outside of incidents may be missing.

use super::context::CheckContext;
use super::orders::{OrderCounts, OrderEnd, OrderLosses, StampSpan};
use super::row::{OrderRow, STRATEGY_POINTS, bit};
use super::table::{OrderTable, Partition};
use super::violation::{Findings, ViolationKind, order_name};
use protocol::flow::{PATH, points_mask};
use protocol::reject::Reject;
use protocol::stamps::Point;
use protocol::wire::OrderId;

/// The points of the whole path, t1 to t8.
const FULL_PATH: u64 = points_mask(&PATH);

// Their bits are the lowest, in path order.
const _: () = assert!(FULL_PATH == (1 << PATH.len()) - 1);

/// The points of an order whose report the engine has processed.
const UP_TO_ENGINE: u64 = points_mask(PATH.split_at(PATH.len() - 2).0) | bit(Point::Release);

pub(super) struct CheckTotals {
    pub orders: OrderCounts,
    pub span: StampSpan,
    /// Outcomes of dead strategies' orders, for each incident of the record.
    pub losses: Vec<OrderLosses>,
    pub lost_of_survivors: u64,
}

/// Checks and counts every order of the merged run, and marks those that count in the figures.
pub(super) fn check(table: &mut OrderTable, context: &CheckContext, findings: &mut Findings) -> CheckTotals {
    let mut counted = CheckTotals {
        orders: OrderCounts::default(),
        span: StampSpan::empty(),
        losses: vec![OrderLosses::default(); context.record.incidents.len()],
        lost_of_survivors: 0,
    };
    for partition in &mut table.partitions {
        let lost_before = counted.orders.lost;
        let incident = context.deaths.incident(partition.strategy, partition.epoch);
        let mut losses = OrderLosses::default();
        if partition.is_untrusted {
            count_untrusted(partition, context, incident.is_some(), &mut counted.orders, &mut losses);
        } else {
            check_partition(partition, context, incident.is_some(), &mut counted, &mut losses, findings);
            if incident.is_none() {
                counted.lost_of_survivors += counted.orders.lost - lost_before;
            }
        }
        if let Some(entry) = incident.and_then(|incident| counted.losses.get_mut(incident)) {
            *entry = losses;
        }
    }
    counted
}

/// Counts orders of a strategy with an untrusted log by the engine's stamps. Reports returned to a
/// strategy that survived count as received: otherwise the run would not have ended.
fn count_untrusted(
    partition: &Partition,
    context: &CheckContext,
    is_dead: bool,
    orders: &mut OrderCounts,
    losses: &mut OrderLosses,
) {
    for (sequence, row) in
        (0..).zip(&partition.rows[..]).filter(|(_, row)| row.points() & !STRATEGY_POINTS != 0)
    {
        let outcome_points = context.outcome_points(partition.id(sequence), row);
        let was_given = outcome_points & bit(Point::OrchReturn) != 0;
        let taken = if was_given && !is_dead { bit(Point::StrategyRecv) } else { 0 };
        let end = match OrderEnd::from_points(outcome_points | taken, true) {
            OrderEnd::Returned | OrderEnd::Rejected if !was_given => OrderEnd::Orphaned,
            end => end,
        };
        orders.count(end);
        losses.count(end);
    }
}

fn check_partition(
    partition: &mut Partition,
    context: &CheckContext,
    is_dead: bool,
    counted: &mut CheckTotals,
    losses: &mut OrderLosses,
    findings: &mut Findings,
) {
    let (strategy, epoch, next_sent) = (partition.strategy, partition.epoch, partition.submit.sent);
    let is_strategy_missing = context.strategy_missing.get(strategy.as_usize()).copied().unwrap_or(false);
    // An incarnation that died in an incident has logged all that it did.
    let is_gone = is_strategy_missing && !is_dead;
    let exempt_points = context.engine_missing | if is_gone { STRATEGY_POINTS } else { 0 };
    for (sequence, row) in (0..).zip(&mut partition.rows) {
        let id = OrderId::new(strategy.0, epoch, sequence);
        // The sole source of a violation: the strategy, if its stamps are needed to show it.
        let by_strategy = |points: u64| (points & STRATEGY_POINTS != 0).then_some(strategy);
        let mut broken = |sole_source, kind, description: &dyn Fn() -> String| {
            findings.add(sole_source, kind, || format!("{}: {}", order_name(id), description()));
        };
        counted.orders.duplicated += u64::from(row.is_duplicated());
        if !row.has(Point::StrategySend) {
            let seen_by_engine = row.points() & !STRATEGY_POINTS != 0;
            match (seen_by_engine || row.has(Point::StrategyRecv), is_gone) {
                (true, true) => {}
                (true, false) => {
                    broken(Some(strategy), ViolationKind::NeverSent, &|| {
                        format!("{}, but its strategy never sent it", point_names(row.points()))
                    });
                    continue;
                }
                (false, _) => {
                    if sequence < next_sent {
                        broken(Some(strategy), ViolationKind::Gap, &|| {
                            "never sent, though later ones were".into()
                        });
                    }
                    continue;
                }
            }
        }
        let is_unknown = row.reason() == Some(Reject::VenueUnknown.code());
        let outcome_points = context.outcome_points(id, row);
        let end = OrderEnd::from_points(outcome_points, is_dead);
        counted.orders.count(end);
        counted.span.include(row);
        losses.count(end);
        if end == OrderEnd::Lost && context.is_complete {
            // Either the engine never received it, or its strategy has no t8 of a returned report.
            let rests_on_own_log = row.points() & !STRATEGY_POINTS == 0 || row.has(Point::OrchReturn);
            let sole_source = rests_on_own_log.then_some(strategy);
            // The order that it was pushing when it died.
            let is_unfinished = sequence + 1 == next_sent && row.points() & !STRATEGY_POINTS == 0;
            let description = match is_dead {
                true => "lost, and not in the last push of an incarnation that died",
                false => "sent and never returned",
            };
            if !(is_dead && is_unfinished) {
                broken(sole_source, ViolationKind::Lost, &|| {
                    format!("{description}; it has {}", point_names(row.points()))
                });
            }
        }
        let is_retired = row.has(Point::Cancelled) || row.reason() == Some(Reject::Gone as u8);
        // An order with several reports is canceled by its last one.
        let was_given = !row.has_more() && (row.has(Point::OrchReturn) || row.has(Point::StrategyRecv));
        let is_killed = || {
            let instrument = partition.instruments.get(sequence as usize).copied().unwrap_or(0);
            let done = context.chains.last_pushed(id, row);
            row.has(Point::Cancelled)
                && context.switches.has_cancelled(id, row, done, instrument, context.record.plan.trading())
        };
        if is_retired && context.deaths.is_complete && (!is_dead || was_given) && !is_killed() {
            let sole_source = by_strategy(if row.has(Point::OrchReturn) { 0 } else { row.points() });
            let description =
                if is_dead { "a report was given to its strategy" } else { "its strategy lived" };
            broken(sole_source, ViolationKind::NotDead, &|| {
                format!(
                    "ended as an order of the dead, yet {description}; it has {}",
                    point_names(row.points())
                )
            });
        }
        // An order that a kill switch or a death recalls from its gateway's queue was dispatched
        // and reaches no gateway.
        let recalled = if is_recalled(row, context) { bit(Point::OrchDispatch) } else { 0 };
        let forbidden = UP_TO_ENGINE & !required_points(row) & !recalled | bit(Point::Cancelled);
        if is_unknown {
            if let Some(description) = unknown_fault(row, end, context) {
                broken(None, ViolationKind::RejectedDispatched, &|| {
                    let points = point_names(row.points());
                    format!("closed as {}, {description}; it has {points}", Reject::VenueUnknown.name())
                });
            }
        } else if row.has(Point::Rejected) && row.points() & forbidden != 0 {
            broken(None, ViolationKind::RejectedDispatched, &|| {
                format!("rejected, yet it has {}", point_names(row.points()))
            });
        }
        let needed = if is_unknown { 0 } else { needed_points(row, end, context) };
        let missing = needed & !row.points();
        if missing & !exempt_points != 0 {
            // A t8 without a t7 is a report that the engine never returned.
            let is_given = row.has(Point::OrchReturn) || !row.has(Point::StrategyRecv);
            let sole_source = if is_given { by_strategy(missing & !exempt_points) } else { Some(strategy) };
            broken(sole_source, ViolationKind::MissingPoint, &|| {
                format!("has no {}", point_names(missing & !exempt_points))
            });
        }
        match time_order_fault(row) {
            Some((point, after)) => {
                broken(by_strategy(bit(point) | bit(after)), ViolationKind::TimeOrder, &|| {
                    format!("{} before {}", point.name(), after.name())
                });
            }
            None if end == OrderEnd::Returned && missing == 0 && !is_unknown => row.set_measured(),
            None => {}
        }
    }
}

#[inline]
fn needed_points(row: &OrderRow, end: OrderEnd, context: &CheckContext) -> u64 {
    let points = match end {
        OrderEnd::Returned | OrderEnd::Rejected => required_points(row) | context.pacing_points,
        OrderEnd::Orphaned => required_points(row) & UP_TO_ENGINE | context.pacing_points,
        OrderEnd::Cancelled if context.is_complete => UP_TO_ENGINE | context.pacing_points,
        OrderEnd::Cancelled | OrderEnd::Lost => required_points(row) & below_last(row),
    };
    points & context.stamped_points
}

/// Returns `true` if an order was rejected for a reason that allows recalling it from its gateway's
/// queue.
fn is_recalled(row: &OrderRow, context: &CheckContext) -> bool {
    match row.reason().and_then(Reject::from_code) {
        Some(Reject::Killed | Reject::Gone) => true,
        Some(Reject::VenueDown) => !context.record.outages.is_empty(),
        _ => false,
    }
}

/// Returns the fault of an order that the engine closed because its gateway died. The gateway may
/// have answered it, but the engine must not have processed its last report, and no successor may
/// have resumed the gateway's session.
fn unknown_fault(row: &OrderRow, end: OrderEnd, context: &CheckContext) -> Option<&'static str> {
    let lost_gateways = &context.deaths.lost_gateways;
    let is_of_dead = match row.pushed() {
        Some((gateway, _)) => lost_gateways.get(gateway) == Some(&true),
        None => lost_gateways.contains(&true),
    };
    let owed = bit(Point::StrategySend)
        | bit(Point::OrchRecvSubmit)
        | bit(Point::OrchDispatch)
        | context.pacing_points;
    let is_answered = row.has(Point::OrchRecvCompletion);
    if !is_of_dead {
        Some("yet by the record its gateway lived, or its session was resumed")
    } else if owed & context.stamped_points & !row.points() != 0 {
        Some("yet it was not dispatched")
    } else if is_answered && !row.has_more() {
        Some("yet the engine had its last report")
    } else if !is_answered
        && row.has(Point::OrchReturn)
        && context.stamped_points & bit(Point::OrchRecvCompletion) != 0
    {
        Some("yet a report of it was returned that never came")
    } else if end == OrderEnd::Returned {
        Some("yet it was returned")
    } else {
        None
    }
}

/// Returns the points that a returned order must have, in addition to those of the pacing.
const fn required_points(row: &OrderRow) -> u64 {
    if row.has(Point::Rejected) {
        bit(Point::StrategySend)
            | bit(Point::OrchRecvSubmit)
            | bit(Point::OrchReturn)
            | bit(Point::StrategyRecv)
    } else {
        FULL_PATH | bit(Point::Release)
    }
}

/// Returns the points t1 to t8 before the last one of the order: a lost order must have them.
const fn below_last(row: &OrderRow) -> u64 {
    let stamps = row.points() & FULL_PATH;
    if stamps == 0 { 0 } else { (1 << (63 - stamps.leading_zeros())) - 1 }
}

/// Returns the first stamp that precedes one that it must not precede.
#[inline]
fn time_order_fault(row: &OrderRow) -> Option<(Point, Point)> {
    let mut last: Option<(Point, u64)> = None;
    for point in &PATH {
        let Some(ticks) = row.at(*point) else { continue };
        if let Some((before, earlier)) = last
            && ticks < earlier
        {
            return Some((*point, before));
        }
        last = Some((*point, ticks));
    }
    let before = |point, after| {
        let (ticks, earlier) = (row.at(point)?, row.at(after)?);
        (ticks < earlier).then_some((point, after))
    };
    // A cancel does not wait for the venue's delay.
    let is_early =
        || if row.has(Point::Cancelled) { None } else { before(Point::GatewayDone, Point::Release) };
    before(Point::StrategySend, Point::Due)
        .or_else(|| before(Point::Release, Point::GatewayRecv))
        .or_else(is_early)
}

/// Formats points by name: `t1 t2 rejected`.
fn point_names(points: u64) -> String {
    let names = Point::ALL.iter().filter(|point| points & bit(**point) != 0).map(|point| point.name());
    names.collect::<Vec<_>>().join(" ")
}
