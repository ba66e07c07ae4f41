//! Checks an exchange's stamps (when it received each order and produced each report) against those
//! of orders and reports.
//!
//! An order at an exchange has both stamps for its first report, in order and between t4 and t5, by
//! the exchange of its venue only. Each further report has the second stamp before its t5. The
//! three exchange stages of an order therefore sum to its venue_service.

use super::context::CheckContext;
use super::row::{ExchangeStamps, OrderRow, bit};
use super::table::{OrderTable, Partition};
use super::violation::{Findings, ViolationKind, order_name};
use protocol::index::GatewayIndex;
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use record::logfile::file_name;

impl CheckContext<'_> {
    /// Returns the thread of the order's exchange; `None` if its venue is not an exchange or no
    /// gateway had it.
    fn exchange(&self, row: &OrderRow) -> Option<usize> {
        let plan = &self.record.plan;
        let venue = plan.trading().venue_of(GatewayIndex(row.pushed()?.0 as u16));
        plan.trading().is_book(venue).then(|| plan.thread_of(Role::Exchange(venue)))?
    }

    fn is_required(&self, point: Point) -> bool {
        !self.has_failed && self.engine_missing & bit(point) == 0
    }

    /// Returns `true` if the gateway of an order validates its exchange and may have answered for
    /// it, so that a stamp may be missing or too late.
    fn is_exempt(&self, row: &OrderRow) -> bool {
        let plan = &self.record.plan;
        self.has_failed
            || row.pushed().is_some_and(|(gateway, _)| plan.validates_venue(GatewayIndex(gateway as u16)))
    }
}

/// Checks the exchange's stamps of every order that was or should have been at an exchange. An
/// order with a violation counts in no figure.
pub(super) fn check(table: &mut OrderTable, context: &CheckContext, findings: &mut Findings) {
    let plan = &context.record.plan;
    let has_book = plan.trading().books().next().is_some();
    for partition in table.partitions.iter_mut().filter(|partition| !partition.is_untrusted) {
        if has_book || partition.has_exchange() {
            check_partition(partition, context, findings);
        }
    }
    let trusted = context.chains.iter().filter(|(id, ..)| !context.deaths.is_untrusted(id.strategy()));
    for (id, number, report) in trusted {
        let row = table.row(id);
        let exchange = row.and_then(|row| context.exchange(row));
        let is_exempt = context.has_failed || row.is_some_and(|row| context.is_exempt(row));
        let description = match (report.exchange_done, report.at(Point::GatewayDone)) {
            (Some((_, thread)), _) if exchange != Some(thread as usize) => {
                (ViolationKind::Misplaced, foreign_stamp(plan, thread as usize))
            }
            (None, Some(_))
                if exchange.is_some() && !is_exempt && context.is_required(Point::ExchangeDone) =>
            {
                (ViolationKind::MissingPoint, format!("has no {}", Point::ExchangeDone.name()))
            }
            (Some((given, _)), Some(pushed)) if pushed < given && !is_exempt => {
                (ViolationKind::TimeOrder, "has a t5 before the exchange gave it".into())
            }
            (Some((given, _)), _)
                if table.at_exchange(id).received().is_some_and(|received| given < received) =>
            {
                (ViolationKind::TimeOrder, "was given before the exchange had the order".into())
            }
            _ => continue,
        };
        findings
            .add(None, description.0, || format!("{}: report {number} {}", order_name(id), description.1));
    }
}

fn check_partition(partition: &mut Partition, context: &CheckContext, findings: &mut Findings) {
    for sequence in 0..partition.rows.len() as u64 {
        let (at, row) = (partition.at_exchange(sequence), &mut partition.rows[sequence as usize]);
        if let Some((kind, description)) = fault(row, at, context) {
            row.clear_measured();
            let id = partition.id(sequence);
            findings.add(None, kind, || format!("{}: {description}", order_name(id)));
        }
    }
}

fn fault(row: &OrderRow, at: ExchangeStamps, context: &CheckContext) -> Option<(ViolationKind, String)> {
    let exchange = context.exchange(row);
    if at.is_empty() && (exchange.is_none() || !row.has(Point::GatewayDone)) {
        return None;
    }
    if !at.is_empty() && exchange != Some(at.thread()) {
        let is_lost = !row.has(Point::GatewayRecv) && !context.is_required(Point::GatewayRecv);
        return (!is_lost)
            .then(|| (ViolationKind::Misplaced, foreign_stamp(&context.record.plan, at.thread())));
    }
    let was_answered = row.has(Point::GatewayDone);
    let is_exempt = context.is_exempt(row);
    let is_expected = |point| !is_exempt && context.is_required(point);
    let missing = |point| Some((ViolationKind::MissingPoint, format!("has no {}", Point::name(point))));
    if at.received().is_none() && (was_answered || at.done().is_some()) && is_expected(Point::ExchangeRecv) {
        return missing(Point::ExchangeRecv);
    }
    if at.done().is_none() && was_answered && is_expected(Point::ExchangeDone) {
        return missing(Point::ExchangeDone);
    }
    let path = [
        (Point::GatewayRecv, row.at(Point::GatewayRecv)),
        (Point::ExchangeRecv, at.received()),
        (Point::ExchangeDone, at.done()),
        (Point::GatewayDone, row.at(Point::GatewayDone).filter(|_| !is_exempt)),
    ];
    let mut before: Option<(Point, u64)> = None;
    for (point, ticks) in path.into_iter().filter_map(|(point, ticks)| Some((point, ticks?))) {
        if let Some((earlier, since)) = before
            && ticks < since
        {
            let description = format!("{} before {}", point.name(), earlier.name());
            return Some((ViolationKind::TimeOrder, description));
        }
        before = Some((point, ticks));
    }
    None
}

/// Describes stamps of an exchange that the order was not at.
fn foreign_stamp(plan: &Plan, thread: usize) -> String {
    let file = plan.threads.get(thread).map_or_else(String::new, |thread| file_name(&thread.name));
    format!("is in {file}, and no gateway of that exchange had it")
}
