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
use super::hand_offs::{
    GatewayOrder, NewestEpochs, OrderCheck, OutOfOrder, ReturnOrder, gateway_of, other_end,
};
use super::links::LinkChecksums;
use super::market::TouchVersions;
use super::row::{OrderRow, STRATEGY_POINTS, bit};
use super::switches::KillSwitches;
use super::table::{MissingRow, OrderTable, PartitionBounds};
use super::violation::{Findings, ViolationKind, order_name};
use protocol::flow::{REPORT_PATH, points_mask};
use protocol::gaps::MAX_SLEEPS;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::{Plan, Role};
use protocol::stamps::{HandOff, LinkEnd, Point, Record};
use protocol::wire::Report;
use record::logfile::file_name;

/// Number of distinct rejection codes that the order table can hold.
pub(super) const MAX_REASONS: usize = 128;

/// The state of joining all logs of a run into one table of orders.
pub(super) struct Join<'a> {
    plan: &'a Plan,
    pub deaths: &'a mut Deaths,
    /// Thread that runs each strategy.
    owners: Vec<Option<usize>>,
    pub table: OrderTable,
    /// Thread that runs each gateway.
    gateway_threads: Vec<Option<usize>>,
    gateways: Vec<GatewayOrder>,
    pub further_reports: FurtherReports,
    newest: Vec<NewestEpochs>,
    pub findings: &'a mut Findings,
    pub links: LinkChecksums,
    pub accounts: Accounts,
    pub switches: KillSwitches,
    pub touches: TouchVersions,
    /// Number of refused orders, by the code of the reason.
    pub rejections: [u64; MAX_REASONS],
    /// The log that is being read.
    pub source: CurrentLog,
}

impl<'a> Join<'a> {
    /// Creates the join of a run's stamp logs, with an empty order table.
    pub fn new(
        plan: &'a Plan,
        deaths: &'a mut Deaths,
        bounds: Vec<PartitionBounds>,
        findings: &'a mut Findings,
    ) -> Self {
        let (strategies, gateways) = (plan.trading().strategies, plan.trading().gateways());
        let accounts = Accounts::new(strategies, deaths.lost_gateways.clone());
        Self {
            plan,
            deaths,
            owners: StrategyIndex::first(strategies)
                .map(|index| plan.thread_of(Role::Strategy(index)))
                .collect(),
            table: OrderTable::new(bounds),
            gateway_threads: GatewayIndex::first(gateways)
                .map(|index| plan.thread_of(Role::Gateway(index)))
                .collect(),
            gateways: vec![GatewayOrder::default(); usize::from(gateways)],
            further_reports: FurtherReports::default(),
            newest: vec![NewestEpochs::default(); usize::from(strategies)],
            findings,
            links: LinkChecksums::default(),
            accounts,
            switches: KillSwitches::default(),
            touches: TouchVersions::new(plan),
            rejections: [0; MAX_REASONS],
            source: CurrentLog::default(),
        }
    }

    /// Begins to read the stamp log of the thread with this index in the plan.
    pub fn begin(&mut self, thread: usize) {
        self.accounts.end_log();
        let Some(plan) = self.plan.threads.get(thread) else { return };
        let points = plan.roles.iter().fold(0, |points, role| points | points_mask(role.info().points));
        self.source = CurrentLog {
            thread,
            file: file_name(&plan.name),
            points,
            is_untrusted: self.deaths.is_untrusted_log(plan),
            author: self.deaths.only_writer(plan),
            max_sleeps: plan.sleep_records.min(MAX_SLEEPS),
            ..CurrentLog::default()
        };
    }

    /// Marks a strategy's log as untrusted: its stamps stay in the order table but are not counted.
    pub fn distrust(&mut self, strategy: StrategyIndex) {
        self.deaths.distrust(strategy);
        self.table.distrust(strategy);
        self.links.forget(strategy);
    }

