//! The reports of an order after its first one (called further reports).
//!
//! The row of an order is its path to the first report. Each further report has its own t5 to t8,
//! under the order's id and the report's number. Orders with one report need no memory here.

use super::check::CheckContext;
use super::deaths::Deaths;
use super::orders::StampSpan;
use super::row::OrderRow;
use super::table::OrderTable;
use super::violation::{Findings, ViolationKind, order_name};
use protocol::flow::REPORT_PATH;
use protocol::stamps::Point;
use protocol::wire::{ENGINE_REPORT, OrderId};
use std::collections::BTreeMap;

/// The stamps of a report after an order's first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherReport {
    ticks: [Option<u64>; REPORT_PATH.len()],
    /// Gateway that pushed the report, and the number of reports that the gateway had pushed
    /// before.
    pub(super) pushed: Option<(usize, u64)>,
    /// Time at which the venue's exchange produced the report, in ticks, and the thread that
    /// stamped it.
    pub(super) exchange_done: Option<(u64, u32)>,
    pub(super) has_more: bool,
}

impl FurtherReport {
    /// Returns the time at which the report was stamped at a point, in ticks.
    pub fn at(&self, point: Point) -> Option<u64> {
        let index = REPORT_PATH.iter().position(|other| *other == point)?;
        self.ticks[index]
    }

    /// Sets the report's stamp at a point. Returns `false` if it was set already or reports have no
    /// such point.
    pub(super) fn try_stamp(&mut self, point: Point, value: u64) -> bool {
        match REPORT_PATH.iter().position(|other| *other == point) {
            Some(index) if self.ticks[index].is_none() => {
                self.ticks[index] = Some(value);
                true
            }
            _ => false,
        }
    }

    /// Returns `true` if only the strategy's log contains the report.
    fn is_only_received(&self) -> bool {
        let (received, engine) = self.ticks.split_last().expect("the path has stamps");
        self.exchange_done.is_none() && received.is_some() && engine.iter().all(Option::is_none)
    }
}

/// All reports of a run after their orders' first ones, by order and report number.
#[derive(Debug, Default)]
pub(super) struct FurtherReports {
    reports: BTreeMap<(OrderId, u8), FurtherReport>,
    /// Orders whose first report is not their last.
    expected: Vec<OrderId>,
    /// The reports with which the engine closed orders of dead gateways. No gateway pushed them.
    by_engine: BTreeMap<OrderId, FurtherReport>,
}

impl FurtherReports {
    pub fn report_mut(&mut self, id: OrderId, number: u8) -> &mut FurtherReport {
        self.reports.entry((id, number)).or_default()
    }

    /// Separates the reports with which the engine closed orders of dead gateways from the others.
    /// `is_unknown` returns whether an order was closed this way.
    pub fn split_off_engine_reports(&mut self, is_unknown: impl Fn(OrderId) -> bool) {
        let of_engine = |(id, number): &(OrderId, u8), report: &FurtherReport| {
            *number == ENGINE_REPORT && report.at(Point::GatewayDone).is_none() && is_unknown(*id)
        };
        let found = self.reports.extract_if(.., |key, report| of_engine(key, report));
        self.by_engine = found.map(|((id, _), report)| (id, report)).collect();
    }

    /// Returns the report with which the engine closed an order of a dead gateway.
    pub fn engine_report(&self, id: OrderId) -> Option<&FurtherReport> {
        self.by_engine.get(&id)
    }

    pub fn expect_more(&mut self, id: OrderId) {
        self.expected.push(id);
    }

    /// Removes reports that only an exchange stamped, for orders that their gateway may have
    /// answered itself. The gateway had closed the order or rejected the message.
    pub fn drop_unpushed(&mut self, may_answer: impl Fn(OrderId) -> bool) {
        self.reports.retain(|(id, _), report| {
            let is_unheard = report.exchange_done.is_some() && report.ticks.iter().all(Option::is_none);
            !is_unheard || !may_answer(*id)
        });
    }

    /// Returns the time at which the gateway pushed an order's last report (t5); `row` has the
    /// first report.
    pub fn last_pushed(&self, id: OrderId, row: &OrderRow) -> Option<u64> {
        self.last(id).map_or_else(|| row.at(Point::GatewayDone), |report| report.at(Point::GatewayDone))
    }

