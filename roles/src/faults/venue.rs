//! Faults of a venue, as a wrapper that only faulty venues have.
//!
//! | fault | what the venue does while it lasts |
//! |---|---|
//! | `slow` | each of its reports comes [`SLOW_BY_NS`] later |
//! | `disconnect` | its session is down: it cancels what is open there (`venue-down`), and says so when the session is up again |
//! | `reject` | it refuses what comes (`venue-refuses`) |
//! | `mute` | it takes what comes, also what it is to cancel, and says nothing, nor about what is due meanwhile |
//! | `garble` | each of its reports is wrong, or comes twice, or with a wrong number; of half of them the right one follows |
//!
//! What it cancels for a kill switch or a death it calls withdrawn, as an exchange does: the
//! gateway stamps it so however late it comes.
//!
//! What it says wrong is drawn from the gateway's index: the same in each run. The gateway of such
//! a venue is a [`gateway::Checked`] one.

use super::draws::Draws;
use gateway::{NoRoom, Reports, SessionCounts, Sweep, Venue, VenueContext, VenueInfo};
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use protocol::reject::Reject;
use protocol::session::WITHDRAWN;
use protocol::wire::{CancelScope, Order, OrderId, OrderStatus, Report};
use std::collections::VecDeque;
use system::clock::Timebase;

/// How much later the reports of a slow venue come, in nanoseconds.
pub const SLOW_BY_NS: u64 = 100_000_000;
/// Orders that a disconnect looks at in a duty cycle.
const LOOKS: usize = 64;

/// From when until when a venue does what, in nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    kind: FaultKind,
    from_ns: u64,
    until_ns: u64,
}

/// A venue with faults.
pub struct FaultyVenue<V> {
    venue: V,
    windows: Vec<Window>,
    /// What it does, as of the last look.
    state: State,
    /// When the next of them begins or ends, in ticks.
    changes_at: u64,
    /// What is being cancelled.
    sweep: Option<Sweep>,
}

/// What the way of its reports needs.
struct State {
    kind: Option<FaultKind>,
    /// Reports that come later, in their order: when, in ticks.
    late: VecDeque<(u64, Report)>,
    /// Messages that were sent while the session was down, with their numbers.
    missed: VecDeque<(u64, Report)>,
    /// The gateway has said with which number it goes on, since the session was down last.
    is_resumed: bool,
    room: usize,
    /// The number of its last message.
    sent: u64,
    /// It has been told to cancel, because of a kill switch or a death.
    was_told: bool,
    draws: Draws,
}

impl State {
    fn has_room(&self) -> bool {
        self.late.len() + self.missed.len() < self.room
    }
}

impl<V: Venue> FaultyVenue<V> {
    /// The venue behind a gateway, which holds at most so many orders, with what these faults make
    /// it do.
    pub fn new(venue: V, context: &VenueContext, faults: &[Fault], max_held: usize) -> Self {
        let window = |fault: &Fault| match (fault.target, fault.when) {
            (FaultTarget::Venue(venue), FaultTime::At { ns }) if venue == context.venue => Some(Window {
                kind: fault.kind,
                from_ns: ns,
                until_ns: fault.lasts_ns.map_or(u64::MAX, |lasts| ns.saturating_add(lasts)),
            }),
            _ => None,
        };
        let room = max_held.saturating_mul(V::RECORD.reports_an_order.into()).max(64);
        let state = State {
            kind: None,
            late: VecDeque::with_capacity(room),
            missed: VecDeque::with_capacity(room),
            is_resumed: true,
            room,
            sent: 0,
            was_told: false,
            draws: Draws::new(context.gateway.into(), Draws::GARBLE),
        };
        Self { venue, windows: faults.iter().filter_map(window).collect(), state, changes_at: 0, sweep: None }
    }

    /// Looks at what it does now.
    fn look(&mut self, now: u64, time: Timebase) {
        if now < self.changes_at {
            return;
        }
        let ends = self.windows.iter().flat_map(|window| [window.from_ns, window.until_ns]);
        let coming = ends.filter(|ns| *ns != u64::MAX).map(|ns| time.at(ns)).filter(|at| *at > now);
        self.changes_at = coming.min().unwrap_or(u64::MAX);
        let is_on = |window: &&Window| {
            time.at(window.from_ns) <= now && (window.until_ns == u64::MAX || now < time.at(window.until_ns))
        };
        let kind = self.windows.iter().find(is_on).map(|window| window.kind);
        if kind == Some(FaultKind::Disconnect) && self.state.kind != kind {
            self.state.is_resumed = false;
            self.sweep = Some(Sweep { scope: CancelScope::default(), cursor: 0, looks: LOOKS, now });
        }
        self.state.kind = kind;
    }
}

/// What the venue sees of the reports' way.
struct Saying<'a, R> {
    reports: &'a mut R,
    state: &'a mut State,
    now: u64,
    /// Why it cancels orders now; `None`: because they asked for it, or because of something that
    /// it was told before.
    cancels: Option<u8>,
}

