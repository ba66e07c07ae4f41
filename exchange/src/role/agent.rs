//! The agent: sessions around a market.

use super::answers::Trade;
use super::market::{At, Market, MarketSetup, Outcome};
use super::session::SessionEnd;
use crate::command::Command;
use crate::exchange::Exchange;
use crate::market_board::{MarketBoard, Written};
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::labels::ExchangeCounter;
use protocol::stamps::{Point, TouchWritten};
use protocol::wire::{Instruction, Order, Report};
use shm::clock::Clock;

/// Instructions that one duty cycle takes of each session.
const BATCH: usize = 16;

/// Where an exchange says what it has done: trades as they happen, and the books when trading is over, before what rests expires.
pub trait Close: Send {
    /// A trade.
    fn trade(&mut self, trade: &Trade, ticks: u64);
    /// Trading is over.
    fn close(&mut self, exchange: &Exchange);
}

/// An exchange with its sessions.
pub struct ExchangeAgent<T> {
    market: Market,
    doors: Doors<T>,
    received: u64,
}

/// What reports and trades go out through.
struct Doors<T> {
    /// The sessions, by the credential.
    sessions: Vec<SessionEnd>,
    tape: T,
    completed: u64,
    traded: u64,
    faults: u64,
    venue: u16,
    /// Where the touches are written, if anybody reads them.
    board: Option<MarketBoard>,
    touches: u64,
    /// Trading is over.
    is_closed: bool,
}

impl<T: Close> ExchangeAgent<T> {
    /// The agent; nothing is allocated after this. `sessions` has one for each credential; `tape` takes trades and the last books.
    ///
    /// # Panics
    /// If the market was made for another number of sessions.
    pub fn new(setup: MarketSetup, sessions: Vec<SessionEnd>, tape: T) -> Self {
        assert_eq!(setup.sessions, sessions.len());
        let doors = Doors {
            sessions,
            tape,
            completed: 0,
            traded: 0,
            faults: 0,
            venue: setup.venue,
            board: None,
            touches: 0,
            is_closed: false,
        };
        Self { market: Market::new(setup), doors, received: 0 }
    }

    /// The same, writing the touches of its instruments to that board.
    #[must_use]
    pub fn telling(mut self, board: Option<MarketBoard>) -> Self {
        self.doors.board = board;
        self
    }
}

impl<T> Doors<T> {
    /// Writes the touches that the last instruction has changed, and takes down which version triggered its order: behind the reports,
    /// so that neither is part of an order's way.
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
        self.touches += board.write(
            exchange,
            || clock.now(),
            |Written { instrument, version, ticks }| {
                log.append_record(TouchWritten { venue, instrument, version, ticks }.record());
            },
        );
    }
}

/// A duty cycle's way out.
struct Out<'a, T, C> {
    doors: &'a mut Doors<T>,
    cycle: &'a mut Cycle<C>,
}

impl<T: Close, C: Clock> Outcome for Out<'_, T, C> {
    #[inline]
    fn expect(&mut self, command: &Command, exchange: &Exchange) {
        if let Some(board) = &mut self.doors.board {
            board.expect(command, exchange);
        }
    }

    /// Sends the reports, each to the session of its order's strategy, and writes down the trades.
    #[inline]
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        let Self { doors, cycle } = self;
        for report in reports {
            let session = usize::from(report.id.strategy()) % doors.sessions.len();
            cycle.stamp_with(Point::ExchangeDone, report.id, report.number);
            doors.sessions[session].send(report);
            doors.completed += 1;
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

impl<T: Close, C: Clock> Agent<C> for ExchangeAgent<T> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let at = At { now: cycle.now, time: cycle.time };
        let Self { market, doors, received } = self;
        let mut work = 0;
        if market.next_expiry() <= cycle.now {
            market.time(at, &mut Out { doors, cycle });
            work += 1;
        }
        // Also what is in the books at the start.
        doors.tell(market.exchange(), None, cycle);
        for session in 0..doors.sessions.len() {
            if doors.sessions[session].is_waiting() {
                work += doors.sessions[session].flush();
            }
            let mut taken = 0;
            while taken < BATCH && doors.sessions[session].has_news() {
                taken += 1;
                match doors.sessions[session].receive() {
                    Some(Instruction::Order(order)) if market.session_of(order.id.strategy()) == session => {
                        cycle.stamp(Point::ExchangeRecv, order.id);
                        *received += 1;
                        market.order(&order, at, &mut Out { doors, cycle });
                        doors.tell(market.exchange(), Some(&order), cycle);
                    }
                    // Of a strategy that has another credential.
                    Some(Instruction::Order(_)) => doors.faults += 1,
                    Some(Instruction::CancelAll(scope)) => {
                        market.withdraw(scope, session, &mut Out { doors, cycle });
                        doors.tell(market.exchange(), None, cycle);
                    }
                    None => {}
                }
            }
            work += taken;
        }
        if cycle.draining && work == 0 && !market.is_over() {
            work += market.close(at, &mut Out { doors, cycle });
        }
        work
    }

    fn next_deadline(&self) -> u64 {
        let at_once = self.doors.sessions.iter().any(|session| session.is_waiting() || session.has_news());
        if at_once { 0 } else { self.market.next_expiry() }
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let Doors { sessions, completed, traded, faults, .. } = &self.doors;
        let sum = |of: fn(&SessionEnd) -> u64| sessions.iter().map(of).sum::<u64>();
        let slot = slots.take();
        slot.set(ExchangeCounter::Received, self.received);
        slot.set(ExchangeCounter::Completed, *completed);
        slot.set(ExchangeCounter::Trades, *traded);
        slot.set(ExchangeCounter::OpenPeak, self.market.open_peak());
        slot.set(ExchangeCounter::Refused, self.market.refused());
        slot.set(ExchangeCounter::Full, sum(|session| session.full));
        slot.set(ExchangeCounter::ProtocolErrors, faults + sum(|session| session.faults));
        slot.set(ExchangeCounter::Touches, self.doors.touches);
    }
}