    /// Iterates over all reports after their orders' first ones, including those that only
    /// strategies stamped.
    pub fn iter(&self) -> impl Iterator<Item = (OrderId, u8, &FurtherReport)> {
        self.reports.iter().map(|((id, number), report)| (*id, *number, report))
    }

    pub fn count(&self) -> u64 {
        self.reports.values().filter(|report| !report.is_only_received()).count() as u64
    }

    /// Returns the last report of an order that the engine has stamped.
    fn last(&self, id: OrderId) -> Option<&FurtherReport> {
        let mut all = self.reports.range((id, 0)..=(id, u8::MAX)).map(|(_, report)| report);
        all.rfind(|report| !report.is_only_received())
    }

    fn is_followed(&self, id: OrderId, number: u8) -> bool {
        let next = number.checked_add(1).and_then(|next| self.reports.get(&(id, next)));
        next.is_some_and(|next| !next.is_only_received())
    }

    /// Checks each report after an order's first one: complete, in time order, exactly one is the
    /// last. Strategies without a trusted log are skipped. Reports that a dead strategy missed are
    /// not violations; in a run that broke off some may be in flight.
    pub fn check(&self, table: &OrderTable, context: &CheckContext, findings: &mut Findings) {
        let CheckContext { record, deaths, is_complete, .. } = *context;
        if is_complete {
            for id in self.expected.iter().filter(|id| !deaths.is_untrusted(id.strategy())) {
                if self.last(*id).is_none() && self.engine_report(*id).is_none() {
                    findings.add(None, ViolationKind::LastReport, || {
                        format!("{}: its one report is not the last", order_name(*id))
                    });
                }
            }
        }
        for (id, number, report) in self.iter().filter(|(id, ..)| !deaths.is_untrusted(id.strategy())) {
            let is_dead = deaths.incident(id.strategy(), id.epoch()).is_some();
            let mut accuse = |witness, kind, what: &str| {
                findings.add(witness, kind, || format!("{}: report {number} {what}", order_name(id)));
            };
            let strategy = Some(id.strategy());
            if report.is_only_received() {
                // The engine stamped no such report: only the strategy claims it.
                accuse(strategy, ViolationKind::MissingPoint, "has no t5");
                continue;
            }
            let mut broken = |kind, what| accuse(None, kind, what);
            let row = table.row(id);
            // Time of the previous report, and whether that was the last.
            let before = match number {
                1 => row.and_then(|row| Some((row.at(Point::GatewayDone)?, row.has_more()))),
                number => self
                    .reports
                    .get(&(id, number - 1))
                    .and_then(|report| Some((report.at(Point::GatewayDone)?, report.has_more))),
            };
            match (before, report.at(Point::GatewayDone)) {
                (Some((before, _)), Some(pushed)) if pushed < before => {
                    broken(ViolationKind::TimeOrder, "was pushed before the one before it");
                }
                (Some((_, false)), _) => broken(ViolationKind::LastReport, "follows the last one"),
                (None, Some(_)) => broken(ViolationKind::MissingPoint, "has no report before it"),
                _ => {}
            }
            let is_end = !self.is_followed(id, number);
            let is_closed = self.engine_report(id).is_some();
            if is_closed && report.at(Point::OrchRecvCompletion).is_some() && !report.has_more {
                broken(
                    ViolationKind::LastReport,
                    "is the last, and the engine closed its order all the same",
                );
            }
            if is_complete && is_end && report.has_more && !is_closed {
                broken(ViolationKind::LastReport, "is not the last, and none follows");
            }
            let was_given =
                report.at(Point::OrchReturn).is_some() || report.at(Point::StrategyRecv).is_some();
            let is_killed = |row: &OrderRow| {
                context.switches.has_cancelled(id, row, self.last_pushed(id, row), table.instrument(id))
            };
            if is_end && was_given && row.is_some_and(|row| row.has(Point::Cancelled) && !is_killed(row)) {
                let what = "cancels an order of the dead, yet it was given to its strategy";
                broken(ViolationKind::NotDead, what);
            }
            let is_owed =
                |point: &&Point| !is_dead || !matches!(point, Point::OrchReturn | Point::StrategyRecv);
            let is_due = |point: &&Point| point.is_stamped_with(record.plan.stamps) && is_owed(point);
            if is_closed && report.at(Point::OrchRecvCompletion).is_none() {
                // The gateway died with the report.
                if report.at(Point::OrchReturn).is_some() {
                    broken(ViolationKind::MissingPoint, "was returned, and never came");
                }
                continue;
            }
            let missing = REPORT_PATH.iter().filter(is_due).find(|point| report.at(**point).is_none());
            // Stamps of the strategy rest on its word, stamps of the engine do not.
            let whose = |is_engine_s| if is_engine_s { None } else { strategy };
            if let Some(point) = missing.filter(|_| is_complete) {
                let witness = whose(*point != Point::StrategyRecv);
                accuse(witness, ViolationKind::MissingPoint, &format!("has no {}", point.name()));
            }
            let is_sorted = |ticks: &[Option<u64>]| ticks.iter().flatten().is_sorted();
            if !is_sorted(&report.ticks) {
                let witness = whose(!is_sorted(&report.ticks[..REPORT_PATH.len() - 1]));
                accuse(witness, ViolationKind::TimeOrder, "has stamps that go back in time");
            }
        }
    }

