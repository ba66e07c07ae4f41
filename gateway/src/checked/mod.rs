//! The engine's side of a session with a venue that is not simply believed: what it says is
//! checked, what it does not say in time is closed, and it is sent no more messages than it takes.
//!
//! A [`ValidatingSession`] is a venue around a venue. It is there only where a run asks for it; all other
//! gateways have their venue directly.
//!
//! | what the venue does | what follows |
//! |---|---|
//! | a report that cannot be: of an order that is not open, a repeat, more than was ordered, a status that the order cannot have | it is counted as a venue error and dropped; the order stays as it was |
//! | a number of the session that is too high: messages were lost | counted; the report is looked at like any other |
//! | one that was there before | counted and dropped |
//! | one so high that the venue cannot have said so much | counted as a protocol error and dropped; the numbers stay as they were |
//! | nothing about an order for [`CheckedRules::silence_ns`]; nothing at all for so long, if it has acknowledged the order and was not told since to cancel it | the order is closed with the reason `venue-silent`, and counted as stuck |
//! | its session goes down | orders that come are refused with the reason `venue-down`; those that are open wait for what the venue says when it is back, or are closed for that reason |
//! | its session is up again | it is told the number of the message that is to come next, and sends again what was missed |
//!
//! So each order has exactly one last report whatever its venue does. A report of an order that was
//! closed as stuck comes too late: it is a venue error like any other of an order that is not open.

mod check;
mod throttle;

pub use check::VenueError;
use check::{Answer, Open};
use protocol::reject::Reject;
use protocol::wire::{CancelScope, MAX_STRATEGIES, Operation, Order, OrderId, OrderStatus, Report};
use std::collections::{HashMap, VecDeque};
use system::clock::Timebase;
pub use throttle::MessageLimit;
use throttle::Throttle;

use crate::venue::{NoRoom, Reports, SessionCounts, Sweep, Venue, VenueInfo};

/// What a session holds its venue to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedRules {
    /// How long a venue may say nothing about an order that is open there, in nanoseconds.
    pub silence_ns: u64,
    /// The messages that it takes; `None`: any number.
    pub limit: Option<MessageLimit>,
    /// The most orders that are open there at once.
    pub max_held: usize,
}

/// A venue that is checked. See the module's documentation.
pub struct ValidatingSession<V> {
    venue: V,
    state: State,
    /// When the venue is asked about which order, in the order of the times. An order that is
    /// closed meanwhile stays here until then.
    watched: VecDeque<(u64, OrderId)>,
    throttle: Option<Throttle>,
    is_up: bool,
}

/// What the way of the reports needs.
struct State {
    rules: CheckedRules,
    open: HashMap<OrderId, Open>,
    /// When the venue last said something that can be, in ticks.
    heard: u64,
    counts: SessionCounts,
    /// Numbers that no venue can have come to.
    absurd: u64,
    /// What the venue was told to cancel, each scope once, and when last, in ticks.
    told: VecDeque<(CancelScope, u64)>,
}

/// So many scopes are kept in mind; beyond that the one is forgotten that was told first.
const MOST_TOLD: usize = MAX_STRATEGIES;

impl State {
    /// Whether the number is the next one, or an error that the report survives; `false`: it was
    /// there before.
    fn takes_number(&mut self, number: u64) -> bool {
        let expected = self.next_number();
        // Of each message it has only so many reports: it cannot have lost more than all of them.
        let most = self.counts.sent.saturating_mul(protocol::wire::MAX_REPORTS as u64);
        if number.saturating_sub(expected) > most {
            self.absurd += 1;
            return false;
        }
        self.counts.errors += u64::from(number != expected);
        self.counts.received = self.counts.received.max(number);
        number >= expected
    }

    /// The number of the venue's next message.
    const fn next_number(&self) -> u64 {
        self.counts.received.saturating_add(1)
    }

