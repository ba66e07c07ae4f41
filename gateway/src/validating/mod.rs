//! A session that validates an untrusted venue: it checks each report, and closes orders about
//! which the venue stays silent. Only runs that request it have one.
//!
//! | venue | session |
//! |---|---|
//! | sends an invalid report (`OpenOrder::try_apply`) | counts a venue error, drops it |
//! | skips message numbers: messages were lost | counts it, checks the report as usual |
//! | repeats a message number | counts and drops it |
//! | sends a number beyond all it can have sent | counts a protocol error, drops it |
//! | is silent for `silence_ns` (below) | closes the order (`venue-silent`), counts it as stuck |
//! | disconnects | refuses new orders (`venue-down`); open ones wait, or are closed as such |
//! | reconnects | requests the next message number; the venue resends what was missed |
//!
//! Silent means: no report about the order; or no report at all, if the venue has acknowledged the
//! order and has received no request since to cancel it. So each order has exactly one last report
//! whatever its venue does. A report that comes after its order was closed as stuck is a venue
//! error.

mod check;

use check::OpenOrder;
use protocol::reject::Reject;
use protocol::wire::{CancelScope, MAX_STRATEGIES, Operation, Order, OrderId, OrderStatus, Report};
use std::collections::{HashMap, VecDeque};
use system::clock::Timebase;

use crate::venue::{CancelSweep, Reports, ReportsFull, SessionCounts, Venue, VenueInfo};

/// The limits that a validating session enforces on its venue: maximum silence about an order, and
/// maximum open orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// Maximum silence of the venue about an open order, in nanoseconds.
    pub silence_ns: u64,
    /// Maximum number of orders open at once.
    pub max_held: usize,
}

/// A wrapper for a venue that is not trusted, which checks each of the venue's reports before the
/// gateway receives it.
pub struct ValidatingSession<V> {
    venue: V,
    state: SessionState,
    /// Silence deadlines of orders, in ticks, ascending. A closed order stays until its deadline.
    watched: VecDeque<(u64, OrderId)>,
    is_up: bool,
}

struct SessionState {
    rules: ValidationRules,
    open: HashMap<OrderId, OpenOrder>,
    /// When the last valid report came, in ticks.
    last_heard: u64,
    counts: SessionCounts,
    impossible_numbers: u64,
    /// Scopes whose cancellation was requested, each once, with the last time in ticks.
    cancels: VecDeque<(CancelScope, u64)>,
}

/// Maximum number of scopes remembered; beyond it the oldest is dropped.
const MAX_CANCEL_SCOPES: usize = MAX_STRATEGIES;

impl SessionState {
    /// Records a message number. Returns `false` if its report must be dropped: a repeat or an
    /// impossible number.
    fn try_accept_number(&mut self, number: u64) -> bool {
        let expected = self.next_number();
        // Each message has a bounded number of reports, so no more than that can be lost.
        let max_lost = self.counts.sent.saturating_mul(protocol::wire::MAX_REPORTS as u64);
        if number.saturating_sub(expected) > max_lost {
            self.impossible_numbers += 1;
            return false;
        }
        self.counts.errors += u64::from(number != expected);
        self.counts.received = self.counts.received.max(number);
        number >= expected
    }

    const fn next_number(&self) -> u64 {
        self.counts.received.saturating_add(1)
    }

    /// Returns when the silence about an order began, see the module. An acknowledged order may
    /// rest for long, so any valid report counts for it.
    fn last_activity(&self, open: &OpenOrder) -> u64 {
        let cancel =
            self.cancels.iter().filter(|cancel| open.is_covered_by(**cancel)).map(|(_, at)| *at).max();
        match cancel {
            Some(cancel) => open.last_heard.max(cancel),
            None if open.is_acknowledged() => open.last_heard.max(self.last_heard),
            None => open.last_heard,
        }
    }

    fn record_cancel(&mut self, scope: CancelScope, now: u64) {
        if let Some(cancel) = self.cancels.iter_mut().find(|(recorded, _)| *recorded == scope) {
            cancel.1 = now;
            return;
        }
        if self.cancels.len() == MAX_CANCEL_SCOPES {
            self.cancels.pop_front();
        }
        self.cancels.push_back((scope, now));
    }
}

impl<V: Venue> ValidatingSession<V> {
    /// Creates a session that checks a venue's reports, with all its memory.
    pub fn new(venue: V, rules: ValidationRules) -> Self {
        // Twice: a table that is at most half full rehashes in place.
        let open = HashMap::with_capacity(2 * rules.max_held.max(8));
        Self {
            venue,
            state: SessionState {
                rules,
                open,
                last_heard: 0,
                counts: SessionCounts::default(),
                impossible_numbers: 0,
                cancels: VecDeque::with_capacity(MAX_CANCEL_SCOPES),
            },
            watched: VecDeque::with_capacity(2 * rules.max_held.max(8)),
            is_up: true,
        }
    }

    fn update_connection(&mut self) {
        let is_up = self.venue.is_connected();
        match (self.is_up, is_up) {
            (true, false) => self.state.counts.disconnects += 1,
            (false, true) => self.venue.resume(self.state.next_number()),
            _ => {}
        }
        self.is_up = is_up;
    }

