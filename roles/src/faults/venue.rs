//! Makes a venue slow, disconnected, mute or garbling: a wrapper that only faulty venues have.
//!
//! | fault | effect while it lasts |
//! |---|---|
//! | `slow` | each report comes [`SLOW_BY_NS`] later |
//! | `disconnect` | session down, orders cancelled (`venue-down`), reported on reconnect |
//! | `reject` | new orders are refused (`venue-refuses`) |
//! | `mute` | orders and cancels are accepted and nothing is reported |
//! | `garble` | reports are wrong, doubled or misnumbered; half are followed by the right one |
//!
//! Orders cancelled for a kill switch or a crash are reported as withdrawn, as by an exchange: the
//! gateway stamps them so however late they come.
//!
//! Errors are drawn from the gateway's index, so they repeat in each run. The session with such a
//! venue is a [`gateway::ValidatingSession`] one.

use gateway::{CancelSweep, Reports, ReportsFull, SessionCounts, Venue, VenueContext, VenueInfo};
use protocol::faults::Draws;
use protocol::index::VenueIndex;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use protocol::reject::Reject;
use protocol::session::WITHDRAWN;
use protocol::wire::{CancelScope, Order, OrderStatus, Report};
use std::collections::VecDeque;
use system::clock::Timebase;

/// Additional delay of a slow venue's reports, in nanoseconds.
pub const SLOW_BY_NS: u64 = 100_000_000;
const SWEEP_BATCH: usize = 64;

/// The period of a venue's fault, in nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FaultWindow {
    kind: FaultKind,
    from_ns: u64,
    until_ns: u64,
}

/// A venue into which faults are injected, such as delays or lost reports.
pub struct FaultyVenue<V> {
    venue: V,
    windows: Vec<FaultWindow>,
    state: FaultState,
    /// When the next fault begins or ends, in ticks.
    changes_at: u64,
    /// The cancellation of a disconnect.
    sweep: Option<CancelSweep>,
}

/// The state that the reports of a faulty venue need.
struct FaultState {
    kind: Option<FaultKind>,
    /// Delayed reports with their due times in ticks, in order.
    late: VecDeque<(u64, Report)>,
    /// Messages sent while the session was down, with their numbers.
    missed: VecDeque<(u64, Report)>,
    is_resumed: bool,
    capacity: usize,
    /// Number of the last message.
    sent: u64,
    /// A cancellation was requested, because of a kill switch or a crash.
    has_cancelled: bool,
    draws: Draws,
}

impl FaultState {
    fn has_capacity(&self) -> bool {
        self.late.len() + self.missed.len() < self.capacity
    }
}

impl<V: Venue> FaultyVenue<V> {
    /// Wraps a gateway's venue with the faults of the plan.
    pub fn new(venue: V, context: &VenueContext, faults: &[Fault]) -> Self {
        let window = |fault: &Fault| match (fault.target, fault.when) {
            (FaultTarget::Venue(venue), FaultTime::At { ns }) if venue == VenueIndex(context.venue) => {
                Some(FaultWindow {
                    kind: fault.kind,
                    from_ns: ns,
                    until_ns: fault.lasts_ns.map_or(u64::MAX, |lasts| ns.saturating_add(lasts)),
                })
            }
            _ => None,
        };
        let capacity = context.max_held.saturating_mul(V::INFO.reports_per_order.into()).max(64);
        let state = FaultState {
            kind: None,
            late: VecDeque::with_capacity(capacity),
            missed: VecDeque::with_capacity(capacity),
            is_resumed: true,
            capacity,
            sent: 0,
            has_cancelled: false,
            draws: Draws::new(context.gateway.into(), Draws::GARBLE),
        };
        Self { venue, windows: faults.iter().filter_map(window).collect(), state, changes_at: 0, sweep: None }
    }

