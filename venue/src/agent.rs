//! The agent of an exchange: a session with its gateway around a market, with a write-ahead
//! journal.
//!
//! ```text
//!  take ─▶ stamp ─▶ journal ─▶ release slot ─▶ match ─▶ (await group commit) ─▶ stamp ─▶ send
//! ```
//! An exchange that crashes anywhere on that path loses nothing: a message that is not in the
//! journal is still in the session's ring, and the journal is replayed by the successor
//! ([`crate::recovery`]), which sends only what the predecessor has not sent.

use crate::apply::{SessionCounters, apply_message};
use crate::journal_entry::JournalEntry;
use crate::market::{ExecutionSink, InputTime, Market, MarketSetup};
use crate::market_board::MarketBoard;
use crate::reports::Trade;
use crate::session::{SessionCounts, SessionEnd, session_of};
use exchange::Exchange;
use exchange::command::Command;
use journal::{JournalError, Writer};
use protocol::agent::{Agent, Cycle};
use protocol::counters::CounterSlots;
use protocol::labels::ExchangeCounter;
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Order, OrderId, Report};
use std::collections::VecDeque;
use system::clock::Clock;

/// Maximum number of instructions that one duty cycle takes from each session.
const BATCH: usize = 16;

/// The receiver of an exchange's trades, and of its order books at the end of trading, before the
/// resting orders expire.
pub trait TradeTape: Send {
    /// Records a trade on the tape.
    fn trade(&mut self, trade: &Trade, ticks: u64);
    /// Records the books at the end of trading, again for an exchange that restarts later.
    fn close(&mut self, exchange: &Exchange);
}

/// The agent of an exchange, with its market, its sessions with gateways and its journal.
pub struct ExchangeAgent<T> {
    pub(crate) market: Market,
    pub(crate) outputs: Outputs<T>,
    pub(crate) journal: Option<Writer>,
    pub(crate) received: u64,
    /// An order that a crashed predecessor stamped and did not journal: it is not stamped twice.
    pub(crate) stamped_order: Option<OrderId>,
    failed: Option<String>,
}

/// The outputs of an exchange: reports to its gateways, trades to the tape, and market data.
pub(crate) struct Outputs<T> {
    /// By credential.
    pub sessions: Vec<SessionEnd>,
    pub tape: T,
    /// Reports that await durability, in order.
    pub deferred: VecDeque<DeferredReport>,
    pub completed: u64,
    pub traded: u64,
    pub board: Option<MarketBoard>,
    pub touches: u64,
    /// Records that a crashed predecessor had no time to log.
    pub unlogged: Vec<Record>,
    pub is_closed: bool,
}

/// A report that waits for its journal record, or for the first duty cycle after a recovery.
pub(crate) struct DeferredReport {
    pub report: Report,
    /// The journal record that produced the report.
    pub record: u64,
    /// A crashed predecessor has stamped the report.
    pub is_stamped: bool,
}

impl<T: TradeTape> ExchangeAgent<T> {
    /// Creates the agent of an exchange from its setup, its sessions with gateways and its trade
    /// tape. `sessions` has one for each credential; `tape` receives trades and the last books.
    ///
    /// # Panics
    /// If the market is for another number of sessions.
    pub fn new(setup: MarketSetup, sessions: Vec<SessionEnd>, tape: T) -> Self {
        Self::with_market(Market::new(setup), sessions, tape)
    }

    pub(crate) fn with_market(market: Market, sessions: Vec<SessionEnd>, tape: T) -> Self {
        assert_eq!(market.sessions(), sessions.len());
        let outputs = Outputs {
            sessions,
            tape,
            deferred: VecDeque::new(),
            completed: 0,
            traded: 0,
            board: None,
            touches: 0,
            unlogged: Vec::new(),
            is_closed: false,
        };
        Self { market, outputs, journal: None, received: 0, stamped_order: None, failed: None }
    }

    /// Adds the market-data board, on which the exchange publishes each instrument's top of book.
    #[must_use]
    pub fn with_market_board(mut self, board: Option<MarketBoard>) -> Self {
        self.outputs.board = board;
        self
    }