    fn watch(&mut self, due: u64, id: OrderId) {
        if self.watched.len() == self.watched.capacity() {
            let open = &self.state.open;
            self.watched.retain(|(_, id)| open.contains_key(id));
        }
        self.watched.push_back((due, id));
    }

    #[cold]
    fn close_silent(&mut self, now: u64, reports: &mut impl Reports) {
        let silence = reports.time().ticks(self.state.rules.silence_ns);
        while let Some((due, id)) = self.watched.front().copied().filter(|(due, _)| *due <= now) {
            let Some(open) = self.state.open.get(&id) else {
                self.watched.pop_front();
                continue;
            };
            let new_deadline = self.state.last_activity(open).saturating_add(silence);
            if new_deadline > due.max(now) {
                self.watched.pop_front();
                self.watch(new_deadline, id);
                continue;
            }
            let reason = if self.is_up { Reject::VenueSilent } else { Reject::VenueDown };
            if reports.send(open.closing_report(id, OrderStatus::Expired, reason)).is_err() {
                return;
            }
            self.watched.pop_front();
            self.state.open.remove(&id);
            self.state.counts.stuck += 1;
        }
    }
}

/// The [`Reports`] that the venue gets: validates each report before passing it on.
struct ReportValidator<'a, R> {
    reports: &'a mut R,
    state: &'a mut SessionState,
    now: u64,
}

impl<R: Reports> ReportValidator<'_, R> {
    fn validate(&mut self, report: Report) -> Result<(), ReportsFull> {
        let Some(open) = self.state.open.get_mut(&report.id) else {
            self.state.counts.errors += 1;
            return Ok(());
        };
        if !open.try_apply(&report, LAST_NUMBER) {
            self.state.counts.errors += 1;
            return Ok(());
        }
        self.reports.send(report)?;
        open.last_heard = self.now;
        self.state.last_heard = self.state.last_heard.max(self.now);
        if report.is_last {
            self.state.counts.refused += u64::from(report.status == OrderStatus::Refused);
            self.state.open.remove(&report.id);
        }
        Ok(())
    }
}

/// The last report number that the wire format allows; the venue's own limit is checked later.
const LAST_NUMBER: u8 = (protocol::wire::MAX_REPORTS - 1) as u8;

impl<R: Reports> Reports for ReportValidator<'_, R> {
    fn has_capacity(&self) -> bool {
        self.reports.has_capacity()
    }

    fn send(&mut self, report: Report) -> Result<(), ReportsFull> {
        self.send_numbered(self.state.next_number(), report)
    }

    fn send_numbered(&mut self, number: u64, report: Report) -> Result<(), ReportsFull> {
        if !self.reports.has_capacity() {
            return Err(ReportsFull);
        }
        if self.state.try_accept_number(number) { self.validate(report) } else { Ok(()) }
    }

    fn skip_report(&mut self) {
        self.reports.skip_report();
    }

    fn time(&self) -> Timebase {
        self.reports.time()
    }
}

impl<V: Venue> Venue for ValidatingSession<V> {
    const INFO: VenueInfo = VenueInfo {
        // One more: a rejection while the venue is disconnected.
        immediate_reports: V::INFO.immediate_reports + 1,
        reports_release_time: false,
        ..V::INFO
    };

    fn has_capacity(&self) -> bool {
        self.state.open.len() < self.state.rules.max_held && self.venue.has_capacity()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let time = reports.time();
        let open = OpenOrder::new(order, now);
        if !self.is_up {
            self.state.counts.refused += 1;
            let refusal = open.closing_report(order.id, OrderStatus::Refused, Reject::VenueDown);
            let sent = reports.send(refusal);
            debug_assert!(sent.is_ok(), "there is space for an immediate report");
            return None;
        }
        self.state.counts.sent += 1;
        if order.request.operation == Operation::Replace {
            let target = order.id.with_sequence(order.request.target);
            if let Some(target) = self.state.open.get_mut(&target) {
                target.count_replace();
            }
        }
        self.state.open.insert(order.id, open);
        let silence = time.ticks(self.state.rules.silence_ns);
        self.watch(now.saturating_add(silence), order.id);
        let mut validator = ReportValidator { reports, state: &mut self.state, now };
        let _ = self.venue.accept(order, now, &mut validator);
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        if self.venue.next_deadline() <= now {
            self.venue.advance(now, &mut ReportValidator { reports, state: &mut self.state, now });
            self.update_connection();
        }
        if self.watched.front().is_some_and(|(due, _)| *due <= now) {
            self.close_silent(now, reports);
        }
    }

    fn next_deadline(&self) -> u64 {
        let watched = self.watched.front().map_or(u64::MAX, |(due, _)| *due);
        self.venue.next_deadline().min(watched)
    }

    fn prefetch_hot(&self) {
        self.venue.prefetch_hot();
    }

    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, reports: &mut impl Reports) -> bool {
        let now = sweep.now;
        self.state.record_cancel(sweep.scope, now);
        self.venue.try_cancel_all(sweep, &mut ReportValidator { reports, state: &mut self.state, now })
    }

    fn faults(&self) -> u64 {
        self.venue.faults() + self.state.impossible_numbers
    }

    fn session(&self) -> SessionCounts {
        self.state.counts
    }
}

#[cfg(test)]
mod tests;