    /// Adds one record of the current stamp log to the order table, and checks it against the
    /// records before it. Only missing space is an error: every fault of the record is a violation.
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
        let partition = match self.table.partition(id) {
            Ok(partition) => partition,
            Err(why) => {
                if point == Point::GatewayDone {
                    self.accounts.on_unexpected_report(id, Report::parse_stamp_detail(detail).0, value);
                }
                return self.on_missing_row(record, &why);
            }
        };
        let (is_untrusted, is_hostile) = (partition.is_untrusted, partition.is_hostile);
        let row = &mut partition.rows[id.sequence() as usize];
        let is_own = source.author.is_some();
        let own = &mut source.own_violations;
        let mut broken = |sole_source: Option<StrategyIndex>, kind, description: &dyn Fn() -> String| {
            let example = || format!("{}: {}", order_name(id), description());
            match is_own {
                _ if is_hostile => {}
                true => own.add(kind, example),
                // Faults that the engine's stamps show need no strategy as their source.
                false if is_untrusted && sole_source.is_some() => {}
                false => findings.add(sole_source, kind, example),
            }
        };
        // Only the detail of t5 holds more than the number.
        let (number, is_last) =
            if point == Point::GatewayDone { Report::parse_stamp_detail(detail) } else { (detail, true) };
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
            let joined = join_further_report(point, row, report, &mut self.gateways, &mut partition.returns);
            if let Err(error) = joined {
                broken(error.sole_source(id), error.kind, &|| {
                    format!("report {number}: {}", error.description)
                });
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
                let instrument = partition.instruments.get(id.sequence() as usize).copied().unwrap_or(0);
                self.switches.on_dispatch(record, row, instrument, self.plan.trading());
            }
            _ => {}
        }
        let newest = &mut self.newest[id.strategy().as_usize()];
        let gateways = &mut self.gateways;
        let in_order = match point {
            Point::StrategySend => partition.submit.on_sent(id, newest),
            Point::OrchRecvSubmit => partition.submit.on_taken(id, newest),
            Point::OrchDispatch => newest.on_dispatch(id).and_then(|()| {
                let received = row.at(Point::GatewayRecv);
                gateway_of(gateways, row).map_or(Ok(()), |gateway| gateway.on_inbox(received))
            }),
            Point::GatewayRecv => {
                row.set_pushed(u16::from(detail), 0);
                let dispatched = row.at(Point::OrchDispatch);
                let misplaced = |description| Err(OutOfOrder { kind: ViolationKind::Misplaced, description });
                let trading = self.plan.trading();
                let (_, credential) = trading.venue_and_credential(GatewayIndex(detail.into()));
                match gateway_of(gateways, row) {
                    Some(gateway) if self.gateway_threads[usize::from(detail)] == Some(source.thread) => {
                        match credential == trading.credential_of(id.strategy()) {
                            true => gateway.on_inbox(dispatched),
                            false => misplaced("its gateway is of another strategy's credential"),
                        }
                    }
                    _ => misplaced("t4 names a gateway that is none of its thread's"),
                }
            }
            Point::GatewayDone => {
                if let Some((index, _)) = row.pushed()
                    && let Some(gateway) = gateways.get_mut(index)
                {
                    row.set_pushed(index as u16, gateway.push());
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
            Point::OrchReturn | Point::StrategyRecv => partition.returns.on_stamp(row.at(other_end(point))),
            _ => Ok(()),
        };
        if let Err(error) = in_order {
            broken(error.sole_source(id), error.kind, &|| error.description.into());
        }
        Ok(())
    }

    /// Adds a record that is not a stamp: instrument, fill, position or kill switch.
    #[inline]
    fn ingest_account_record(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, value, .. } = record;
        match point {
            Point::FillQuantity => self.accounts.on_fill_quantity(record),
            Point::FillPrice => self.accounts.on_fill_price(record, self.table.instrument(id)),
            Point::Instrument => {
                let partition = self.table.partition(id);
                let done =
                    partition.and_then(|partition| partition.set_instrument(id.sequence(), value as u16));
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

    fn ingest_exchange_stamp(&mut self, record: Record) -> Result<(), MergeError> {
        let Record { point, id, detail, value } = record;
        let thread = self.source.thread;
        let partition = match self.table.partition(id) {
            Ok(partition) => partition,
            Err(why) => return self.on_missing_row(record, &why),
        };
        let is_hostile = partition.is_hostile;
        // The exchange logs it after its stamps of the order.
        if point == Point::Trigger {
            let at = partition.at_exchange(id.sequence());
            if at.received().is_none() || at.thread() != thread {
                self.add_misplaced(record);
                return Ok(());
            }
        }
        let is_new = if point == Point::Trigger {
            partition.set_trigger(id.sequence(), value)
        } else if point == Point::ExchangeDone && detail > 0 {
            let given = &mut self.further_reports.report_mut(id, detail).exchange_done;
            Ok(given.replace((value, thread as u32)).is_none())
        } else {
            partition.at_exchange_mut(id.sequence()).map(|at| at.try_stamp(point, value, thread))
        };
        let is_new = match is_new {
            Ok(is_new) => is_new,
            Err(why) => return self.on_missing_row(record, &why),
        };
        if !is_new && !is_hostile {
            self.findings.add(None, ViolationKind::Duplicate, || {
                let report_suffix = if detail > 0 { format!(" of report {detail}") } else { String::new() };
                format!("{}: {}{report_suffix} twice", order_name(id), point.name())
            });
        }
        Ok(())
    }

    #[inline]
    fn is_owner(&self, strategy: StrategyIndex) -> bool {
        // A strategy outside the plan is reported as such, not as misplaced.
        self.owners.get(strategy.as_usize()).is_none_or(|owner| *owner == Some(self.source.thread))
    }

    #[cold]
    fn add_misplaced(&mut self, record: Record) {
        match record.point {
            Point::Checksum if self.try_set_checksum(record) => return,
            Point::Gap | Point::Slept => return self.source.add_gap(&record),
            _ => {}
        }
        if self.source.is_untrusted {
            self.source.ignored += 1;
            return;
        }
        let description = match record.point {
            Point::Checksum => "a checksum".into(),
            Point::TopOfBook => "a board".into(),
            _ => order_name(record.id),
        };
        let file = self.source.file.clone();
        self.source.add_violation(self.findings, None, ViolationKind::Misplaced, || {
            format!("{description}: {} stands in {file}", record.point.name())
        });
    }

    /// Sets the checksum of one end of a link, which follows all stamps of the log. Returns `false`
    /// if the end does not belong to the thread or has a checksum already.
    fn try_set_checksum(&mut self, Record { id, value, .. }: Record) -> bool {
        let Some(end) = LinkEnd::from_id(id) else { return false };
        let role = match (end.hand_off, end.is_receiver) {
            (HandOff::Submit, false) | (HandOff::Return, true) => Role::Strategy(StrategyIndex(end.peer)),
            (HandOff::Inbox, true) | (HandOff::Completion, false) => Role::Gateway(GatewayIndex(end.peer)),
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
        let planned = self.plan.trading().orders.get(id.strategy().as_usize()).copied().unwrap_or(0);
        // There is a row for every order that its strategy's log can hold, and more.
        let is_unsent = *why == MissingRow::Limit && id.sequence() < planned;
        let (sole_source, kind) = match is_unsent {
            true if self.deaths.is_untrusted(id.strategy()) => return Ok(()),
            true => (Some(id.strategy()), ViolationKind::NeverSent),
            false => (None, ViolationKind::NotInPlan),
        };
        let last_epoch = self.deaths.last_epoch(id.strategy());
        self.source.add_violation(self.findings, sole_source, kind, || {
            let name = order_name(id);
            match why {
                MissingRow::Strategy => format!("{name}: the plan has no such strategy"),
                MissingRow::Epoch => {
                    format!("{name}: {point}, but by the record its last epoch was {last_epoch}")
                }
                _ if is_unsent => format!("{name}: {point}, but its strategy never sent it"),
                _ => format!("{name}: {point}, but the plan has {planned} orders for it"),
            }
        });
        Ok(())
    }
}

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
