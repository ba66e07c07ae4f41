//! Market data: the top-of-book versions that exchanges wrote, and the version that triggered each
//! order.
//!
//! The trigger of an order is its strategy's claim, which the exchange logged. It is compared with
//! the exchange's own log: a version that was never written, or written after the order was sent,
//! is a false claim.

use super::context::CheckContext;
use super::row::{OrderRow, bit};
use super::table::{OrderTable, Partition};
use super::violation::{Findings, ViolationKind, Violations, order_name};
use protocol::index::VenueIndex;
use protocol::plan::{Plan, Role};
use protocol::stamps::{Point, Record, TopOfBookWritten};
use std::collections::HashMap;

/// The top-of-book version that an order's strategy names as its trigger, and when the exchange
/// wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Version of the top of book of the order's instrument at its venue.
    pub version: u64,
    /// Time at which the exchange wrote the version, in ticks; `None` if it never wrote it.
    pub written: Option<u64>,
}

/// All top-of-book versions that a run's exchanges wrote.
#[derive(Debug)]
pub(super) struct TouchVersions {
    /// Gateways of each venue.
    credentials: u16,
    /// Times of the writes by venue and instrument, starting with version 1.
    written: HashMap<(u16, u16), Vec<u64>>,
    pub found: Violations,
}

impl TouchVersions {
    /// Creates an empty collection of the top-of-book versions that exchanges write in a run of the
    /// plan.
    pub fn new(plan: &Plan) -> Self {
        let credentials = plan.trading().credentials.max(1);
        Self { credentials, written: HashMap::new(), found: Violations::default() }
    }

    /// Adds the top-of-book version of a log record, and checks that it follows its predecessor.
    pub fn record(&mut self, record: &Record, plan: &Plan, thread: usize) {
        let Some(written) = TopOfBookWritten::from_record(record) else { return };
        let TopOfBookWritten { venue, instrument, version, ticks } = written;
        let trading = plan.trading();
        let is_there = trading.boards().any(|board| board == VenueIndex(venue))
            && usize::from(instrument) < trading.instrument_count()
            && plan.thread_of(Role::Exchange(VenueIndex(venue))) == Some(thread);
        let name = || format!("version {version} of instrument {instrument} at venue {venue}");
        if !is_there {
            self.found.add(ViolationKind::Misplaced, || format!("{}: its log is not that board's", name()));
            return;
        }
        let versions = self.written.entry((venue, instrument)).or_default();
        let last = versions.last().copied().unwrap_or(0);
        if version != versions.len() as u64 + 1 {
            self.found.add(ViolationKind::Touch, || format!("{}: after version {}", name(), versions.len()));
        } else if ticks < last {
            self.found.add(ViolationKind::Touch, || format!("{}: before the one in front of it", name()));
        } else {
            versions.push(ticks);
        }
    }

    /// Returns the number of top-of-book versions that exchanges wrote.
    pub fn count(&self) -> u64 {
        self.written.values().map(|versions| versions.len() as u64).sum()
    }

    /// Returns the top-of-book version that an order names as its trigger; `None` if it names none,
    /// or if no gateway received the order. The gateway determines the venue.
    pub fn trigger(&self, partition: &Partition, sequence: u64) -> Option<Trigger> {
        let version = partition.trigger(sequence)?;
        let venue = partition.rows.get(sequence as usize)?.pushed()?.0 as u16 / self.credentials;
        let versions = self.written.get(&(venue, partition.instrument(sequence)));
        let index = version.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let written = versions.zip(index).and_then(|(versions, index)| versions.get(index).copied());
        Some(Trigger { version, written })
    }

    /// Checks that each order's trigger, a version of a top of book, was written by the exchange
    /// before the order was sent.
    pub fn check(&self, table: &OrderTable, context: &CheckContext, findings: &mut Findings) {
        // The log of a dead exchange may lack its last writes.
        let is_whole = !context.has_failed && context.engine_missing & bit(Point::TopOfBook) == 0;
        let believed = |partition: &&Partition| {
            !partition.is_untrusted && !context.deaths.is_untrusted(partition.strategy)
        };
        for partition in table.partitions.iter().filter(believed) {
            for sequence in partition.triggered() {
                let Some(trigger) = self.trigger(partition, sequence) else { continue };
                let Some(row) = partition.rows.get(sequence as usize) else { continue };
                if let Some(what) = trigger_fault(trigger, row, is_whole) {
                    findings.add(Some(partition.strategy), ViolationKind::Trigger, || {
                        let version = trigger.version;
                        format!(
                            "{}: triggered by version {version}, {what}",
                            order_name(partition.id(sequence))
                        )
                    });
                }
            }
        }
    }
}

fn trigger_fault(trigger: Trigger, row: &OrderRow, is_whole: bool) -> Option<&'static str> {
    match (trigger.written, row.at(Point::StrategySend)) {
        (None, _) => is_whole.then_some("which was never written"),
        (Some(written), Some(sent)) if written > sent => Some("which was written after it was sent"),
        _ => None,
    }
}
