//! The agent: sessions around a market, and its journal.
//!
//! ```text
//!  take ─▶ stamp ─▶ journal ─▶ give the slot back ─▶ match ─▶ (group: until it is on the disk) ─▶ stamp ─▶ send
//! ```
//! An exchange that dies anywhere on that way loses nothing: what is not in the journal is still in
//! the session's ring, and what is in it is carried out again by the successor
//! ([`crate::recovery`]), which sends only what the predecessor has not sent.

use crate::answers::Trade;
use crate::carry::{Counted, carry_out};
use crate::commands::JournalEntry;
use crate::market::{At, ExecutionSink, Market, MarketSetup};
use crate::market_board::{MarketBoard, Written};
use crate::session::{Counts, SessionEnd};
use exchange::Exchange;
use exchange::command::Command;
use journal::{JournalError, Writer};
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::labels::ExchangeCounter;
use protocol::stamps::{Point, Record, TouchWritten};
use protocol::wire::{Instruction, Order, OrderId, Report};
use std::collections::VecDeque;
use system::clock::Clock;

/// Instructions that one duty cycle takes of each session.
const BATCH: usize = 16;

/// Where an exchange says what it has done: trades as they happen, and the books when trading is
/// over, before what rests expires.
pub trait Close: Send {
    /// A trade.
    fn trade(&mut self, trade: &Trade, ticks: u64);
    /// Trading is over. Said again by an exchange that comes back behind that.
    fn close(&mut self, exchange: &Exchange);
}

/// An exchange with its sessions.
pub struct ExchangeAgent<T> {
    pub(crate) market: Market,
    pub(crate) doors: Outputs<T>,
    pub(crate) journal: Option<Writer>,
    pub(crate) received: u64,
    /// The order that a dead predecessor had stamped and not written down: it comes again, and has
    /// its stamp.
    pub(crate) is_stamped: Option<OrderId>,
    /// Why it can go on no more.
    failed: Option<String>,
}

/// What reports and trades go out through.
pub(crate) struct Outputs<T> {
    /// The sessions, by the credential.
    pub sessions: Vec<SessionEnd>,
    pub tape: T,
    /// Reports that are not to be sent yet, in their order.
    pub held: VecDeque<HeldReport>,
    pub completed: u64,
    pub traded: u64,
    pub faults: u64,
    pub venue: u16,
    /// Where the touches are written, if anybody reads them.
    pub board: Option<MarketBoard>,
    pub touches: u64,
    /// What a dead predecessor did and had no time to log.
    pub untold: Vec<Record>,
    /// Trading is over.
    pub is_closed: bool,
}

/// A report that waits for the disk, or for the first duty cycle after a recovery.
pub(crate) struct HeldReport {
    pub report: Report,
    /// The record whose carrying out it tells.
    pub record: u64,
    /// A dead predecessor has stamped it.
    pub is_stamped: bool,
}

impl<T: Close> ExchangeAgent<T> {
    /// The agent; nothing is allocated after this, but under a journal that reports wait for.
    /// `sessions` has one for each credential; `tape` takes trades and the last books.
    ///
    /// # Panics
    /// If the market is for another number of sessions.
    pub fn new(setup: MarketSetup, sessions: Vec<SessionEnd>, tape: T) -> Self {
        Self::around(Market::new(setup), sessions, tape)
    }

    /// The same around a market that is there.
    pub(crate) fn around(market: Market, sessions: Vec<SessionEnd>, tape: T) -> Self {
        assert_eq!(market.sessions(), sessions.len());
        let doors = Outputs {
            sessions,
            tape,
            held: VecDeque::new(),
            completed: 0,
            traded: 0,
            faults: 0,
            venue: market.venue(),
            board: None,
            touches: 0,
            untold: Vec::new(),
            is_closed: false,
        };
        Self { market, doors, journal: None, received: 0, is_stamped: None, failed: None }
    }

    /// The same, writing the touches of its instruments to that board.
    #[must_use]
    pub fn telling(mut self, board: Option<MarketBoard>) -> Self {
        self.doors.board = board;
        self
    }

