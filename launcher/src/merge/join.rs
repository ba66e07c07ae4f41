//! Takes the records of one log after the other into the table, and checks what only the order of the records
//! in their logs can tell: that every hand-off is first in, first out.
//!
//! Logs are taken strategies first, gateways next, the orchestrator last, so that each check finds what it
//! compares with. Where two of them share a thread, their records are in one log in the order of the events,
//! which serves as well.

use super::table::{NoRow, Row, Table, bit};
use super::violation::{Kind, Violations, name_of};
use super::{MergeError, file_name};
use shm::plan::{Plan, Role};
use shm::stamps::{Point, Record};

/// What the strategies stamp.
pub(super) const BY_STRATEGY: u64 = bit(Point::StrategySend) | bit(Point::StrategyRecv) | bit(Point::Due);
/// What the orchestrator stamps.
pub(super) const BY_ORCHESTRATOR: u64 = bit(Point::OrchRecvSubmit)
    | bit(Point::OrchDispatch)
    | bit(Point::OrchRecvCompletion)
    | bit(Point::OrchReturn)
    | bit(Point::Rejected);
/// What the gateways stamp.
pub(super) const BY_GATEWAY: u64 = bit(Point::GatewayRecv) | bit(Point::GatewayDone) | bit(Point::Release);

/// Whose log it is.
struct Source {
    thread: usize,
    file: String,
    /// The points that the thread's roles stamp.
    points: u64,
    /// The gateway that the thread runs, if it runs exactly one: a record does not name its venue, so with more
    /// of them on a thread nobody can tell whose order it is.
    gateway: Option<u16>,
    /// Reports pushed by that gateway so far.
    pushed: u64,
}

/// How far one gateway's hand-offs have come.
#[derive(Clone, Copy, Default)]
struct GatewayOrder {
    /// The latest t4 of the orders dispatched (or t3 of the orders received), whichever log is read second.
    last_dispatch: u64,
    /// The position that the next report to arrive must not be below.
    next_completion: u64,
}

/// The join of all logs.
pub(super) struct Join<'a> {
    plan: &'a Plan,
    /// The thread that runs each strategy.
    owners: Vec<Option<usize>>,
    pub table: Table,
    gateways: Vec<GatewayOrder>,
    pub violations: &'a mut Violations,
    source: Source,
}

impl<'a> Join<'a> {
    /// A join for lanes that may grow to `limits` rows.
    pub fn new(plan: &'a Plan, limits: &[u64], violations: &'a mut Violations) -> Self {
        let source = Source { thread: 0, file: String::new(), points: 0, gateway: None, pushed: 0 };
        Self {
            plan,
            owners: (0..plan.strategies).map(|index| plan.thread_of(Role::Strategy(index))).collect(),
            table: Table::new(limits),
            gateways: vec![GatewayOrder::default(); usize::from(plan.venues)],
            violations,
            source,
        }
    }

    /// The records that follow come from this thread's log.
    pub fn begin(&mut self, thread: usize) {
        let Some(plan) = self.plan.threads.get(thread) else { return };
        let points = plan.roles.iter().fold(0, |points, role| {
            points
                | match role {
                    Role::Strategy(_) => BY_STRATEGY,
                    Role::Orchestrator => BY_ORCHESTRATOR,
                    Role::Gateway(_) => BY_GATEWAY,
                }
        });
        self.source =
            Source { thread, file: file_name(&plan.name), points, gateway: sole_gateway(plan), pushed: 0 };
    }