    /// When the venue last said something that tells that it has not forgotten an order, or was
    /// told something that it owes a word about. An order that it has acknowledged may rest there
    /// for long: any of its words will do, unless it was told to cancel it.
    fn heard_of(&self, open: &Open) -> u64 {
        let told = self.told.iter().filter(|told| open.is_in(**told)).map(|(_, at)| *at).max();
        match told {
            Some(told) => open.heard.max(told),
            None if open.is_acknowledged() => open.heard.max(self.heard),
            None => open.heard,
        }
    }

    /// The venue is told to cancel the orders of a scope.
    fn tells(&mut self, scope: CancelScope, now: u64) {
        if let Some(told) = self.told.iter_mut().find(|(other, _)| *other == scope) {
            told.1 = now;
            return;
        }
        if self.told.len() == MOST_TOLD {
            self.told.pop_front();
        }
        self.told.push_back((scope, now));
    }
}

impl<V: Venue> ValidatingSession<V> {
    /// A session with that venue; nothing is allocated after this.
    pub fn new(venue: V, rules: CheckedRules) -> Self {
        // Twice: a table that is at most half full is tidied in place.
        let open = HashMap::with_capacity(2 * rules.max_held.max(8));
        Self {
            venue,
            state: State {
                rules,
                open,
                heard: 0,
                counts: SessionCounts::default(),
                absurd: 0,
                told: VecDeque::with_capacity(MOST_TOLD),
            },
            watched: VecDeque::with_capacity(2 * rules.max_held.max(8)),
            throttle: rules.limit.map(Throttle::new),
            is_up: true,
        }
    }

    /// Looks whether the session went down or came up.
    fn look(&mut self) {
        let is_up = self.venue.is_connected();
        match (self.is_up, is_up) {
            (true, false) => self.state.counts.disconnects += 1,
            (false, true) => self.venue.resume(self.state.next_number()),
            _ => {}
        }
        self.is_up = is_up;
    }

    /// Refuses an order itself: it never gets to the venue.
    #[cold]
    fn refuse(open: &Open, id: OrderId, reason: Reject, reports: &mut impl Reports) {
        let sent = reports.send(open.closed(id, OrderStatus::Refused, reason));
        debug_assert!(sent.is_ok(), "there is room for what is said at once");
    }

    fn watch(&mut self, due: u64, id: OrderId) {
        if self.watched.len() == self.watched.capacity() {
            let open = &self.state.open;
            self.watched.retain(|(_, id)| open.contains_key(id));
        }
        self.watched.push_back((due, id));
    }

    /// Closes the orders about which the venue has said nothing for too long.
    #[cold]
    fn close_silent(&mut self, now: u64, reports: &mut impl Reports) {
        let silence = reports.time().ticks(self.state.rules.silence_ns);
        while let Some((due, id)) = self.watched.front().copied().filter(|(due, _)| *due <= now) {
            let silent =
                self.state.open.get(&id).map(|open| self.state.heard_of(open).saturating_add(silence));
            match silent {
                Some(later) if later > due.max(now) => {
                    self.watched.pop_front();
                    self.watch(later, id);
                    continue;
                }
                Some(_) if !reports.has_room() => return,
                Some(_) => {}
                None => {}
            }
            self.watched.pop_front();
            if let Some(open) = self.state.open.remove(&id) {
                self.state.counts.stuck += 1;
                let reason = if self.is_up { Reject::VenueSilent } else { Reject::VenueDown };
                let closed = open.closed(id, OrderStatus::Expired, reason);
                let sent = reports.send(closed);
                debug_assert!(sent.is_ok(), "asked before");
            }
        }
    }
}

/// What the venue sees of the reports' way.
struct Heard<'a, R> {
    reports: &'a mut R,
    state: &'a mut State,
    now: u64,
}

