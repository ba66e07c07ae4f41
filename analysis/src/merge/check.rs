//! Looks at every order once after the join: is it whole, in time, and accounted for?
//!
//! What an order owes depends on whose it is:
//!
//! | its incarnation | lost | cancelled, orphaned | otherwise |
//! |---|---|---|---|
//! | lived to the end | none | none | every check |
//! | died (it is in the record's incidents) | the last one, if the engine never saw it | as many as there are | every check |
//! | is of a strategy whose log proves nothing | counted | counted | no check |
//!
//! t1 is stamped in shared memory before the push, so no death excuses an order that the engine saw
//! and nobody sent. In a run that failed or was interrupted orders may be lost, and the stamps of
//! processes that died otherwise than in an incident may be missing.

use super::chain::Chains;
use super::deaths::Deaths;
use super::join::BY_STRATEGY;
use super::orders::{Losses, OrderEnd, Orders, Span};
use super::row::{OrderRow, bit};
use super::switches::Switches;
use super::table::{BLOCK, Lane, Table};
use super::violation::{Findings, ViolationKind, name_of};
use crate::record::{RunOutcome, RunRecord};
use protocol::flow::{PATH, points_mask};
use protocol::plan::{Pacing, Role, Trading};
use protocol::reject::Reject;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use system::scratch::ColumnStore;

/// The points of the whole way.
const WAY: u64 = points_mask(&PATH);

// Their bits are the lowest, in their order.
const _: () = assert!(WAY == (1 << PATH.len()) - 1);

/// What an order has that its venue has done with, and the engine has seen it.
const UP_TO_ENGINE: u64 = points_mask(PATH.split_at(PATH.len() - 2).0) | bit(Point::Release);

/// What the checks need to know about the run.
pub(super) struct Context<'a> {
    deaths: &'a Deaths,
    switches: &'a Switches,
    chains: &'a Chains,
    trading: &'a Trading,
    /// Points that every order needs which has gone its way.
    also: u64,
    /// Points that the run stamps at all.
    taken: u64,
    /// Whether every order must have gone its way: the run ended in order.
    is_complete: bool,
    /// Points that may be missing, because the threads that stamp them are in processes that died.
    engine_gone: u64,
    /// The same for each strategy that died outside of any incident.
    strategy_gone: Vec<bool>,
}

impl<'a> Context<'a> {
    /// What the record says about pacing, outcome and the dead.
    pub fn new(
        record: &'a RunRecord,
        deaths: &'a Deaths,
        switches: &'a Switches,
        chains: &'a Chains,
    ) -> Self {
        let plan = &record.plan;
        let mut gone: Vec<&str> = record
            .exits
            .iter()
            .filter(|exit| exit.how != "exit 0" && !is_outage(record, &exit.process))
            .map(|exit| exit.process.as_str())
            .collect();
        if let RunOutcome::Failed { process, .. } = &record.outcome {
            gone.push(process);
        }
        let mut strategy_gone = vec![false; usize::from(plan.trading().strategies)];
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
                role => engine_gone |= role.info().points_mask(),
            }
        }
        Self {
            deaths,
            switches,
            chains,
            trading: plan.trading(),
            also: if plan.trading().overall_pacing() == Pacing::Scheduled { bit(Point::Due) } else { 0 },
            taken: Point::ALL
                .iter()
                .filter(|point| point.is_stamped_with(plan.stamps))
                .filter(|point| plan.trading().tells_release || **point != Point::Release)
                .fold(0, |points, point| points | bit(*point)),
            is_complete: record.outcome == RunOutcome::Complete,
            engine_gone,
            strategy_gone,
        }
    }
}

/// Returns `true` if a process's death is an outage of the record: what may be missing of its
/// orders is told by each of them.
fn is_outage(record: &RunRecord, process: &str) -> bool {
    let last = record.outages.iter().rfind(|outage| outage.process == process);
    last.is_some_and(|outage| outage.restarted_ns.is_none())
}