    fn update(&mut self, now: u64, time: Timebase) {
        if now < self.changes_at {
            return;
        }
        let bounds = self.windows.iter().flat_map(|window| [window.from_ns, window.until_ns]);
        let next_end = bounds.filter(|ns| *ns != u64::MAX).map(|ns| time.at(ns)).filter(|end| *end > now);
        self.changes_at = next_end.min().unwrap_or(u64::MAX);
        let is_on = |window: &&FaultWindow| {
            time.at(window.from_ns) <= now && (window.until_ns == u64::MAX || now < time.at(window.until_ns))
        };
        let kind = self.windows.iter().find(is_on).map(|window| window.kind);
        if kind == Some(FaultKind::Disconnect) && self.state.kind != kind {
            self.state.is_resumed = false;
            self.sweep =
                Some(CancelSweep { scope: CancelScope::default(), cursor: 0, budget: SWEEP_BATCH, now });
        }
        self.state.kind = kind;
    }
}

/// The [`Reports`] that the venue gets: applies the active fault.
struct FaultyReports<'a, R> {
    reports: &'a mut R,
    state: &'a mut FaultState,
    now: u64,
    /// The reason of current cancellations; `None`: requested by the order's owner, or earlier.
    cancels: Option<u8>,
}

impl<'a, R: Reports> FaultyReports<'a, R> {
    const fn new(reports: &'a mut R, state: &'a mut FaultState, now: u64) -> Self {
        Self { reports, state, now, cancels: None }
    }

    fn send_now(&mut self, report: Report) -> Result<(), ReportsFull> {
        self.send_as(self.state.sent + 1, report)
    }

    fn send_as(&mut self, number: u64, report: Report) -> Result<(), ReportsFull> {
        // Nothing overtakes missed messages.
        if !self.state.is_resumed || !self.state.missed.is_empty() {
            self.state.missed.push_back((number, report));
        } else {
            self.reports.send_numbered(number, report)?;
        }
        self.state.sent = number;
        Ok(())
    }

    fn cancel_reason(&self, report: &Report) -> u8 {
        let is_down = self.state.kind == Some(FaultKind::Disconnect);
        // An exchange reports each order of a mass cancel as withdrawn, also those of a disconnect.
        let is_of_disconnect = is_down || (report.reason == WITHDRAWN && !self.state.has_cancelled);
        let otherwise = if is_of_disconnect { Reject::VenueDown.code() } else { report.reason };
        self.cancels.unwrap_or(otherwise)
    }

    /// Sends a wrong report, and in half of the cases the right one after it.
    fn garble(&mut self, report: Report) -> Result<(), ReportsFull> {
        let mut wrong = report;
        let mut number = self.state.sent + 1;
        match self.state.draws.below(8) {
            0 => {
                let sequence = report.id.sequence() ^ (1 << 30);
                wrong.id = report.id.with_sequence(sequence);
            }
            1 => wrong.filled = report.filled.saturating_mul(2).saturating_add(1),
            2 => wrong.status = OrderStatus::Rejected,
            3 => wrong.venue ^= 1,
            4 => wrong.side = report.side.opposite(),
            5 => wrong.number = report.number.wrapping_add(5) % 100,
            // Sent twice.
            6 => self.send_now(report)?,
            // Numbers are skipped.
            _ => number += 3,
        }
        self.send_as(number, wrong)?;
        // If the first report was right, this is a repeat, which the session detects.
        if self.state.draws.below(2) == 0 { self.send_now(report) } else { Ok(()) }
    }
}

impl<R: Reports> Reports for FaultyReports<'_, R> {
    fn has_capacity(&self) -> bool {
        self.reports.has_capacity() && self.state.has_capacity()
    }

    fn send(&mut self, mut report: Report) -> Result<(), ReportsFull> {
        if !self.has_capacity() {
            return Err(ReportsFull);
        }
        if report.status == OrderStatus::Cancelled {
            report.reason = self.cancel_reason(&report);
        }
        match self.state.kind {
            Some(FaultKind::Mute) => Ok(()),
            Some(FaultKind::Garble) => self.garble(report),
            Some(FaultKind::Slow) => {
                let due = self.now.saturating_add(self.reports.time().ticks(SLOW_BY_NS));
                self.state.late.push_back((due, report));
                Ok(())
            }
            // After the delayed reports.
            _ if !self.state.late.is_empty() => {
                let due = self.state.late.back().map_or(self.now, |(due, _)| *due);
                self.state.late.push_back((due, report));
                Ok(())
            }
            _ => self.send_now(report),
        }
    }

    fn skip_report(&mut self) {
        self.reports.skip_report();
    }

    fn time(&self) -> Timebase {
        self.reports.time()
    }
}