    /// Checks each report with which the engine closed an order of a dead gateway. Both its stamps
    /// exist and are the last of the order.
    pub fn check_engine_reports(&self, table: &OrderTable, context: &CheckContext, findings: &mut Findings) {
        let CheckContext { record, deaths, is_complete, .. } = *context;
        let trusted = self.by_engine.iter().filter(|(id, _)| !deaths.is_untrusted(id.strategy()));
        for (id, report) in trusted {
            let is_dead = deaths.incident(id.strategy(), id.epoch()).is_some();
            let [returned, received] = [Point::OrchReturn, Point::StrategyRecv].map(|point| report.at(point));
            let before = table.row(*id).and_then(|row| row.at(Point::OrchReturn));
            let is_stamped = Point::OrchReturn.is_stamped_with(record.plan.stamps);
            let what = if is_complete && !is_dead && is_stamped && returned.is_none() {
                (None, ViolationKind::MissingPoint, "has no t7")
            } else if is_complete && !is_dead && received.is_none() {
                (Some(id.strategy()), ViolationKind::MissingPoint, "has no t8")
            } else if returned.zip(received).is_some_and(|(returned, received)| received < returned) {
                (Some(id.strategy()), ViolationKind::TimeOrder, "has stamps that go back in time")
            } else if before.zip(returned).is_some_and(|(before, returned)| returned < before) {
                (None, ViolationKind::TimeOrder, "was returned before the one before it")
            } else {
                continue;
            };
            findings
                .add(what.0, what.1, || format!("{}: the report that closed it {}", order_name(*id), what.2));
        }
    }

    /// Extends a run's span by the times from first to last report: an order is open until its last
    /// report.
    pub fn extend_span(&self, span: &mut StampSpan, table: &OrderTable, deaths: &Deaths) {
        let mut reports = self.iter().filter(|(id, ..)| !deaths.is_untrusted(id.strategy())).peekable();
        while let Some((id, _, report)) = reports.next() {
            let is_end = reports.peek().is_none_or(|(next, ..)| *next != id);
            let Some(received) = report.at(Point::StrategyRecv).filter(|_| is_end) else { continue };
            let first = table.row(id).and_then(|row| row.at(Point::StrategyRecv)).unwrap_or(received);
            span.last_received = span.last_received.max(received);
            span.open_ticks += u128::from(received.saturating_sub(first));
        }
        for (id, report) in self.by_engine.iter().filter(|(id, _)| !deaths.is_untrusted(id.strategy())) {
            let Some(received) = report.at(Point::StrategyRecv) else { continue };
            let row = table.row(*id);
            let from = row.and_then(|row| row.at(Point::StrategyRecv).or(row.at(Point::StrategySend)));
            let is_first = row.is_some_and(|row| !row.has(Point::StrategyRecv));
            span.received += u64::from(is_first);
            span.first_received = span.first_received.min(received);
            span.last_received = span.last_received.max(received);
            span.open_ticks += u128::from(received.saturating_sub(from.unwrap_or(received)));
        }
    }
}