    /// Writes down what is about to be carried out; whether it may be.
    #[inline]
    fn write_down(&mut self, told: &JournalEntry, now: u64) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        match told.append(journal, now) {
            Ok(()) => true,
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    /// Stops for good: what cannot be written down is not done.
    #[cold]
    fn fail(&mut self, error: &JournalError) {
        self.failed = Some(format!("stops: its journal fails: {error}"));
    }

    /// Takes the next message of a session and carries it out.
    #[inline]
    fn take<C: Clock>(&mut self, session: usize, cycle: &mut Cycle<C>) {
        let Some(message) = self.doors.sessions[session].take() else { return };
        let order = match Instruction::from_message(message) {
            Ok(Instruction::Order(order)) if self.market.session_of(order.id.strategy()) == session => {
                Some(order)
            }
            _ => None,
        };
        if let Some(order) = &order
            && self.is_stamped.take_if(|stamped| *stamped == order.id).is_none()
        {
            cycle.stamp(Point::ExchangeRecv, order.id);
        }
        // Before its slot is given back: what is not in the journal is taken again by a successor.
        if !self.write_down(&JournalEntry::Message(session, message), cycle.now) {
            return;
        }
        self.doors.sessions[session].release();
        let at = At { now: cycle.now, time: cycle.time };
        let Self { market, doors, journal, received, .. } = self;
        let mut out = Out { doors, journal: journal.as_ref(), cycle };
        *received += carry_out(market, session, message, at, &mut out);
        doors.tell(market.exchange(), order.as_ref(), cycle);
    }
}

impl<T> Counted for Outputs<T> {
    #[inline(always)]
    fn counts(&mut self, session: usize) -> &mut Counts {
        &mut self.sessions[session].counts
    }

    fn fault(&mut self) {
        self.faults += 1;
    }
}

/// A duty cycle's way out.
struct Out<'a, T, C> {
    doors: &'a mut Outputs<T>,
    journal: Option<&'a Writer>,
    cycle: &'a mut Cycle<C>,
}

impl<T, C> AsMut<Outputs<T>> for Out<'_, T, C> {
    #[inline(always)]
    fn as_mut(&mut self) -> &mut Outputs<T> {
        self.doors
    }
}

impl<T: Close, C: Clock> ExecutionSink for Out<'_, T, C> {
    #[inline]
    fn expect(&mut self, command: &Command, exchange: &Exchange) {
        if let Some(board) = &mut self.doors.board {
            board.expect(command, exchange);
        }
    }

    /// Sends the reports, each to the session of its order's strategy, and writes down the trades.
    #[inline]
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        let Self { doors, journal, cycle } = self;
        let record = journal.map_or(0, Writer::last);
        let may_go =
            doors.held.is_empty() && journal.is_none_or(|journal| journal.durable_sequence() >= record);
        for report in reports {
            doors.completed += 1;
            if may_go {
                doors.send(report, false, cycle);
            } else {
                doors.held.push_back(HeldReport { report: *report, record, is_stamped: false });
            }
        }
        if !trades.is_empty() {
            let ticks = cycle.clock.peek();
            doors.traded += trades.len() as u64;
            trades.iter().for_each(|trade| doors.tape.trade(trade, ticks));
            if let Some(board) = &mut doors.board {
                trades.iter().for_each(|trade| board.traded(trade.instrument, trade.price, trade.quantity));
            }
        }
    }

    fn close(&mut self, exchange: &Exchange) {
        self.doors.is_closed = true;
        self.doors.tape.close(exchange);
    }
}

impl<T> Outputs<T> {
    /// Writes the touches that the last instruction has changed, and takes down which version
    /// triggered its order: behind the reports, so that neither is part of an order's way.
    #[inline]
    fn tell<C: Clock>(&mut self, exchange: &Exchange, order: Option<&Order>, cycle: &mut Cycle<C>) {
        let Some(board) = &mut self.board else { return };
        if let Some(order) = order.filter(|order| order.trigger > 0) {
            cycle.log.append(Point::Trigger, order.id, order.trigger);
        }
        // What expires when trading is over is no news, and the log has no room for it.
        if !board.may_have_changed() || self.is_closed {
            return;
        }
        let (Cycle { clock, log, .. }, venue) = (cycle, self.venue);
        self.touches +=
            board.write(exchange, || clock.now(), |written| log.append_record(told(venue, written)));
    }

