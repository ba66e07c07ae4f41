//! The reports of an order after its first one (called further reports).
//!
//! The row of an order is its path to the first report. Each further report has its own t5 to t8,
//! under the order's id and the report's number. Orders with one report need no memory here.

use super::deaths::Deaths;
use super::orders::StampSpan;
use super::row::OrderRow;
use super::table::OrderTable;
use protocol::flow::REPORT_PATH;
use protocol::stamps::Point;
use protocol::wire::{ENGINE_REPORT, OrderId};
use std::collections::BTreeMap;

/// The stamps of a further report on an order, which is any report after the order's first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherReport {
    pub(super) ticks: [Option<u64>; REPORT_PATH.len()],
    /// Gateway that pushed the report, and the number of reports that the gateway had pushed
    /// before.
    pub(super) pushed: Option<(usize, u64)>,
    /// Time at which the venue's exchange produced the report, in ticks, and the thread that
    /// stamped it.
    pub(super) exchange_done: Option<(u64, u32)>,
    pub(super) has_more: bool,
}

impl FurtherReport {
    /// Returns the time at which this report passed a point of its path, in ticks; `None` without a
    /// stamp.
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
    pub(super) fn is_only_received(&self) -> bool {
        let (received, engine) = self.ticks.split_last().expect("the path has stamps");
        self.exchange_done.is_none() && received.is_some() && engine.iter().all(Option::is_none)
    }
}

/// All reports of a run after their orders' first ones, by order and report number.
#[derive(Debug, Default)]
pub(super) struct FurtherReports {
    pub(super) reports: BTreeMap<(OrderId, u8), FurtherReport>,
    /// Orders whose first report is not their last.
    pub(super) expected: Vec<OrderId>,
    /// The reports with which the engine closed orders of dead gateways. No gateway pushed them.
    pub(super) by_engine: BTreeMap<OrderId, FurtherReport>,
}

impl FurtherReports {
    /// Returns, for writing, the stamps of the report with this number among an order's reports;
    /// adds an entry without stamps if there is none.
    pub fn report_mut(&mut self, id: OrderId, number: u8) -> &mut FurtherReport {
        self.reports.entry((id, number)).or_default()
    }

    /// Separates the reports with which the engine closed orders of dead gateways from the others.
    /// `is_unknown` returns whether an order was closed this way.
    pub fn split_off_engine_reports(&mut self, is_unknown: impl Fn(OrderId) -> bool) {
        let of_engine = |(id, number): &(OrderId, u8), report: &FurtherReport| {
            *number == ENGINE_REPORT && report.at(Point::GatewayDone).is_none() && is_unknown(*id)
        };
        let engine_reports = self.reports.extract_if(.., |key, report| of_engine(key, report));
        self.by_engine = engine_reports.map(|((id, _), report)| (id, report)).collect();
    }

    /// Returns the report with which the engine closed an order whose gateway is dead.
    pub fn engine_report(&self, id: OrderId) -> Option<&FurtherReport> {
        self.by_engine.get(&id)
    }

    /// Records that more reports follow an order's first one.
    pub fn expect_more(&mut self, id: OrderId) {
        self.expected.push(id);
    }

    /// Removes reports that an exchange stamped and no gateway pushed, of orders that the gateway
    /// may have answered itself (`may_answer`). The gateway had closed the order or rejected the
    /// message.
    pub fn drop_unpushed(&mut self, may_answer: impl Fn(OrderId) -> bool) {
        self.reports.retain(|(id, _), report| {
            let is_unheard = report.exchange_done.is_some() && report.ticks.iter().all(Option::is_none);
            !is_unheard || !may_answer(*id)
        });
    }

    /// Returns the time t5, in ticks, at which the gateway pushed an order's last report; `row`,
    /// the order's row, has the first report's stamps. `None` without a stamp.
    pub fn last_pushed(&self, id: OrderId, row: &OrderRow) -> Option<u64> {
        self.last(id).map_or_else(|| row.at(Point::GatewayDone), |report| report.at(Point::GatewayDone))
    }

    /// Iterates over all reports but each order's first, with the order's id and the report's
    /// number. Includes those that only strategies stamped.
    pub fn iter(&self) -> impl Iterator<Item = (OrderId, u8, &FurtherReport)> {
        self.reports.iter().map(|((id, number), report)| (*id, *number, report))
    }

    /// Returns the number of further reports of all orders, without those that only strategies
    /// stamped.
    pub fn count(&self) -> u64 {
        self.reports.values().filter(|report| !report.is_only_received()).count() as u64
    }

    /// Returns the last report of an order that the engine has stamped.
    pub(super) fn last(&self, id: OrderId) -> Option<&FurtherReport> {
        let mut all = self.reports.range((id, 0)..=(id, u8::MAX)).map(|(_, report)| report);
        all.rfind(|report| !report.is_only_received())
    }

    pub(super) fn is_followed(&self, id: OrderId, number: u8) -> bool {
        let next = number.checked_add(1).and_then(|next| self.reports.get(&(id, next)));
        next.is_some_and(|next| !next.is_only_received())
    }

    /// Extends a run's span (first and last stamps, total open time) to the last report of each
    /// order, since an order is open until then.
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
