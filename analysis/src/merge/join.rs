//! The join: adds the records of each log to the table and checks what depends on their order in
//! the logs, that every hand-off is first in, first out.
//!
//! Logs are read in the order strategies, gateways, orchestrator, so that each check finds the
//! stamps that it compares with. Roles that share a thread have one log in the order of the events,
//! which serves as well.

use super::MergeError;
use super::accounts::Accounts;
use super::current_log::CurrentLog;
use super::deaths::Deaths;
use super::further_reports::{FurtherReport, FurtherReports};
use super::gaps::ThreadGaps;
use super::hand_offs::{
    GatewayOrder, NewestEpochs, OrderCheck, OutOfOrder, ReturnOrder, gateway_of, other_end,
};
use super::links::LinkChecksums;
use super::market::TouchVersions;
use super::row::{OrderRow, bit};
use super::switches::KillSwitches;
use super::table::{LaneBounds, MissingRow, OrderTable};
use super::violation::{Findings, Violation, ViolationKind, order_name};
use crate::logfile::file_name;
use protocol::flow::{REPORT_PATH, points_mask};
use protocol::plan::{Plan, Role};
use protocol::role::RoleKind;
use protocol::stamps::{HandOff, LinkEnd, Point, Record};
use protocol::wire::Report;

/// Number of distinct rejection codes that the order table can hold.
pub(super) const MAX_REASONS: usize = 128;

/// A bit mask of the points that strategies stamp.
pub(super) const STRATEGY_POINTS: u64 = points_mask(RoleKind::Strategy.info().points);

/// The state of joining all logs of a run into one table of orders.
pub(super) struct Join<'a> {
    plan: &'a Plan,
    pub deaths: &'a mut Deaths,
    /// Thread that runs each strategy, or each gateway.
    owners: Vec<Option<usize>>,
    pub table: OrderTable,
    /// Thread that runs each strategy, or each gateway.
    gateway_threads: Vec<Option<usize>>,
    gateways: Vec<GatewayOrder>,
    pub further_reports: FurtherReports,
    /// Gaps and sleeps of each thread, in log order.
    pub gaps: Vec<ThreadGaps>,
    newest: Vec<NewestEpochs>,
    pub findings: &'a mut Findings,
    pub links: LinkChecksums,
    pub accounts: Accounts,
    pub switches: KillSwitches,
    pub touches: TouchVersions,
    /// Refused orders by the code of the reason.
    pub rejections: [u64; MAX_REASONS],
    source: CurrentLog,
}

impl<'a> Join<'a> {
    /// Creates an empty join for strategies whose logs have at most these sizes.
    pub fn new(
        plan: &'a Plan,
        deaths: &'a mut Deaths,
        bounds: Vec<LaneBounds>,
        findings: &'a mut Findings,
    ) -> Self {
        let gateways = 0..usize::from(plan.trading().venues);
        let dead = gateways.map(|gateway| deaths.is_lost_gateway(gateway)).collect();
        Self {
            plan,
            deaths,
            owners: (0..plan.trading().strategies)
                .map(|index| plan.thread_of(Role::Strategy(index)))
                .collect(),
            table: OrderTable::new(bounds),
            gateway_threads: (0..plan.trading().venues)
                .map(|index| plan.thread_of(Role::Gateway(index)))
                .collect(),
            gateways: vec![GatewayOrder::default(); usize::from(plan.trading().venues)],
            further_reports: FurtherReports::default(),
            gaps: ThreadGaps::for_plan(plan),
            newest: vec![NewestEpochs::default(); usize::from(plan.trading().strategies)],
            findings,
            links: LinkChecksums::default(),
            accounts: Accounts::new(plan.trading().strategies, dead),
            switches: KillSwitches::default(),
            touches: TouchVersions::default(),
            rejections: [0; MAX_REASONS],
            source: CurrentLog::default(),
        }
    }

    /// Starts reading the log of a thread.
    pub fn begin(&mut self, thread: usize) {
        self.accounts.end_log();
        let Some(plan) = self.plan.threads.get(thread) else { return };
        let points = plan.roles.iter().fold(0, |points, role| points | points_mask(role.info().points));
        self.source = CurrentLog {
            thread,
            file: file_name(&plan.name),
            points,
            is_untrusted: self.deaths.is_untrusted_log(plan),
            author: self.deaths.sole_author(plan),
            ..CurrentLog::default()
        };
    }

    /// Returns the strategy that alone writes the log being read, to which invalid records are
    /// therefore attributed.
    pub fn sole_author(&self) -> Option<u16> {
        self.source.author
    }

    /// Returns the first violation in the log being read that no correct strategy would cause.
    pub fn first_nonsense(&self) -> Option<&Violation> {
        self.source.own_violations.first()
    }

