//! Takes the records of one log after the other into the table, and checks what only the order of the records
//! in their logs can tell: that every hand-off is first in, first out.
//!
//! Logs are taken strategies first, gateways next, the orchestrator last, so that each check finds what it
//! compares with. Where two of them share a thread, their records are in one log in the order of the events,
//! which serves as well.

use super::deaths::Deaths;
use super::links::Links;
use super::table::{Bounds, NoRow, Table, bit};
use super::violation::{Findings, Kind, Violation, Violations, name_of};
use super::{MergeError, file_name};
use protocol::plan::{Plan, Role};
use protocol::role::RoleKind;
use protocol::stamps::{HandOff, LinkEnd, Point, Record};

/// What the strategies stamp.
pub(super) const BY_STRATEGY: u64 = RoleKind::Strategy.record().points_mask();

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
    /// The log proves nothing: what makes no sense in it is passed over.
    is_untrusted: bool,
    /// How much was.
    ignored: u64,
    /// The strategy that alone writes this log, where nonsense in it is its own affair: `own` says what was found.
    author: Option<u16>,
    own: Violations,
}

/// How far one gateway's hand-offs have come.
#[derive(Clone, Copy, Default)]
struct GatewayOrder {
    /// The latest t4 of the orders dispatched (or t3 of the orders received), whichever log is read second.
    last_dispatch: u64,
    /// The position that the next report to arrive must not be below.
    next_completion: u64,
}

/// The newest incarnation of a strategy so far: once one has begun, its predecessors are dead.
#[derive(Clone, Copy, Default)]
struct Newest {
    /// Among those that sent, in the order of the strategy's log.
    sent: u16,
    /// Among those whose orders were taken, in the order of the orchestrator's log. An order of a predecessor may still come
    /// out of a ring that several write; it is refused then, never dispatched.
    taken: u16,
}

/// The join of all logs.
pub(super) struct Join<'a> {
    plan: &'a Plan,
    pub deaths: &'a mut Deaths,
    /// The thread that runs each strategy.
    owners: Vec<Option<usize>>,
    pub table: Table,
    gateways: Vec<GatewayOrder>,
    newest: Vec<Newest>,
    pub findings: &'a mut Findings,
    pub links: Links,
    source: Source,
}

impl<'a> Join<'a> {
    /// A join for lanes within these bounds, one for each strategy.
    pub fn new(
        plan: &'a Plan,
        deaths: &'a mut Deaths,
        bounds: Vec<Bounds>,
        findings: &'a mut Findings,
    ) -> Self {
        let source = Source {
            thread: 0,
            file: String::new(),
            points: 0,
            gateway: None,
            pushed: 0,
            is_untrusted: false,
            ignored: 0,
            author: None,
            own: Violations::default(),
        };
        Self {
            plan,
            deaths,
            owners: (0..plan.strategies).map(|index| plan.thread_of(Role::Strategy(index))).collect(),
            table: Table::new(bounds),
            gateways: vec![GatewayOrder::default(); usize::from(plan.venues)],
            newest: vec![Newest::default(); usize::from(plan.strategies)],
            findings,
            links: Links::default(),
            source,
        }
    }

    /// The records that follow come from this thread's log.
    pub fn begin(&mut self, thread: usize) {
        let Some(plan) = self.plan.threads.get(thread) else { return };
        let points = plan.roles.iter().fold(0, |points, role| points | role.record().points_mask());
        self.source = Source {
            thread,
            file: file_name(&plan.name),
            points,
            gateway: sole_gateway(plan),
            pushed: 0,
            is_untrusted: self.deaths.is_untrusted_log(plan),
            ignored: 0,
            author: self.deaths.sole_author(plan),
            own: Violations::default(),
        };
    }

    /// The strategy whose log is being read, if nonsense in it is its own affair.
    pub fn author(&self) -> Option<u16> {
        self.source.author
    }

    /// What no honest strategy writes and the log that began last has, the first of it.
    pub fn nonsense(&self) -> Option<&Violation> {
        self.source.own.first()
    }

    /// The strategy's log proves nothing: what was taken from it stays, and counts for nothing.
    pub fn distrust(&mut self, strategy: u16) {
        self.deaths.distrust(strategy);
        self.table.excuse(strategy);
        self.links.forget(strategy);
    }