impl<V: Venue> Venue for FaultyVenue<V> {
    const INFO: VenueInfo = VenueInfo {
        // One more: a refusal.
        immediate_reports: V::INFO.immediate_reports + 1,
        reports_release_time: false,
        ..V::INFO
    };

    fn has_capacity(&self) -> bool {
        let capacity = usize::from(Self::INFO.immediate_reports);
        self.venue.has_capacity()
            && self.state.late.len() + self.state.missed.len() + capacity <= self.state.capacity
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        match self.state.kind {
            // The gateway sends nothing while the session is down.
            Some(FaultKind::Mute | FaultKind::Disconnect) => return None,
            Some(FaultKind::Reject) => {}
            _ => {
                let mut reports = FaultyReports::new(reports, &mut self.state, now);
                self.venue.accept(order, now, &mut reports);
                return None;
            }
        }
        let refusal = Report {
            status: OrderStatus::Refused,
            reason: Reject::VenueRefuses.code(),
            filled: 0,
            cumulative: 0,
            ..gateway::in_full(order)
        };
        let was_sent = FaultyReports::new(reports, &mut self.state, now).send_now(refusal);
        debug_assert!(was_sent.is_ok(), "there is room for what is said at once");
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        self.update(now, reports.time());
        while self.state.is_resumed && reports.has_capacity() {
            let Some((number, report)) = self.state.missed.pop_front() else { break };
            if reports.send_numbered(number, report).is_err() {
                debug_assert!(false, "asked before");
            }
        }
        while self.state.late.front().is_some_and(|(due, _)| *due <= now) && reports.has_capacity() {
            let Some((_, report)) = self.state.late.pop_front() else { break };
            let mut saying = FaultyReports::new(&mut *reports, &mut self.state, now);
            if saying.state.kind != Some(FaultKind::Mute) && saying.send_now(report).is_err() {
                debug_assert!(false, "asked before");
            }
        }
        if let Some(mut sweep) = self.sweep.take() {
            (sweep.budget, sweep.now) = (SWEEP_BATCH, now);
            let cancels = Some(Reject::VenueDown.code());
            let mut saying = FaultyReports { reports: &mut *reports, state: &mut self.state, now, cancels };
            if !self.venue.try_cancel_all(&mut sweep, &mut saying) {
                self.sweep = Some(sweep);
            }
        }
        // A venue is only called while a report fits.
        let has_capacity = reports.has_capacity() && self.state.has_capacity();
        if has_capacity && self.venue.next_deadline() <= now {
            self.venue.advance(now, &mut FaultyReports::new(reports, &mut self.state, now));
        }
    }

    fn next_deadline(&self) -> u64 {
        if self.sweep.is_some() || (self.state.is_resumed && !self.state.missed.is_empty()) {
            return 0;
        }
        let late = self.state.late.front().map_or(u64::MAX, |(due, _)| *due);
        self.venue.next_deadline().min(late).min(self.changes_at)
    }

    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, reports: &mut impl Reports) -> bool {
        self.state.has_cancelled = true;
        let (now, cancels) = (sweep.now, Some(WITHDRAWN));
        self.venue.try_cancel_all(sweep, &mut FaultyReports { reports, state: &mut self.state, now, cancels })
    }

    fn is_connected(&self) -> bool {
        self.state.kind != Some(FaultKind::Disconnect)
    }

    fn resume(&mut self, next: u64) {
        self.state.missed.retain(|(number, _)| *number >= next);
        self.state.is_resumed = true;
    }

    fn faults(&self) -> u64 {
        self.venue.faults()
    }

    fn session(&self) -> SessionCounts {
        self.venue.session()
    }
}
