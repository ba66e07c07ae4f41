//! Looks at every order once after the join: is it whole, in time, and accounted for?

use super::join::{BY_GATEWAY, BY_ORCHESTRATOR, BY_STRATEGY, required};
use super::table::{Row, Table, bit};
use super::violation::{Kind, Violations, name_of};
use crate::record::{Outcome, RunRecord};
use serde::{Deserialize, Serialize};
use shm::plan::{Pacing, Role};
use shm::stamps::Point;
use shm::wire::OrderId;

/// Where every order went: sent = returned + rejected + lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Orders in the plan.
    pub scheduled: u64,
    /// Orders that a strategy stamped as sent (or that the engine received from a strategy that died).
    pub sent: u64,
    /// Orders whose report the venue made and the strategy got.
    pub returned: u64,
    /// Orders that the orchestrator refused and whose strategy got to know.
    pub rejected: u64,
    /// Orders sent that never came back.
    pub lost: u64,
    /// Orders with some point stamped more than once.
    pub duplicated: u64,
    /// Pushes that found a ring full, over all threads.
    pub full: u64,
}

/// The outermost stamps of a run, in ticks, and the time that orders were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first t1; `u64::MAX` if nothing was sent.
    pub first_sent: u64,
    /// The last t1.
    pub last_sent: u64,
    /// The first t8; `u64::MAX` if nothing came back.
    pub first_received: u64,
    /// The last t8.
    pub last_received: u64,
    /// The sum of all t8 − t1.
    pub open_ticks: u128,
}

/// What the checks need to know about the run.
pub(super) struct Context {
    /// Points that every returned order needs beyond [`required`].
    also: u64,
    /// Whether an order that never came back is a violation.
    lost_is_wrong: bool,
    /// Points that may be missing, because the threads that stamp them are in processes that died.
    engine_gone: u64,
    /// The same for each strategy.
    strategy_gone: Vec<bool>,
}

impl Context {
    /// What the record says about pacing, outcome and the dead.
    pub fn new(record: &RunRecord) -> Self {
        let plan = &record.plan;
        let mut gone: Vec<&str> = record
            .exits
            .iter()
            .filter(|exit| exit.how != "exit 0")
            .map(|exit| exit.process.as_str())
            .collect();
        if let Outcome::Failed { process, .. } = &record.outcome {
            gone.push(process);
        }
        let mut strategy_gone = vec![false; usize::from(plan.strategies)];
        let mut engine_gone = 0;
        let dead = plan.processes.iter().filter(|process| gone.contains(&process.name.as_str()));
        for role in dead
            .flat_map(|process| &process.threads)
            .filter_map(|thread| plan.threads.get(*thread as usize))
            .flat_map(|thread| &thread.roles)
        {
            match role {
                Role::Strategy(index) => {
                    if let Some(gone) = strategy_gone.get_mut(usize::from(*index)) {
                        *gone = true;
                    }
                }
                Role::Orchestrator => engine_gone |= BY_ORCHESTRATOR,
                Role::Gateway(_) => engine_gone |= BY_GATEWAY,
            }
        }
        Self {
            also: if plan.pacing == Pacing::Scheduled { bit(Point::Due) } else { 0 },
            lost_is_wrong: record.outcome == Outcome::Complete,
            engine_gone,
            strategy_gone,
        }
    }
}