    /// Journals an input. Returns `false` if that failed: it must not be applied.
    #[inline]
    fn try_journal(&mut self, entry: &JournalEntry, now: u64) -> bool {
        let Some(journal) = &mut self.journal else { return true };
        match entry.append(journal, now) {
            Ok(()) => true,
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    /// Stops for good: an input that cannot be journaled is not applied.
    #[cold]
    fn fail(&mut self, error: &JournalError) {
        self.failed = Some(format!("stops: its journal fails: {error}"));
    }

    #[inline]
    fn take_message<C: Clock>(&mut self, session: usize, cycle: &mut Cycle<C>) {
        let Some(message) = self.outputs.sessions[session].take() else { return };
        let order = match Instruction::from_message(message) {
            Ok(Instruction::Order(order)) if self.market.session_of(order.id) == session => Some(order),
            _ => None,
        };
        if let Some(order) = &order
            && self.stamped_order.take_if(|stamped| *stamped == order.id).is_none()
        {
            cycle.stamp(Point::ExchangeRecv, order.id);
        }
        // Before its slot is released: a successor reads the messages again that are not in the
        // journal.
        if !self.try_journal(&JournalEntry::Message(session, message), cycle.now) {
            return;
        }
        self.outputs.sessions[session].release();
        let at = InputTime { now: cycle.now, time: cycle.time };
        let Self { market, outputs, journal, received, .. } = self;
        let mut out = CycleOutputs { outputs, journal: journal.as_ref(), cycle };
        *received += apply_message(market, session, message, at, &mut out);
        outputs.publish_market_data(market.exchange(), order.as_ref(), cycle);
    }
}

struct CycleOutputs<'a, T, C> {
    outputs: &'a mut Outputs<T>,
    journal: Option<&'a Writer>,
    cycle: &'a mut Cycle<C>,
}

impl<T, C> SessionCounters for CycleOutputs<'_, T, C> {
    #[inline(always)]
    fn session_counts(&mut self, session: usize) -> &mut SessionCounts {
        &mut self.outputs.sessions[session].counts
    }
}

impl<T: TradeTape, C: Clock> ExecutionSink for CycleOutputs<'_, T, C> {
    #[inline]
    fn before_command(&mut self, command: &Command, exchange: &Exchange) {
        if let Some(board) = &mut self.outputs.board {
            board.before_command(command, exchange);
        }
    }

    /// Sends or defers the reports, each to the session of its strategy, and records the trades.
    #[inline]
    fn record(&mut self, reports: &[Report], trades: &[Trade]) {
        let Self { outputs, journal, cycle } = self;
        let record = journal.map_or(0, Writer::last);
        let is_durable =
            outputs.deferred.is_empty() && journal.is_none_or(|journal| journal.durable_sequence() >= record);
        for report in reports {
            outputs.completed += 1;
            if is_durable {
                outputs.send(report, false, cycle);
            } else {
                outputs.deferred.push_back(DeferredReport { report: *report, record, is_stamped: false });
            }
        }
        if !trades.is_empty() {
            let ticks = cycle.clock.peek();
            outputs.traded += trades.len() as u64;
            trades.iter().for_each(|trade| outputs.tape.trade(trade, ticks));
            if let Some(board) = &mut outputs.board {
                trades
                    .iter()
                    .for_each(|trade| board.record_trade(trade.instrument, trade.price, trade.quantity));
            }
        }
    }

    fn close(&mut self, exchange: &Exchange) {
        self.outputs.is_closed = true;
        self.outputs.tape.close(exchange);
    }
}

impl<T> Outputs<T> {
    /// Publishes what the last instruction changed, and its order's trigger, off an order's path.
    #[inline]
    fn publish_market_data<C: Clock>(
        &mut self,
        exchange: &Exchange,
        order: Option<&Order>,
        cycle: &mut Cycle<C>,
    ) {
        let Some(board) = &mut self.board else { return };
        if let Some(order) = order.filter(|order| order.request.trigger > 0) {
            cycle.log.append(Point::Trigger, order.id, order.request.trigger);
        }
        // Expiries after the end of trading are not published: the log has no capacity for them.
        if !board.can_have_changed() || self.is_closed {
            return;
        }
        let Cycle { clock, log, .. } = cycle;
        self.touches += board.write(exchange, || clock.now(), |written| log.append_record(written.record()));
    }