impl Context<'_> {
    /// Points that may be missing, because the threads that stamp them are in processes that died.
    pub const fn engine_gone(&self) -> u64 {
        self.engine_gone
    }

    /// The points of an order as they show how it ended. Where the orchestrator stamps no report,
    /// one that was made or refused is taken for one that it had and gave back.
    #[inline]
    fn shown(&self, id: OrderId, row: &OrderRow) -> u64 {
        if row.reason() == Some(Reject::VenueUnknown.code()) {
            return self.shown_unknown(id, row);
        }
        let by_report = bit(Point::OrchRecvCompletion) | bit(Point::OrchReturn);
        let is_made = row.has(Point::GatewayDone) || row.has(Point::Rejected);
        row.points() | if is_made { by_report & !self.taken } else { 0 }
    }

    /// The same of an order that the engine closed because its gateway died: it ends with the
    /// engine's report, not with its first one.
    fn shown_unknown(&self, id: OrderId, row: &OrderRow) -> u64 {
        let of_report = bit(Point::OrchReturn) | bit(Point::StrategyRecv);
        let report = self.chains.engine_report(id);
        let has = |point| report.is_some_and(|report| report.at(point).is_some());
        let received = if has(Point::StrategyRecv) { bit(Point::StrategyRecv) } else { 0 };
        let returned = if has(Point::OrchReturn) { bit(Point::OrchReturn) } else { 0 };
        row.points() & !of_report | received | returned
    }
}

/// What the checks have counted.
pub(super) struct Counted {
    pub orders: Orders,
    pub span: Span,
    /// For each incident of the record.
    pub losses: Vec<Losses>,
    /// Orders lost by incarnations that lived.
    pub lost_of_survivors: u64,
}

/// Checks and counts every order of the table, and marks those that count in the figures.
pub(super) fn check(
    table: &mut Table,
    context: &Context,
    incidents: usize,
    findings: &mut Findings,
) -> Counted {
    let mut counted = Counted {
        orders: Orders::default(),
        span: Span::empty(),
        losses: vec![Losses::default(); incidents],
        lost_of_survivors: 0,
    };
    let room = table.room.clone();
    for lane in &mut table.lanes {
        let lost_before = counted.orders.lost;
        let incident = context.deaths.incident(lane.strategy, lane.epoch);
        let mut losses = Losses::default();
        if lane.is_excused {
            let is_dead = incident.is_some();
            room.release_resident();
            count_excused(lane, context, is_dead, &mut counted.orders, &mut losses);
        } else {
            check_lane(lane, context, &room, incident.is_some(), &mut counted, &mut losses, findings);
            if incident.is_none() {
                counted.lost_of_survivors += counted.orders.lost - lost_before;
            }
        }
        if let Some(place) = incident.and_then(|incident| counted.losses.get_mut(incident)) {
            *place = losses;
        }
    }
    counted
}

/// Orders of a strategy whose log proves nothing: those that the engine took, by what it stamped.
/// What it gave to a strategy that lived to the end was taken, or the run would not have ended.
fn count_excused(lane: &Lane, context: &Context, is_dead: bool, orders: &mut Orders, losses: &mut Losses) {
    for (sequence, row) in (0..).zip(&lane.rows[..]).filter(|(_, row)| row.points() & !BY_STRATEGY != 0) {
        let shown = context.shown(OrderId::new(lane.strategy, lane.epoch, sequence), row);
        let was_given = shown & bit(Point::OrchReturn) != 0;
        let taken = if was_given && !is_dead { bit(Point::StrategyRecv) } else { 0 };
        let end = match OrderEnd::from_points(shown | taken, true) {
            OrderEnd::Returned | OrderEnd::Rejected if !was_given => OrderEnd::Orphaned,
            end => end,
        };
        orders.count(end);
        losses.count(end);
    }
}