impl<R: Reports> Saying<'_, R> {
    fn say(&mut self, report: Report) -> Result<(), NoRoom> {
        self.say_as(self.state.sent + 1, report)
    }

    /// The message with that number.
    fn say_as(&mut self, number: u64, report: Report) -> Result<(), NoRoom> {
        // Nothing overtakes what was missed.
        if !self.state.is_resumed || !self.state.missed.is_empty() {
            self.state.missed.push_back((number, report));
        } else {
            self.reports.send_numbered(number, report)?;
        }
        self.state.sent = number;
        Ok(())
    }

    /// Why an order was cancelled.
    fn why(&self, report: &Report) -> u8 {
        let is_down = self.state.kind == Some(FaultKind::Disconnect);
        // An exchange calls each order withdrawn that it was told to cancel with others, also those
        // of a disconnect.
        let is_of_disconnect = is_down || (report.reason == WITHDRAWN && !self.state.was_told);
        let otherwise = if is_of_disconnect { Reject::VenueDown.code() } else { report.reason };
        self.cancels.unwrap_or(otherwise)
    }

    /// Says something wrong, and then perhaps the truth.
    fn garble(&mut self, report: Report) -> Result<(), NoRoom> {
        let mut wrong = report;
        let mut number = self.state.sent + 1;
        match self.state.draws.below(8) {
            0 => {
                let sequence = report.id.sequence() ^ (1 << 30);
                wrong.id = OrderId::new(report.id.strategy(), report.id.epoch(), sequence);
            }
            1 => wrong.filled = report.filled.saturating_mul(2).saturating_add(1),
            2 => wrong.status = OrderStatus::Rejected,
            3 => wrong.venue ^= 1,
            4 => wrong.side = report.side.opposite(),
            5 => wrong.number = report.number.wrapping_add(5) % 100,
            // It comes twice.
            6 => self.say(report)?,
            // Messages were left out.
            _ => number += 3,
        }
        self.say_as(number, wrong)?;
        // Where the first word was the truth, this is a repeat; the session knows.
        if self.state.draws.below(2) == 0 { self.say(report) } else { Ok(()) }
    }
}

impl<R: Reports> Reports for Saying<'_, R> {
    fn has_room(&self) -> bool {
        self.reports.has_room() && self.state.has_room()
    }

    fn send(&mut self, mut report: Report) -> Result<(), NoRoom> {
        if !self.has_room() {
            return Err(NoRoom);
        }
        if report.status == OrderStatus::Cancelled {
            report.reason = self.why(&report);
        }
        match self.state.kind {
            Some(FaultKind::Mute) => Ok(()),
            Some(FaultKind::Garble) => self.garble(report),
            Some(FaultKind::Slow) => {
                let due = self.now.saturating_add(self.reports.time().ticks(SLOW_BY_NS));
                self.state.late.push_back((due, report));
                Ok(())
            }
            // Behind what comes late.
            _ if !self.state.late.is_empty() => {
                let due = self.state.late.back().map_or(self.now, |(due, _)| *due);
                self.state.late.push_back((due, report));
                Ok(())
            }
            _ => self.say(report),
        }
    }

    fn nothing(&mut self) {
        self.reports.nothing();
    }

    fn time(&self) -> Timebase {
        self.reports.time()
    }
}

impl<V: Venue> Venue for FaultyVenue<V> {
    const RECORD: VenueInfo = VenueInfo {
        // A refusal.
        reports_at_once: V::RECORD.reports_at_once + 1,
        tells_release: false,
        ..V::RECORD
    };

    fn has_room(&self) -> bool {
        let room = usize::from(Self::RECORD.reports_at_once);
        self.venue.has_room() && self.state.late.len() + self.state.missed.len() + room <= self.state.room
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        match self.state.kind {
            // Of a session that is down the gateway sends nothing.
            Some(FaultKind::Mute | FaultKind::Disconnect) => return None,
            Some(FaultKind::Reject) => {}
            _ => {
                self.venue.accept(
                    order,
                    now,
                    &mut Saying { reports, state: &mut self.state, now, cancels: None },
                );
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
        let said = Saying { reports, state: &mut self.state, now, cancels: None }.say(refusal);
        debug_assert!(said.is_ok(), "there is room for what is said at once");
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        self.look(now, reports.time());
        while self.state.is_resumed && reports.has_room() {
            let Some((number, report)) = self.state.missed.pop_front() else { break };
            if reports.send_numbered(number, report).is_err() {
                debug_assert!(false, "asked before");
            }
        }
        while self.state.late.front().is_some_and(|(due, _)| *due <= now) && reports.has_room() {
            let Some((_, report)) = self.state.late.pop_front() else { break };
            let mut saying = Saying { reports: &mut *reports, state: &mut self.state, now, cancels: None };
            if saying.state.kind != Some(FaultKind::Mute) && saying.say(report).is_err() {
                debug_assert!(false, "asked before");
            }
        }
        if let Some(mut sweep) = self.sweep.take() {
            (sweep.looks, sweep.now) = (LOOKS, now);
            let cancels = Some(Reject::VenueDown.code());
            let mut saying = Saying { reports: &mut *reports, state: &mut self.state, now, cancels };
            if !self.venue.cancel_all(&mut sweep, &mut saying) {
                self.sweep = Some(sweep);
            }
        }
        // A venue is asked only where there is room for a report.
        let has_room = reports.has_room() && self.state.has_room();
        if has_room && self.venue.next_deadline() <= now {
            self.venue.advance(now, &mut Saying { reports, state: &mut self.state, now, cancels: None });
        }
    }

    fn next_deadline(&self) -> u64 {
        if self.sweep.is_some() || (self.state.is_resumed && !self.state.missed.is_empty()) {
            return 0;
        }
        let late = self.state.late.front().map_or(u64::MAX, |(due, _)| *due);
        self.venue.next_deadline().min(late).min(self.changes_at)
    }

    fn cancel_all(&mut self, sweep: &mut Sweep, reports: &mut impl Reports) -> bool {
        self.state.was_told = true;
        let (now, cancels) = (sweep.now, Some(WITHDRAWN));
        self.venue.cancel_all(sweep, &mut Saying { reports, state: &mut self.state, now, cancels })
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
