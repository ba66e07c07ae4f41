//! Checks the reports of an order after its first one.

use super::context::CheckContext;
use super::further_reports::FurtherReports;
use super::row::OrderRow;
use super::table::OrderTable;
use super::violation::{Findings, ViolationKind, order_name};
use protocol::flow::REPORT_PATH;
use protocol::stamps::Point;

impl FurtherReports {
    /// Checks that each order's further reports are complete and in time order, and that exactly
    /// one report is its last. Strategies without a trusted log are skipped. Reports that a dead
    /// strategy missed are not violations; in a run that broke off some may be in flight.
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
            let mut accuse = |sole_source, kind, description: &str| {
                findings
                    .add(sole_source, kind, || format!("{}: report {number} {description}", order_name(id)));
            };
            let strategy = Some(id.strategy());
            if report.is_only_received() {
                // The engine stamped no such report: only the strategy claims it.
                accuse(strategy, ViolationKind::MissingPoint, "has no t5");
                continue;
            }
            let mut broken = |kind, description| accuse(None, kind, description);
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
                let (last, instrument) = (self.last_pushed(id, row), table.instrument(id));
                context.switches.has_cancelled(id, row, last, instrument, context.record.plan.trading())
            };
            if is_end && was_given && row.is_some_and(|row| row.has(Point::Cancelled) && !is_killed(row)) {
                let description = "cancels an order of the dead, yet it was given to its strategy";
                broken(ViolationKind::NotDead, description);
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
            let claimant = |is_engine_s| if is_engine_s { None } else { strategy };
            if let Some(point) = missing.filter(|_| is_complete) {
                let sole_source = claimant(*point != Point::StrategyRecv);
                accuse(sole_source, ViolationKind::MissingPoint, &format!("has no {}", point.name()));
            }
            let is_sorted = |ticks: &[Option<u64>]| ticks.iter().flatten().is_sorted();
            if !is_sorted(&report.ticks) {
                let sole_source = claimant(!is_sorted(&report.ticks[..REPORT_PATH.len() - 1]));
                accuse(sole_source, ViolationKind::TimeOrder, "has stamps that go back in time");
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
            let description = if is_complete && !is_dead && is_stamped && returned.is_none() {
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
            findings.add(description.0, description.1, || {
                format!("{}: the report that closed it {}", order_name(*id), description.2)
            });
        }
    }
}