fn check_lane(
    lane: &mut Lane,
    context: &Context,
    room: &ColumnStore,
    is_dead: bool,
    counted: &mut Counted,
    losses: &mut Losses,
    findings: &mut Findings,
) {
    let (strategy, epoch, next_sent) = (lane.strategy, lane.epoch, lane.submit.next_sent());
    let gone = context.strategy_gone.get(usize::from(strategy)).copied().unwrap_or(false);
    // An incarnation that died in an incident has written down all that it did.
    let is_gone = gone && !is_dead;
    let excused = context.engine_gone | if is_gone { BY_STRATEGY } else { 0 };
    for (sequence, row) in lane.rows.iter_mut().enumerate() {
        if sequence.is_multiple_of(BLOCK) {
            room.release_resident();
        }
        let (id, sequence) = (OrderId::new(strategy, epoch, sequence as u64), sequence as u64);
        // By whose word something is broken: the strategy's, where its stamps are needed to show
        // it.
        let by_strategy = |points: u64| (points & BY_STRATEGY != 0).then_some(strategy);
        let mut broken = |witness, kind, what: &dyn Fn() -> String| {
            findings.add(witness, kind, || format!("{}: {}", name_of(id), what()));
        };
        counted.orders.duplicated += u64::from(row.is_duplicated());
        if !row.has(Point::StrategySend) {
            let seen_by_engine = row.points() & !BY_STRATEGY != 0;
            match (seen_by_engine || row.has(Point::StrategyRecv), is_gone) {
                (true, true) => {}
                (true, false) => {
                    broken(Some(strategy), ViolationKind::NeverSent, &|| {
                        format!("{}, but its strategy never sent it", points_of(row.points()))
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
        let shown = context.shown(id, row);
        let end = OrderEnd::from_points(shown, is_dead);
        counted.orders.count(end);
        counted.span.take(row);
        losses.count(end);
        if end == OrderEnd::Lost && context.is_complete {
            // Either the engine never saw it, or its strategy has no t8 of what it was given.
            let is_its_word = row.points() & !BY_STRATEGY == 0 || row.has(Point::OrchReturn);
            let witness = is_its_word.then_some(strategy);
            // What it was about to push when it died.
            let is_unfinished = sequence + 1 == next_sent && row.points() & !BY_STRATEGY == 0;
            match is_dead {
                true if is_unfinished => {}
                true => broken(witness, ViolationKind::Lost, &|| {
                    let points = points_of(row.points());
                    format!("lost, and not in the last push of an incarnation that died; it has {points}")
                }),
                false => broken(witness, ViolationKind::Lost, &|| {
                    format!("sent and never returned; it has {}", points_of(row.points()))
                }),
            }
        }
        let is_retired = row.has(Point::Cancelled) || row.reason() == Some(Reject::Gone as u8);
        // Of an order with several reports the last one cancels it.
        let was_given = !row.has_more() && (row.has(Point::OrchReturn) || row.has(Point::StrategyRecv));
        let is_killed = || {
            let instrument = lane.instruments.get(sequence as usize).copied().unwrap_or(0);
            let done = context.chains.last_pushed(id, row);
            row.has(Point::Cancelled)
                && context.switches.has_cancelled(id, row, done, instrument, context.trading)
        };
        if is_retired && context.deaths.are_known() && (!is_dead || was_given) && !is_killed() {
            broken(
                by_strategy(if row.has(Point::OrchReturn) { 0 } else { row.points() }),
                ViolationKind::NotDead,
                &|| {
                    let whose = if is_dead {
                        "yet a report was given to its strategy"
                    } else {
                        "yet its strategy lived"
                    };
                    format!("ended as an order of the dead, {whose}; it has {}", points_of(row.points()))
                },
            );
        }
        if is_unknown {
            if let Some(what) = unknown_fault(row, end, context) {
                broken(None, ViolationKind::RejectedDispatched, &|| {
                    let points = points_of(row.points());
                    format!("closed as {}, {what}; it has {points}", Reject::VenueUnknown.name())
                });
            }
            if let Some((point, after)) = out_of_time(row) {
                broken(by_strategy(bit(point) | bit(after)), ViolationKind::TimeOrder, &|| {
                    format!("{} before {}", point.name(), after.name())
                });
            }
            continue;
        }
        // An order that a kill switch or a death takes back from its gateway's queue was
        // dispatched, and reaches no gateway.
        let recalled = if is_recalled(row, context.deaths) { bit(Point::OrchDispatch) } else { 0 };
        let never = UP_TO_ENGINE & !required(row) & !recalled | bit(Point::Cancelled);
        if row.has(Point::Rejected) && row.points() & never != 0 {
            broken(None, ViolationKind::RejectedDispatched, &|| {
                format!("rejected, yet it has {}", points_of(row.points()))
            });
        }
        let missing = needed(row, end, context) & !row.points();
        if missing & !excused != 0 {
            // A t8 without a t7 is a report that nobody gave.
            let is_given = row.has(Point::OrchReturn) || !row.has(Point::StrategyRecv);
            let witness = if is_given { by_strategy(missing & !excused) } else { Some(strategy) };
            broken(witness, ViolationKind::MissingPoint, &|| {
                format!("has no {}", points_of(missing & !excused))
            });
        }
        match out_of_time(row) {
            Some((point, after)) => {
                broken(by_strategy(bit(point) | bit(after)), ViolationKind::TimeOrder, &|| {
                    format!("{} before {}", point.name(), after.name())
                });
            }
            None if end == OrderEnd::Returned && missing == 0 => row.set_measured(),
            None => {}
        }
    }
}

/// The points that an order must have which ended so.
#[inline]
fn needed(row: &OrderRow, end: OrderEnd, context: &Context) -> u64 {
    let points = match end {
        OrderEnd::Returned | OrderEnd::Rejected => required(row) | context.also,
        OrderEnd::Orphaned => required(row) & UP_TO_ENGINE | context.also,
        OrderEnd::Cancelled if context.is_complete => UP_TO_ENGINE | context.also,
        OrderEnd::Cancelled | OrderEnd::Lost => required(row) & below_last(row),
    };
    points & context.taken
}

/// Whether an order was rejected for a reason for which it may be taken back from its gateway's
/// queue.
fn is_recalled(row: &OrderRow, deaths: &Deaths) -> bool {
    row.reason().is_some_and(|reason| {
        reason == Reject::Killed.code()
            || reason == Reject::Gone.code()
            || (reason == Reject::VenueDown.code() && deaths.has_outage())
    })
}

/// What is wrong with an order that the engine closed because its gateway died. The gateway may
/// have had it and answered it, but the engine has taken no last report of it, and the gateway died
/// by the record with nobody to resume its session.
fn unknown_fault(row: &OrderRow, end: OrderEnd, context: &Context) -> Option<&'static str> {
    let is_of_dead = match row.pushed() {
        Some((gateway, _)) => context.deaths.is_lost_gateway(gateway),
        None => context.deaths.has_lost_gateway(),
    };
    let owed =
        bit(Point::StrategySend) | bit(Point::OrchRecvSubmit) | bit(Point::OrchDispatch) | context.also;
    let is_answered = row.has(Point::OrchRecvCompletion);
    if !is_of_dead {
        Some("yet by the record its gateway lived, or its session was resumed")
    } else if owed & context.taken & !row.points() != 0 {
        Some("yet it was not dispatched")
    } else if is_answered && !row.has_more() {
        Some("yet the engine had its last report")
    } else if !is_answered
        && row.has(Point::OrchReturn)
        && context.taken & bit(Point::OrchRecvCompletion) != 0
    {
        Some("yet a report of it was returned that never came")
    } else if end == OrderEnd::Returned {
        Some("yet it was returned")
    } else {
        None
    }
}

/// The points that an order that came back must have, beside what the pacing adds.
const fn required(row: &OrderRow) -> u64 {
    if row.has(Point::Rejected) {
        bit(Point::StrategySend)
            | bit(Point::OrchRecvSubmit)
            | bit(Point::OrchReturn)
            | bit(Point::StrategyRecv)
    } else {
        WAY | bit(Point::Release)
    }
}

/// The stamps t1 to t8 below the last one that the order has: what a lost order must have passed.
const fn below_last(row: &OrderRow) -> u64 {
    let stamps = row.points() & WAY;
    if stamps == 0 { 0 } else { (1 << (63 - stamps.leading_zeros())) - 1 }
}

/// The first stamp that lies before one that it must not lie before.
#[inline]
fn out_of_time(row: &OrderRow) -> Option<(Point, Point)> {
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

/// Points by name: `t1 t2 rejected`.
fn points_of(points: u64) -> String {
    let names = Point::ALL.iter().filter(|point| points & bit(**point) != 0).map(|point| point.name());
    names.collect::<Vec<_>>().join(" ")
}