    /// Records of the log that began last that make no sense and were passed over, because the log proves nothing.
    pub fn ignored(&self) -> u64 {
        self.source.ignored
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
        let Self { source, findings, newest, .. } = self;
        let lane = match self.table.lane(id) {
            Ok(lane) => lane,
            Err(NoRow::Memory(bytes)) => return Err(MergeError::Memory { bytes }),
            Err(why) => {
                self.nowhere(record, &why);
                return Ok(());
            }
        };
        let is_excused = lane.is_excused;
        let row = &mut lane.rows[id.sequence() as usize];
        let is_own = source.author.is_some();
        let own = &mut source.own;
        let mut broken = |witness: Option<u16>, kind, what: &dyn Fn() -> String| {
            let example = || format!("{}: {}", name_of(id), what());
            match is_own {
                _ if is_excused => {}
                true => own.add(kind, example),
                false => findings.add(witness, kind, example),
            }
        };
        if !row.stamp(point, value) {
            broken(None, Kind::Duplicate, &|| format!("{} twice", point.name()));
            return Ok(());
        }
        match point {
            Point::StrategySend => {
                if !advance(&mut lane.next_sent, id.sequence()) {
                    broken(None, Kind::SendOrder, &|| "sent after a later one of its strategy".into());
                }
                let newest = &mut newest[usize::from(id.strategy())].sent;
                if id.epoch() < *newest {
                    broken(None, Kind::SendOrder, &|| {
                        "sent after the next incarnation of its strategy had begun".into()
                    });
                }
                *newest = id.epoch().max(*newest);
            }
            Point::OrchRecvSubmit => {
                if !advance(&mut lane.next_received, id.sequence()) {
                    broken(None, Kind::SubmitOrder, &|| {
                        "reached the orchestrator after a later one of its strategy".into()
                    });
                }
                let newest = &mut newest[usize::from(id.strategy())].taken;
                *newest = id.epoch().max(*newest);
            }
            Point::OrchReturn | Point::StrategyRecv => {
                let other = if point == Point::OrchReturn { Point::StrategyRecv } else { Point::OrchReturn };
                if row.at(other).is_some_and(|ticks| !rises(&mut lane.last_return, ticks)) {
                    broken(Some(id.strategy()), Kind::ReturnOrder, &|| {
                        "reached its strategy in another order than it was returned".into()
                    });
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
                    broken(None, Kind::DispatchOrder, &|| {
                        "reached its gateway in another order than it was dispatched".into()
                    });
                }
                row.set_pushed(gateway, 0);
            }
            Point::OrchDispatch => {
                if id.epoch() < newest[usize::from(id.strategy())].taken {
                    broken(None, Kind::SubmitOrder, &|| {
                        "dispatched after the next incarnation of its strategy had begun".into()
                    });
                }
                let (Some((gateway, _)), Some(received)) = (row.pushed(), row.at(Point::GatewayRecv)) else {
                    return Ok(());
                };
                if !rises(&mut self.gateways[gateway].last_dispatch, received) {
                    broken(None, Kind::DispatchOrder, &|| {
                        "reached its gateway in another order than it was dispatched".into()
                    });
                }
            }
            Point::OrchRecvCompletion => {
                let pushed = row.pushed().filter(|_| row.has(Point::GatewayDone));
                if let Some((gateway, position)) = pushed
                    && !advance(&mut self.gateways[gateway].next_completion, position)
                {
                    broken(None, Kind::CompletionOrder, &|| {
                        "its report arrived after a later one of its gateway".into()
                    });
                }
            }
            Point::Due | Point::Release | Point::Rejected | Point::Cancelled | Point::Checksum => {}
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
        if record.point == Point::Checksum && self.take_checksum(record) {
            return;
        }
        let Source { file, author, own, is_untrusted, ignored, .. } = &mut self.source;
        if *is_untrusted {
            *ignored += 1;
            return;
        }
        let what = if record.point == Point::Checksum { "a checksum".into() } else { name_of(record.id) };
        let example = || format!("{what}: {} stands in {file}", record.point.name());
        match author {
            Some(_) => own.add(Kind::Misplaced, example),
            None => self.findings.add(None, Kind::Misplaced, example),
        }
    }

    /// The checksum of one end of a link, which stands behind all stamps of its log; `false` if that end is none of the
    /// thread's, or has one already.
    fn take_checksum(&mut self, Record { id, value, .. }: Record) -> bool {
        let Some(end) = LinkEnd::of(id) else { return false };
        let role = match (end.hand_off, end.is_receiver) {
            (HandOff::Submit, false) | (HandOff::Return, true) => Role::Strategy(end.peer),
            (HandOff::Inbox, true) | (HandOff::Completion, false) => Role::Gateway(end.peer),
            _ => Role::Orchestrator,
        };
        let is_ours = self.plan.thread_of(role) == Some(self.source.thread);
        is_ours && (self.source.is_untrusted || self.links.take(end, value))
    }

    /// A record of an order that the run cannot have had.
    #[cold]
    fn nowhere(&mut self, record: Record, why: &NoRow) {
        let (id, point) = (record.id, record.point.name());
        if self.source.is_untrusted {
            self.source.ignored += 1;
            return;
        }
        if self.deaths.is_hostile(id.strategy()) {
            return;
        }
        let is_doubted = self.deaths.is_untrusted(id.strategy());
        let Source { author, own, .. } = &mut self.source;
        let findings = &mut *self.findings;
        let mut add = |witness, kind, example: &dyn Fn() -> String| match author {
            Some(_) => own.add(kind, example),
            None => findings.add(witness, kind, example),
        };
        let planned = self.plan.orders.get(usize::from(id.strategy())).copied().unwrap_or(0);
        let name = || name_of(id);
        match why {
            NoRow::Strategy => {
                add(None, Kind::NotInPlan, &|| format!("{}: the plan has no such strategy", name()));
            }
            NoRow::Epoch => {
                let last = self.deaths.last_epoch(id.strategy());
                add(None, Kind::NotInPlan, &|| {
                    format!("{}: {point}, but by the record its last epoch was {last}", name())
                });
            }
            _ if id.sequence() >= planned => {
                add(None, Kind::NotInPlan, &|| {
                    format!("{}: {point}, but the plan has {planned} orders for it", name())
                });
            }
            _ if is_doubted => {}
            _ => {
                // There is a row for as much as its strategy's log can hold, and more.
                add(Some(id.strategy()), Kind::NeverSent, &|| {
                    format!("{}: {point}, but its strategy never sent it", name())
                });
            }
        }
    }
}

/// The one gateway that a thread runs.
pub(super) fn sole_gateway(thread: &protocol::plan::ThreadPlan) -> Option<u16> {
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