    /// Takes one record.
    ///
    /// # Errors
    /// Only [`MergeError::Memory`]; whatever is wrong with the record is a violation.
    #[inline]
    pub fn take(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, value } = record;
        let of_strategy = BY_STRATEGY & bit(point) != 0;
        if self.source.points & bit(point) == 0 || (of_strategy && !self.is_owner(id.strategy())) {
            self.misplaced(record);
            return Ok(());
        }
        let Self { source, violations, .. } = self;
        let Some(lane) = self.table.lane(id) else {
            violations.add(Kind::NotInPlan, || format!("{}: the plan has no such strategy", name_of(id)));
            return Ok(());
        };
        match lane.reach(id.sequence()) {
            Ok(()) => {}
            Err(NoRow::Memory(bytes)) => return Err(MergeError::Memory { bytes }),
            Err(NoRow::Limit) => {
                self.beyond(record);
                return Ok(());
            }
        }
        let row = &mut lane.rows[id.sequence() as usize];
        if !row.stamp(point, value) {
            violations.add(Kind::Duplicate, || format!("{}: {} twice", name_of(id), point.name()));
            return Ok(());
        }
        let mut broken = |kind, what: &str| violations.add(kind, || format!("{}: {what}", name_of(id)));
        match point {
            Point::StrategySend => {
                if !advance(&mut lane.next_sent, id.sequence()) {
                    broken(Kind::SendOrder, "sent after a later one of its strategy");
                }
            }
            Point::OrchRecvSubmit => {
                if !advance(&mut lane.next_received, id.sequence()) {
                    broken(Kind::SubmitOrder, "reached the orchestrator after a later one of its strategy");
                }
            }
            Point::OrchReturn | Point::StrategyRecv => {
                let other = if point == Point::OrchReturn { Point::StrategyRecv } else { Point::OrchReturn };
                if row.at(other).is_some_and(|ticks| !rises(&mut lane.last_return, ticks)) {
                    broken(Kind::ReturnOrder, "reached its strategy in another order than it was returned");
                }
            }
            Point::GatewayRecv | Point::GatewayDone => {
                let Some(gateway) = source.gateway else { return Ok(()) };
                if point == Point::GatewayDone {
                    row.set_pushed(gateway, source.pushed);
                    source.pushed += 1;
                    return Ok(());
                }
                let dispatched = row.at(Point::OrchDispatch);
                if dispatched
                    .is_some_and(|ticks| !rises(&mut self.gateways[gateway as usize].last_dispatch, ticks))
                {
                    broken(
                        Kind::DispatchOrder,
                        "reached its gateway in another order than it was dispatched",
                    );
                }
                row.set_pushed(gateway, 0);
            }
            Point::OrchDispatch => {
                let (Some((gateway, _)), Some(received)) = (row.pushed(), row.at(Point::GatewayRecv)) else {
                    return Ok(());
                };
                if !rises(&mut self.gateways[gateway].last_dispatch, received) {
                    broken(
                        Kind::DispatchOrder,
                        "reached its gateway in another order than it was dispatched",
                    );
                }
            }
            Point::OrchRecvCompletion => {
                let pushed = row.pushed().filter(|_| row.has(Point::GatewayDone));
                if let Some((gateway, position)) = pushed
                    && !advance(&mut self.gateways[gateway].next_completion, position)
                {
                    broken(Kind::CompletionOrder, "its report arrived after a later one of its gateway");
                }
            }
            Point::Due | Point::Release | Point::Rejected | Point::Cancelled => {}
        }
        Ok(())
    }

    #[inline]
    fn is_owner(&self, strategy: u16) -> bool {
        // A strategy outside the plan is named as such, not as misplaced.
        self.owners.get(usize::from(strategy)).is_none_or(|owner| *owner == Some(self.source.thread))
    }

    #[cold]
    fn misplaced(&mut self, record: Record) {
        let file = &self.source.file;
        let example = || format!("{}: {} stands in {file}", name_of(record.id), record.point.name());
        self.violations.add(Kind::Misplaced, example);
    }

    #[cold]
    fn beyond(&mut self, record: Record) {
        let (id, point) = (record.id, record.point.name());
        let planned = self.plan.orders.get(usize::from(id.strategy())).copied().unwrap_or(0);
        if id.sequence() >= planned {
            let example = || format!("{}: {point}, but the plan has {planned} orders for it", name_of(id));
            self.violations.add(Kind::NotInPlan, example);
        } else {
            let example = || format!("{}: {point}, but its strategy never sent it", name_of(id));
            self.violations.add(Kind::NeverSent, example);
        }
    }
}

/// The one gateway that a thread runs.
pub(super) fn sole_gateway(thread: &shm::plan::ThreadPlan) -> Option<u16> {
    let mut gateways = thread.roles.iter().filter_map(|role| match role {
        Role::Gateway(index) => Some(*index),
        _ => None,
    });
    gateways.next().filter(|_| gateways.next().is_none())
}

/// Moves a cursor past `position`; `false` if it was past it before.
#[inline]
fn advance(next: &mut u64, position: u64) -> bool {
    let in_order = position >= *next;
    if in_order {
        *next = position + 1;
    }
    in_order
}

/// Moves a time forward; `false` if it would go back. Equal times are in order: a batch has one time.
#[inline]
fn rises(last: &mut u64, ticks: u64) -> bool {
    let in_order = ticks >= *last;
    if in_order {
        *last = ticks;
    }
    in_order
}

/// The points that an order that came back must have, beside what the pacing adds.
pub(super) const fn required(row: &Row) -> u64 {
    if row.has(Point::Rejected) {
        bit(Point::StrategySend)
            | bit(Point::OrchRecvSubmit)
            | bit(Point::OrchReturn)
            | bit(Point::StrategyRecv)
    } else {
        0xFF | bit(Point::Release)
    }
}