impl<R: Reports> Heard<'_, R> {
    fn look(&mut self, report: Report) -> Result<(), NoRoom> {
        let Some(open) = self.state.open.get_mut(&report.id) else {
            self.state.counts.errors += 1;
            return Ok(());
        };
        match open.check(&report, LAST_NUMBER) {
            Ok(answer) => {
                self.reports.send(report)?;
                open.heard = self.now;
                self.state.heard = self.state.heard.max(self.now);
                if answer == Answer::Last {
                    self.state.counts.refused += u64::from(report.status == OrderStatus::Refused);
                    self.state.open.remove(&report.id);
                }
            }
            Err(_) => self.state.counts.errors += 1,
        }
        Ok(())
    }
}

/// Reports that an order may have at most, as far as the wire goes; the venue's own record is
/// checked behind this.
const LAST_NUMBER: u8 = (protocol::wire::MAX_REPORTS - 1) as u8;

impl<R: Reports> Reports for Heard<'_, R> {
    fn has_room(&self) -> bool {
        self.reports.has_room()
    }

    fn send(&mut self, report: Report) -> Result<(), NoRoom> {
        self.send_numbered(self.state.next_number(), report)
    }

    fn send_numbered(&mut self, number: u64, report: Report) -> Result<(), NoRoom> {
        if !self.reports.has_room() {
            return Err(NoRoom);
        }
        if self.state.takes_number(number) { self.look(report) } else { Ok(()) }
    }

    fn nothing(&mut self) {
        self.reports.nothing();
    }

    fn time(&self) -> Timebase {
        self.reports.time()
    }
}

impl<V: Venue> Venue for ValidatingSession<V> {
    const RECORD: VenueInfo = VenueInfo {
        // A rejection by the message limit.
        reports_at_once: V::RECORD.reports_at_once + 1,
        tells_release: false,
        ..V::RECORD
    };

    fn has_room(&self) -> bool {
        self.state.open.len() < self.state.rules.max_held
            && self.throttle.as_ref().is_none_or(Throttle::takes)
            && self.venue.has_room()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        let time = reports.time();
        let open = Open::new(order, now);
        if !self.is_up {
            self.state.counts.refused += 1;
            Self::refuse(&open, order.id, Reject::VenueDown, reports);
            return None;
        }
        if let Some(throttle) = &mut self.throttle
            && !throttle.message(now, time, order.operation == Operation::New)
        {
            self.state.counts.throttled += 1;
            Self::refuse(&open, order.id, Reject::Throttled, reports);
            return None;
        }
        self.state.counts.sent += 1;
        if order.operation == Operation::Replace {
            let target = OrderId::new(order.id.strategy(), order.id.epoch(), order.target);
            if let Some(target) = self.state.open.get_mut(&target) {
                target.is_to_be_replaced();
            }
        }
        self.state.open.insert(order.id, open);
        let silence = time.ticks(self.state.rules.silence_ns);
        self.watch(now.saturating_add(silence), order.id);
        let mut checked = Heard { reports, state: &mut self.state, now };
        let _ = self.venue.accept(order, now, &mut checked);
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        if let Some(throttle) = &mut self.throttle {
            throttle.advance(now);
        }
        if self.venue.next_deadline() <= now {
            self.venue.advance(now, &mut Heard { reports, state: &mut self.state, now });
            self.look();
        }
        if self.watched.front().is_some_and(|(due, _)| *due <= now) {
            self.close_silent(now, reports);
        }
    }

    fn next_deadline(&self) -> u64 {
        let watched = self.watched.front().map_or(u64::MAX, |(due, _)| *due);
        let throttle = self.throttle.as_ref().map_or(u64::MAX, Throttle::next_deadline);
        self.venue.next_deadline().min(watched).min(throttle)
    }

    fn keep_warm(&self) {
        self.venue.keep_warm();
    }

    fn cancel_all(&mut self, sweep: &mut Sweep, reports: &mut impl Reports) -> bool {
        let now = sweep.now;
        self.state.tells(sweep.scope, now);
        self.venue.cancel_all(sweep, &mut Heard { reports, state: &mut self.state, now })
    }

    fn faults(&self) -> u64 {
        self.venue.faults() + self.state.absurd
    }

    fn session(&self) -> SessionCounts {
        self.state.counts
    }
}

#[cfg(test)]
mod tests;