    /// Returns how many stamps of the log being read are earlier than the one before them, with an
    /// example. Not for a log that one strategy writes alone, where it is a violation.
    pub fn went_back(&self) -> Option<&Violation> {
        self.source.backward_steps.first()
    }

    /// Marks the log of a strategy as untrusted: its stamps stay in the table but count for
    /// nothing.
    pub fn distrust(&mut self, strategy: u16) {
        self.deaths.distrust(strategy);
        self.table.excuse(strategy);
        self.links.forget(strategy);
    }

    /// Returns the number of invalid records that were skipped in an untrusted log.
    pub fn ignored(&self) -> u64 {
        self.source.ignored
    }

    /// Adds one record of the log being read.
    ///
    /// # Errors
    /// Only [`MergeError`] for missing space; every fault of the record is a violation.
    #[inline]
    pub fn ingest(&mut self, record: Record) -> Result<(), MergeError> {
        self.ingest_stamp(record)?;
        // Checked last: other faults of a record are more specific.
        if let Some(back) = self.source.observe_time(&record) {
            self.source.add_backward_step(&record, back, self.plan.ns_per_tick);
        }
        Ok(())
    }

    #[inline]
    fn ingest_stamp(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, detail, value } = record;
        let is_strategy_point = STRATEGY_POINTS & bit(point) != 0;
        if self.source.points & bit(point) == 0 || (is_strategy_point && !self.is_owner(id.strategy())) {
            self.add_misplaced(record);
            return Ok(());
        }
        if bit(point) >= bit(Point::Instrument) {
            return self.ingest_account_record(record);
        }
        let Self { source, findings, .. } = self;
        let lane = match self.table.lane(id) {
            Ok(lane) => lane,
            Err(why) => {
                if point == Point::GatewayDone {
                    self.accounts.on_unexpected_report(id, Report::parse_detail(detail).0, value);
                }
                return self.on_missing_row(record, &why);
            }
        };
        let (is_excused, is_hostile) = (lane.is_excused, lane.is_hostile);
        let row = &mut lane.rows[id.sequence() as usize];
        let is_own = source.author.is_some();
        let own = &mut source.own_violations;
        let mut broken = |witness: Option<u16>, kind, what: &dyn Fn() -> String| {
            let example = || format!("{}: {}", order_name(id), what());
            match is_own {
                _ if is_hostile => {}
                true => own.add(kind, example),
                // Faults that the engine's stamps show need no strategy as a witness.
                false if is_excused && witness.is_some() => {}
                false => findings.add(witness, kind, example),
            }
        };
        // Only the detail of t5 holds more than the number.
        let (number, is_last) =
            if point == Point::GatewayDone { Report::parse_detail(detail) } else { (detail, true) };
        if number > 0 && REPORT_POINTS & bit(point) != 0 {
            let report = self.further_reports.report_mut(id, number);
            if !report.try_stamp(point, value) {
                if point == Point::GatewayDone {
                    self.accounts.on_unexpected_report(id, number, value);
                }
                broken(None, ViolationKind::Duplicate, &|| {
                    format!("{} of report {number} twice", point.name())
                });
                return Ok(());
            }
            report.has_more |= !is_last;
            if let Err(OutOfOrder { kind, by_strategy, what }) =
                join_further_report(point, row, report, &mut self.gateways, &mut lane.returns)
            {
                broken(by_strategy.then_some(id.strategy()), kind, &|| format!("report {number}: {what}"));
            }
            match (point, report.pushed) {
                (Point::GatewayDone, pushed) => self.accounts.on_report(id, number, value, pushed),
                (Point::OrchRecvCompletion, Some(pushed)) => self.accounts.on_report_taken(pushed),
                _ => {}
            }
            return Ok(());
        }
        if !row.try_stamp(point, value) {
            if point == Point::GatewayDone {
                self.accounts.on_unexpected_report(id, number, value);
            }
            broken(None, ViolationKind::Duplicate, &|| format!("{} twice", point.name()));
            return Ok(());
        }
        match point {
            Point::Rejected => self.rejections[value as usize & (MAX_REASONS - 1)] += 1,
            Point::OrchDispatch if self.switches.is_any_on() => {
                let instrument = lane.instruments.get(id.sequence() as usize).copied().unwrap_or(0);
                self.switches.on_dispatch(record, row, instrument);
            }
            _ => {}
        }
        let newest = &mut self.newest[usize::from(id.strategy())];
        let gateways = &mut self.gateways;
        let in_order = match point {
            Point::StrategySend => lane.submit.on_sent(id, newest),
            Point::OrchRecvSubmit => lane.submit.on_taken(id, newest),
            Point::OrchDispatch => newest.on_dispatch(id).and_then(|()| {
                let received = row.at(Point::GatewayRecv);
                gateway_of(gateways, row).map_or(Ok(()), |gateway| gateway.on_inbox(received))
            }),
            Point::GatewayRecv => {
                row.set_pushed(u16::from(detail), 0);
                let dispatched = row.at(Point::OrchDispatch);
                match gateway_of(gateways, row) {
                    Some(gateway) if self.gateway_threads[usize::from(detail)] == Some(source.thread) => {
                        gateway.on_inbox(dispatched)
                    }
                    _ => Err(OutOfOrder {
                        kind: ViolationKind::Misplaced,
                        by_strategy: false,
                        what: "t4 names a gateway that is none of its thread's",
                    }),
                }
            }
            Point::GatewayDone => {
                if let Some((venue, _)) = row.pushed()
                    && let Some(gateway) = gateways.get_mut(venue)
                {
                    row.set_pushed(venue as u16, gateway.push());
                }
                self.accounts.on_report(id, number, value, row.pushed());
                if !is_last {
                    row.set_more();
                    self.further_reports.expect_more(id);
                }
                Ok(())
            }
            Point::OrchRecvCompletion => match row.pushed().filter(|_| row.has(Point::GatewayDone)) {
                Some((venue, position)) => {
                    self.accounts.on_report_taken((venue, position));
                    gateways.get_mut(venue).map_or(Ok(()), |gateway| gateway.on_completion(position))
                }
                None => Ok(()),
            },
            Point::OrchReturn | Point::StrategyRecv => lane.returns.on_stamp(row.at(other_end(point))),
            Point::Due
            | Point::Release
            | Point::Rejected
            | Point::Cancelled
            | Point::Checksum
            | Point::Gap
            | Point::Instrument
            | Point::FillQuantity
            | Point::FillPrice
            | Point::Position
            | Point::KillSeen
            | Point::KillDone
            | Point::ExchangeRecv
            | Point::ExchangeDone
            | Point::Trigger
            | Point::TopOfBook
            | Point::Slept => Ok(()),
        };
        if let Err(OutOfOrder { kind, by_strategy, what }) = in_order {
            broken(by_strategy.then_some(id.strategy()), kind, &|| what.into());
        }
        Ok(())
    }

    /// Adds a record that is not a stamp: instrument, fill, position or kill switch.
    #[inline]
    fn ingest_account_record(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, value, .. } = record;
        match point {
            Point::FillQuantity => self.accounts.on_fill_quantity(record),
            Point::FillPrice => {
                let lane = self.table.lane_of(id.strategy(), id.epoch());
                let instrument = lane.map_or(0, |lane| lane.instrument(id.sequence()));
                self.accounts.on_fill_price(record, instrument);
            }
            Point::Instrument => {
                let lane = self.table.lane(id);
                let done = lane.and_then(|lane| lane.set_instrument(id.sequence(), value as u16));
                return done.or_else(|why| self.on_missing_row(record, &why));
            }
            Point::Position => self.accounts.on_position(record),
            Point::KillSeen | Point::KillDone => self.switches.record(record),
            Point::ExchangeRecv | Point::ExchangeDone | Point::Trigger => {
                return self.ingest_exchange_stamp(record);
            }
            Point::TopOfBook => self.touches.record(&record, self.plan, self.source.thread),
            _ => {}
        }
        Ok(())
    }

    /// Adds a stamp of an exchange.
    ///
    /// # Errors
    /// [`MergeError`], as for [`Join::ingest`].
    fn ingest_exchange_stamp(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, detail, value } = record;
        let thread = self.source.thread;
        let lane = match self.table.lane(id) {
            Ok(lane) => lane,
            Err(why) => return self.on_missing_row(record, &why),
        };
        let is_hostile = lane.is_hostile;
        // The exchange logs it after its stamps of the order.
        if point == Point::Trigger {
            let at = lane.at_exchange(id.sequence());
            if at.received().is_none() || at.thread() != thread {
                self.add_misplaced(record);
                return Ok(());
            }
        }
        let is_new = if point == Point::Trigger {
            lane.set_trigger(id.sequence(), value)
        } else if point == Point::ExchangeDone && detail > 0 {
            let given = &mut self.further_reports.report_mut(id, detail).exchange_done;
            Ok(given.replace((value, thread as u32)).is_none())
        } else {
            lane.at_exchange_mut(id.sequence()).map(|at| at.try_stamp(point, value, thread))
        };
        let is_new = match is_new {
            Ok(is_new) => is_new,
            Err(why) => return self.on_missing_row(record, &why),
        };
        if !is_new && !is_hostile {
            self.findings.add(None, ViolationKind::Duplicate, || {
                let of = if detail > 0 { format!(" of report {detail}") } else { String::new() };
                format!("{}: {}{of} twice", order_name(id), point.name())
            });
        }
        Ok(())
    }

    #[inline]
    fn is_owner(&self, strategy: u16) -> bool {
        // A strategy outside the plan is reported as such, not as misplaced.
        self.owners.get(usize::from(strategy)).is_none_or(|owner| *owner == Some(self.source.thread))
    }

    #[cold]
    fn add_misplaced(&mut self, record: Record) {
        match record.point {
            Point::Checksum if self.try_set_checksum(record) => return,
            // An untrusted log has no gaps either.
            Point::Gap | Point::Slept => {
                let own = self.gaps.get_mut(self.source.thread).filter(|_| !self.source.is_untrusted);
                own.into_iter().for_each(|own| own.record(&record));
                return;
            }
            _ => {}
        }
        if self.source.is_untrusted {
            self.source.ignored += 1;
            return;
        }
        let what = match record.point {
            Point::Checksum => "a checksum".into(),
            Point::TopOfBook => "a board".into(),
            _ => order_name(record.id),
        };
        self.source.add_violation(self.findings, ViolationKind::Misplaced, |file| {
            format!("{what}: {} stands in {file}", record.point.name())
        });
    }

    /// Sets the checksum of one end of a link, which follows all stamps of the log. Returns `false`
    /// if the end does not belong to the thread or has a checksum already.
    fn try_set_checksum(&mut self, Record { id, value, .. }: Record) -> bool {
        let Some(end) = LinkEnd::from_id(id) else { return false };
        let role = match (end.hand_off, end.is_receiver) {
            (HandOff::Submit, false) | (HandOff::Return, true) => Role::Strategy(end.peer),
            (HandOff::Inbox, true) | (HandOff::Completion, false) => Role::Gateway(end.peer),
            _ => Role::Orchestrator,
        };
        let is_ours = self.plan.thread_of(role) == Some(self.source.thread);
        is_ours && (self.source.is_untrusted || self.links.try_insert(end, value))
    }

    /// Handles a record without a row: the order is impossible, or space is missing.
    #[cold]
    fn on_missing_row(&mut self, record: Record, why: &MissingRow) -> Result<(), MergeError> {
        if let MissingRow::Memory(bytes) = why {
            return Err(MergeError::Memory { bytes: *bytes });
        }
        let (id, point) = (record.id, record.point.name());
        if self.source.is_untrusted {
            self.source.ignored += 1;
            return Ok(());
        }
        if self.deaths.is_hostile(id.strategy()) {
            return Ok(());
        }
        let is_doubted = self.deaths.is_untrusted(id.strategy());
        let CurrentLog { author, own_violations: own, .. } = &mut self.source;
        let findings = &mut *self.findings;
        let mut add = |witness, kind, example: &dyn Fn() -> String| match author {
            Some(_) => own.add(kind, example),
            None => findings.add(witness, kind, example),
        };
        let planned = self.plan.trading().orders.get(usize::from(id.strategy())).copied().unwrap_or(0);
        let name = || order_name(id);
        match why {
            MissingRow::Strategy => {
                add(None, ViolationKind::NotInPlan, &|| format!("{}: the plan has no such strategy", name()));
            }
            MissingRow::Epoch => {
                let last = self.deaths.last_epoch(id.strategy());
                add(None, ViolationKind::NotInPlan, &|| {
                    format!("{}: {point}, but by the record its last epoch was {last}", name())
                });
            }
            _ if id.sequence() >= planned => {
                add(None, ViolationKind::NotInPlan, &|| {
                    format!("{}: {point}, but the plan has {planned} orders for it", name())
                });
            }
            _ if is_doubted => {}
            _ => {
                // There is a row for every order that its strategy's log can hold, and more.
                add(Some(id.strategy()), ViolationKind::NeverSent, &|| {
                    format!("{}: {point}, but its strategy never sent it", name())
                });
            }
        }
        Ok(())
    }
}

/// The points of further reports.
const REPORT_POINTS: u64 = points_mask(REPORT_PATH);

/// Joins a stamp of a further report, which passes the same hand-offs as the first.
#[cold]
fn join_further_report(
    point: Point,
    row: &OrderRow,
    report: &mut FurtherReport,
    gateways: &mut [GatewayOrder],
    returns: &mut ReturnOrder,
) -> OrderCheck {
    match point {
        Point::GatewayDone => {
            if let Some((venue, _)) = row.pushed()
                && let Some(gateway) = gateways.get_mut(venue)
            {
                report.pushed = Some((venue, gateway.push()));
            }
            Ok(())
        }
        Point::OrchRecvCompletion => match report.pushed {
            Some((venue, position)) => {
                gateways.get_mut(venue).map_or(Ok(()), |gateway| gateway.on_completion(position))
            }
            None => Ok(()),
        },
        _ => returns.on_stamp(report.at(other_end(point))),
    }
}