    /// Logs the records that a crashed predecessor had no time to log.
    #[cold]
    fn flush_unlogged<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        self.unlogged.drain(..).for_each(|record| cycle.log.append_record(record));
    }

    #[inline]
    fn send<C: Clock>(&mut self, report: &Report, is_stamped: bool, cycle: &mut Cycle<C>) {
        if !is_stamped {
            cycle.stamp_with(Point::ExchangeDone, report.id, report.number);
        }
        let session = session_of(report.id, self.sessions.len());
        self.sessions[session].send(report);
    }

    /// Sends the deferred reports of durable records. Returns the number sent.
    #[cold]
    fn release_durable<C: Clock>(&mut self, settled: u64, cycle: &mut Cycle<C>) -> usize {
        let mut sent = 0;
        while let Some(deferred) = self.deferred.pop_front_if(|deferred| deferred.record <= settled) {
            self.send(&deferred.report, deferred.is_stamped, cycle);
            sent += 1;
        }
        sent
    }
}

impl<T: TradeTape, C: Clock> Agent<C> for ExchangeAgent<T> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        if self.failed.is_some() {
            return 0;
        }
        if !self.outputs.deferred.is_empty() {
            work += self
                .outputs
                .release_durable(self.journal.as_ref().map_or(u64::MAX, Writer::durable_sequence), cycle);
            if let Some(error) = self.journal.as_ref().and_then(Writer::failure) {
                self.fail(&error);
                return work;
            }
        }
        let at = InputTime { now: cycle.now, time: cycle.time };
        if self.market.next_expiry() <= cycle.now && self.try_journal(&JournalEntry::Time, cycle.now) {
            let Self { market, outputs, journal, .. } = self;
            market.advance_time(at, &mut CycleOutputs { outputs, journal: journal.as_ref(), cycle });
            work += 1;
        }
        if !self.outputs.unlogged.is_empty() {
            self.outputs.flush_unlogged(cycle);
        }
        // Also publishes the opening books.
        self.outputs.publish_market_data(self.market.exchange(), None, cycle);
        for session in 0..self.outputs.sessions.len() {
            if self.outputs.sessions[session].is_waiting() {
                work += self.outputs.sessions[session].flush();
            }
            let mut taken = 0;
            while taken < BATCH && self.outputs.sessions[session].has_message() && self.failed.is_none() {
                taken += 1;
                self.take_message(session, cycle);
            }
            work += taken;
        }
        if cycle.draining
            && work == 0
            && !self.market.is_over()
            && self.try_journal(&JournalEntry::Close, cycle.now)
        {
            let Self { market, outputs, journal, .. } = self;
            work += market.close(at, &mut CycleOutputs { outputs, journal: journal.as_ref(), cycle });
        }
        work
    }

    fn next_deadline(&self, _: bool) -> u64 {
        let is_urgent =
            self.outputs.sessions.iter().any(|session| session.is_waiting() || session.has_message());
        if is_urgent || !self.outputs.deferred.is_empty() { 0 } else { self.market.next_expiry() }
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let Outputs { sessions, completed, traded, .. } = &self.outputs;
        let total = |of: fn(&SessionEnd) -> u64| sessions.iter().map(of).sum::<u64>();
        let slot = slots.next_agent();
        slot.set(ExchangeCounter::Received, self.received);
        slot.set(ExchangeCounter::Completed, *completed);
        slot.set(ExchangeCounter::Trades, *traded);
        slot.set(ExchangeCounter::OpenPeak, self.market.open_peak());
        slot.set(ExchangeCounter::Refused, self.market.refused());
        slot.set(ExchangeCounter::Full, total(|session| session.full));
        slot.set(ExchangeCounter::ProtocolErrors, total(|session| session.counts.faults));
        slot.set(ExchangeCounter::Journaled, self.journal.as_ref().map_or(0, Writer::last));
        slot.set(
            ExchangeCounter::Recovered,
            self.journal.as_ref().map_or(0, |journal| journal.recovered().last),
        );
        slot.set(
            ExchangeCounter::Replayed,
            self.journal.as_ref().map_or(0, |journal| journal.recovered().records),
        );
        slot.set(ExchangeCounter::TopOfBookUpdates, self.outputs.touches);
    }
}