/// Checks and counts every order of the table, and marks those that count in the figures.
pub(super) fn check(table: &mut Table, context: &Context, violations: &mut Violations) -> (Orders, Span) {
    let mut orders = Orders::default();
    let mut span = Span { first_sent: u64::MAX, first_received: u64::MAX, ..Span::default() };
    for lane in &mut table.lanes {
        let is_gone = context.strategy_gone.get(usize::from(lane.strategy)).copied().unwrap_or(false);
        let excused = context.engine_gone | if is_gone { BY_STRATEGY } else { 0 };
        let (strategy, epoch, next_sent) = (lane.strategy, lane.epoch, lane.next_sent);
        for (sequence, row) in lane.rows.iter_mut().enumerate() {
            let id = OrderId::new(strategy, epoch, sequence as u64);
            let mut broken = |kind, what: &dyn Fn() -> String| {
                violations.add(kind, || format!("{}: {}", name_of(id), what()));
            };
            orders.duplicated += u64::from(row.is_duplicated());
            if !row.has(Point::StrategySend) {
                let seen_by_engine = row.points() & !BY_STRATEGY != 0;
                match (seen_by_engine || row.has(Point::StrategyRecv), is_gone) {
                    (true, true) => {}
                    (true, false) => {
                        broken(Kind::NeverSent, &|| {
                            format!("{}, but its strategy never sent it", points_of(row.points()))
                        });
                        continue;
                    }
                    (false, _) => {
                        if (sequence as u64) < next_sent {
                            broken(Kind::Gap, &|| "never sent, though later ones were".into());
                        }
                        continue;
                    }
                }
            }
            orders.sent += 1;
            count(row, &mut orders, &mut span);
            let came_back = row.has(Point::StrategyRecv);
            if !came_back && context.lost_is_wrong {
                broken(Kind::Lost, &|| {
                    format!("sent and never returned; it has {}", points_of(row.points()))
                });
            }
            let rejected = row.has(Point::Rejected);
            if rejected && row.points() & (required(&Row::default()) & !required(row)) != 0 {
                broken(Kind::RejectedDispatched, &|| {
                    format!("rejected, yet it has {}", points_of(row.points()))
                });
            }
            let needed =
                if came_back { required(row) | context.also } else { required(row) & below_last(row) };
            let missing = needed & !row.points();
            if missing & !excused != 0 {
                broken(Kind::MissingPoint, &|| format!("has no {}", points_of(missing & !excused)));
            }
            match out_of_time(row) {
                Some((point, after)) => {
                    broken(Kind::TimeOrder, &|| format!("{} before {}", point.name(), after.name()));
                }
                None if came_back && !rejected && missing == 0 => row.set_measured(),
                None => {}
            }
        }
    }
    (orders, span)
}

/// Where the order went, and when.
#[inline]
fn count(row: &Row, orders: &mut Orders, span: &mut Span) {
    let sent = row.at(Point::StrategySend);
    if let Some(sent) = sent {
        span.first_sent = span.first_sent.min(sent);
        span.last_sent = span.last_sent.max(sent);
    }
    match row.at(Point::StrategyRecv) {
        None => orders.lost += 1,
        Some(received) => {
            if row.has(Point::Rejected) {
                orders.rejected += 1;
            } else {
                orders.returned += 1;
            }
            span.first_received = span.first_received.min(received);
            span.last_received = span.last_received.max(received);
            span.open_ticks += u128::from(received.saturating_sub(sent.unwrap_or(received)));
        }
    }
}

/// The stamps t1 to t8 below the last one that the order has: what a lost order must have passed.
const fn below_last(row: &Row) -> u64 {
    let stamps = row.points() & 0xFF;
    if stamps == 0 { 0 } else { (1 << (63 - stamps.leading_zeros())) - 1 }
}

/// The first stamp that lies before one that it must not lie before.
#[inline]
fn out_of_time(row: &Row) -> Option<(Point, Point)> {
    let mut last: Option<(Point, u64)> = None;
    for point in &Point::ALL[..8] {
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
    before(Point::StrategySend, Point::Due)
        .or_else(|| before(Point::Release, Point::GatewayRecv))
        .or_else(|| before(Point::GatewayDone, Point::Release))
}

/// Points by name: `t1 t2 rejected`.
fn points_of(points: u64) -> String {
    let names = Point::ALL.iter().filter(|point| points & bit(**point) != 0).map(|point| point.name());
    names.collect::<Vec<_>>().join(" ")
}
