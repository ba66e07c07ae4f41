//! Reports behind an order's first: a venue may answer an order with several.
//!
//! The row of an order is its way to the first report. Each further one has a t5 to t8 of its own, under the order's id and the
//! report's number; orders with one report cost nothing here.

use super::deaths::Deaths;
use super::table::Table;
use super::violation::{Findings, ViolationKind, name_of};
use crate::record::{Outcome, RunRecord};
use protocol::flow::REPORT_PATH;
use protocol::stamps::Point;
use protocol::wire::OrderId;
use std::collections::BTreeMap;

/// One further report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chained {
    ticks: [Option<u64>; REPORT_PATH.len()],
    /// The gateway that pushed it and how many reports that had pushed before.
    pub(super) pushed: Option<(usize, u64)>,
}

impl Chained {
    /// The ticks of a point, if it was stamped.
    pub fn at(&self, point: Point) -> Option<u64> {
        let place = REPORT_PATH.iter().position(|other| *other == point)?;
        self.ticks[place]
    }

    /// Notes a stamp; `false` if there is one already, or reports have no such point.
    pub(super) fn stamp(&mut self, point: Point, value: u64) -> bool {
        match REPORT_PATH.iter().position(|other| *other == point) {
            Some(place) if self.ticks[place].is_none() => {
                self.ticks[place] = Some(value);
                true
            }
            _ => false,
        }
    }
}

/// All further reports, by order and number.
#[derive(Debug, Default)]
pub(super) struct Chains(BTreeMap<(OrderId, u8), Chained>);

impl Chains {
    /// The report of that number of an order.
    pub fn report(&mut self, id: OrderId, number: u8) -> &mut Chained {
        self.0.entry((id, number)).or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (OrderId, u8, &Chained)> {
        self.0.iter().map(|((id, number), report)| (*id, *number, report))
    }

    /// Looks at each report once: is it whole, in time, and behind the one before it? Only of those whose strategy's log proves
    /// something and who did not die; in a run that broke off some may be on their way.
    pub fn check(&self, table: &Table, record: &RunRecord, deaths: &Deaths, findings: &mut Findings) {
        let is_complete = record.outcome == Outcome::Complete;
        let is_due = |point: &&Point| point.is_taken(record.plan.stamps);
        for (id, number, report) in self.iter() {
            let strategy = id.strategy();
            if deaths.is_untrusted(strategy) || deaths.incident(strategy, id.epoch()).is_some() {
                continue;
            }
            let mut broken = |kind, what: String| {
                findings.add(None, kind, || format!("{}: report {number} {what}", name_of(id)));
            };
            let first = || table.row(id).and_then(|row| row.at(Point::GatewayDone));
            let before = match number {
                1 => first(),
                number => self.0.get(&(id, number - 1)).and_then(|report| report.at(Point::GatewayDone)),
            };
            match (before, report.at(Point::GatewayDone)) {
                (Some(before), Some(pushed)) if pushed < before => {
                    broken(ViolationKind::TimeOrder, "was pushed before the one before it".into());
                }
                (None, Some(_)) => broken(ViolationKind::MissingPoint, "has no report before it".into()),
                _ => {}
            }
            let missing = REPORT_PATH.iter().filter(is_due).find(|point| report.at(**point).is_none());
            if let Some(point) = missing.filter(|_| is_complete) {
                broken(ViolationKind::MissingPoint, format!("has no {}", point.name()));
            }
            let stamped: Vec<u64> = report.ticks.iter().flatten().copied().collect();
            if !stamped.is_sorted() {
                broken(ViolationKind::TimeOrder, "has stamps that go back in time".into());
            }
        }
    }
}