    /// Writes into the log what a dead predecessor could not any more.
    #[cold]
    fn tell_what_is_untold<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        self.untold.drain(..).for_each(|record| cycle.log.append_record(record));
    }

    #[inline]
    fn send<C: Clock>(&mut self, report: &Report, is_stamped: bool, cycle: &mut Cycle<C>) {
        let session = usize::from(report.id.strategy()) % self.sessions.len();
        if !is_stamped {
            cycle.stamp_with(Point::ExchangeDone, report.id, report.number);
        }
        self.sessions[session].send(report);
    }

    /// Sends the reports of records that are settled; how many.
    #[cold]
    fn send_held<C: Clock>(&mut self, settled: u64, cycle: &mut Cycle<C>) -> usize {
        let mut sent = 0;
        while let Some(held) = self.held.pop_front_if(|held| held.record <= settled) {
            self.send(&held.report, held.is_stamped, cycle);
            sent += 1;
        }
        sent
    }
}

/// The record of a touch that was written.
pub(crate) fn told(venue: u16, Written { instrument, version, ticks }: Written) -> Record {
    TouchWritten { venue, instrument, version, ticks }.record()
}

impl<T: Close, C: Clock> Agent<C> for ExchangeAgent<T> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        if self.failed.is_some() {
            return 0;
        }
        if !self.doors.held.is_empty() {
            work +=
                self.doors.send_held(self.journal.as_ref().map_or(u64::MAX, Writer::durable_sequence), cycle);
            if let Some(error) = self.journal.as_ref().and_then(Writer::failure) {
                self.fail(&error);
                return work;
            }
        }
        let at = At { now: cycle.now, time: cycle.time };
        if self.market.next_expiry() <= cycle.now && self.write_down(&JournalEntry::Time, cycle.now) {
            let Self { market, doors, journal, .. } = self;
            market.time(at, &mut Out { doors, journal: journal.as_ref(), cycle });
            work += 1;
        }
        if !self.doors.untold.is_empty() {
            self.doors.tell_what_is_untold(cycle);
        }
        // Also what is in the books at the start.
        self.doors.tell(self.market.exchange(), None, cycle);
        for session in 0..self.doors.sessions.len() {
            if self.doors.sessions[session].is_waiting() {
                work += self.doors.sessions[session].flush();
            }
            let mut taken = 0;
            while taken < BATCH && self.doors.sessions[session].has_news() && self.failed.is_none() {
                taken += 1;
                self.take(session, cycle);
            }
            work += taken;
        }
        if cycle.draining
            && work == 0
            && !self.market.is_over()
            && self.write_down(&JournalEntry::Close, cycle.now)
        {
            let Self { market, doors, journal, .. } = self;
            work += market.close(at, &mut Out { doors, journal: journal.as_ref(), cycle });
        }
        work
    }

    fn next_deadline(&self, _: bool) -> u64 {
        let at_once = self.doors.sessions.iter().any(|session| session.is_waiting() || session.has_news());
        if at_once || !self.doors.held.is_empty() { 0 } else { self.market.next_expiry() }
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let Outputs { sessions, completed, traded, faults, .. } = &self.doors;
        let sum = |of: fn(&SessionEnd) -> u64| sessions.iter().map(of).sum::<u64>();
        let slot = slots.take();
        slot.set(ExchangeCounter::Received, self.received);
        slot.set(ExchangeCounter::Completed, *completed);
        slot.set(ExchangeCounter::Trades, *traded);
        slot.set(ExchangeCounter::OpenPeak, self.market.open_peak());
        slot.set(ExchangeCounter::Refused, self.market.refused());
        slot.set(ExchangeCounter::Full, sum(|session| session.full));
        slot.set(ExchangeCounter::ProtocolErrors, faults + sum(|session| session.counts.faults));
        slot.set(ExchangeCounter::Journalled, self.journal.as_ref().map_or(0, Writer::last));
        slot.set(
            ExchangeCounter::Recovered,
            self.journal.as_ref().map_or(0, |journal| journal.recovered().last),
        );
        slot.set(
            ExchangeCounter::Replayed,
            self.journal.as_ref().map_or(0, |journal| journal.recovered().records),
        );
        slot.set(ExchangeCounter::Touches, self.doors.touches);
    }
}
