//! The deterministic core of an exchange's role: equal inputs give equal reports and trades.

use crate::open_orders::{OpenOrder, OpenOrders};
use crate::reports::{Cause, ReportBuilder, Trade, refusal};
use crate::request::{OPENING_BOOK_OWNER, command, side};
use crate::sequencer::{ReplaySequencer, SequencerState};
use crate::session::session_of;
use exchange::Exchange;
use exchange::Level;
use exchange::command::{Command, Side};
use exchange::event::{Event, Events, RejectReason};
use exchange::{State, StateError};
use protocol::wire::{
    self, CancelScope, MAX_REPORTS, MAX_STRATEGIES, Operation, Order, OrderId, OrderStatus, OrderType, Report,
};
use serde::{Deserialize, Serialize};
use std::error::Error;
use system::clock::Timebase;

/// Number of price levels that one order may take: each has a report, and there are a few others.
const MAX_LEVELS: usize = MAX_REPORTS - 8;
/// Number of orders that one call of [`Market::close`] expires.
const CLOSE_BATCH: usize = 64;

/// The parameters of an exchange: matching engine, sessions, capacity and, if it replays a
/// recording, the order of the recorded orders.
pub struct MarketSetup {
    /// Index of the venue.
    pub venue: u16,
    /// The matching engine with its opening books.
    pub exchange: Exchange,
    /// Number of instruments.
    pub instruments: u16,
    /// Number of sessions with gateways: one for each credential.
    pub sessions: usize,
    /// Maximum number of strategies' orders open at once.
    pub capacity: usize,
    /// Sequences the orders of a recorded flow; `None`: orders are applied as they arrive.
    pub sequencer: Option<ReplaySequencer>,
}

/// An exchange's matching engine, with the open orders of strategies and, for each order, the
/// number of its next report.
pub struct Market {
    setup: MarketSetup,
    open: OpenOrders,
    reports: Vec<Report>,
    trades: Vec<Trade>,
    overrun: Vec<u64>,
    is_closed: bool,
    open_peak: u64,
    refused: u64,
}

/// A snapshot of an exchange's market: its order books, open orders and next numbers.
#[derive(Serialize, Deserialize)]
pub(crate) struct MarketState {
    exchange: State,
    open: Vec<(u64, OpenOrder)>,
    script: Option<SequencerState>,
    is_closed: bool,
    open_peak: u64,
    refused: u64,
}

/// The time, in ticks of the run's clock, that the exchange gives a command or timer; a replay has
/// the same one.
#[derive(Clone, Copy, Debug)]
pub struct InputTime {
    /// Time in ticks of the run's clock.
    pub now: u64,
    pub time: Timebase,
}

/// The receiver of the reports and trades that an exchange's inputs produce, in order.
pub trait ExecutionSink {
    /// Prepares for a command that is about to be applied, by which instruments may change.
    #[inline]
    fn before_command(&mut self, command: &Command, exchange: &Exchange) {
        let _ = (command, exchange);
    }

    /// Receives the reports and trades that one command produced.
    fn record(&mut self, reports: &[Report], trades: &[Trade]);

    /// Handles the end of trading, before resting orders expire.
    fn close(&mut self, exchange: &Exchange);
}

impl Market {
    pub fn new(setup: MarketSetup) -> Self {
        let mut open = OpenOrders::default();
        // Twice: a table that is at most half full rehashes in place.
        let capacity = 2 * setup.capacity + 16;
        open.reserve(capacity);
        Self {
            open,
            reports: Vec::with_capacity(capacity),
            trades: Vec::with_capacity(capacity),
            overrun: Vec::with_capacity(16),
            setup,
            is_closed: false,
            open_peak: 0,
            refused: 0,
        }
    }

    pub const fn exchange(&self) -> &Exchange {
        &self.setup.exchange
    }

    pub const fn instruments(&self) -> u16 {
        self.setup.instruments
    }

    pub const fn sessions(&self) -> usize {
        self.setup.sessions
    }

    /// Returns the session through which the orders of an order's strategy come.
    #[inline(always)]
    pub(crate) fn session_of(&self, id: OrderId) -> usize {
        session_of(id, self.setup.sessions)
    }

    /// Returns the maximum number of strategies' orders that were open at once at the exchange.
    pub const fn open_peak(&self) -> u64 {
        self.open_peak
    }

    pub const fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns `true` if trading at the exchange has ended and no order rests in the books.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.setup.exchange.is_empty()
    }

    /// Returns the tick at which the next open order of the exchange expires; `u64::MAX` if none
    /// does.
    #[inline]
    pub fn next_expiry(&self) -> u64 {
        self.setup.exchange.next_expiry()
    }

    /// Applies an order to the matching engine, or, in a replay, holds it until the orders recorded
    /// before it have arrived.
    #[inline]
    pub fn apply_order(&mut self, order: &Order, at: InputTime, sink: &mut impl ExecutionSink) {
        let order = match &mut self.setup.sequencer {
            None => Some(*order),
            Some(sequencer) => sequencer.enqueue(*order),
        };
        if let Some(order) = order {
            self.apply_request(&order, at, sink);
        }
        while let Some(order) = self.setup.sequencer.as_mut().and_then(ReplaySequencer::pop) {
            self.apply_request(&order, at, sink);
        }
    }

    /// Advances the time of the exchange's market, so that orders expire.
    #[inline]
    pub fn advance_time(&mut self, at: InputTime, sink: &mut impl ExecutionSink) {
        self.apply(Command::Time(at.now), Cause::Time, sink);
        self.flush_outputs(sink);
    }

    /// Cancels those open orders of one gateway's session that `scope` covers: of one or all
    /// strategies, in one or all instruments.
    #[cold]
    pub fn cancel_scope(&mut self, scope: CancelScope, session: usize, sink: &mut impl ExecutionSink) {
        let owners = match scope.strategy {
            Some(dead) => u32::from(dead.strategy().0)..u32::from(dead.strategy().0) + 1,
            None => 0..MAX_STRATEGIES as u32,
        };
        let sessions = self.setup.sessions;
        let is_its = |owner: &u32| session_of(OrderId::new(*owner as u16, 0, 0), sessions) == session;
        for owner in owners.filter(is_its) {
            let command = Command::MassCancel { owner, instrument: scope.instrument };
            self.apply(command, Cause::Withdrawal, sink);
        }
        self.flush_outputs(sink);
    }

    /// Ends trading at the exchange and expires up to 64 of the orders in its books; call it until
    /// it returns 0. Returns the number expired.
    #[cold]
    pub fn close(&mut self, at: InputTime, sink: &mut impl ExecutionSink) -> usize {
        while let Some(order) = self.setup.sequencer.as_mut().and_then(ReplaySequencer::pop_any) {
            self.apply_request(&order, at, sink);
        }
        if !self.is_closed {
            self.is_closed = true;
            sink.close(&self.setup.exchange);
        }
        let mut budget = CLOSE_BATCH;
        for instrument in 0..self.setup.instruments {
            for side in [Side::Buy, Side::Sell] {
                while budget > 0 {
                    let exchange = &self.setup.exchange;
                    let first = exchange.orders(instrument, side).next();
                    let first = first.or_else(|| exchange.stops(instrument, side).next());
                    let Some(first) = first else { break };
                    let command = Command::Cancel { id: first.id, owner: first.owner };
                    self.apply(command, Cause::Close, sink);
                    budget -= 1;
                }
            }
        }
        self.flush_outputs(sink);
        CLOSE_BATCH - budget
    }

    /// Applies a command and collects its reports. Returns why it was refused, if it was.
    #[inline]
    fn apply(
        &mut self,
        command: Command,
        cause: Cause,
        sink: &mut impl ExecutionSink,
    ) -> Option<RejectReason> {
        sink.before_command(&command, &self.setup.exchange);
        let Self { setup, open, reports, trades, overrun, .. } = self;
        let mut report_builder = ReportBuilder::new(setup.venue, cause, open, reports, trades, overrun);
        setup.exchange.apply(command, &mut report_builder);
        let refused = report_builder.refused();
        if !self.overrun.is_empty() {
            self.cancel_overrun();
        }
        refused
    }

    /// Cancels orders that have used up their report numbers.
    #[cold]
    fn cancel_overrun(&mut self) {
        while let Some(id) = self.overrun.pop() {
            let owner = OrderId::from_word(id).strategy().0.into();
            // Its last report was sent already.
            self.setup.exchange.apply(Command::Cancel { id, owner }, &mut NullSink);
        }
    }

    #[inline]
    fn apply_request(&mut self, order: &Order, at: InputTime, sink: &mut impl ExecutionSink) {
        let venue = self.setup.venue;
        let id = order.id.word();
        if self.is_closed
            || self.open.len() >= self.setup.capacity
            || self.open.insert(id, OpenOrder::new(order)).is_some()
        {
            self.refused += 1;
            self.reports.push(closing_report(
                order,
                venue,
                OrderStatus::Refused,
                refusal(RejectReason::Full),
            ));
            self.flush_outputs(sink);
            return;
        }
        self.open_peak = self.open_peak.max(self.open.len() as u64);
        let refused = if self.can_exceed_reports(order) {
            Some(RejectReason::BadQuantity)
        } else {
            self.apply(command(order, at.now, at.time), Cause::Request(order.id), sink)
        };
        let is_new = order.request.operation == Operation::New;
        if let Some(reason) = refused {
            self.refused += 1;
            self.open.remove(&id);
            self.reports.push(closing_report(order, venue, OrderStatus::Refused, refusal(reason)));
        } else if !is_new {
            self.open.remove(&id);
            self.reports.push(closing_report(order, venue, OrderStatus::Done, 0));
        }
        self.flush_outputs(sink);
    }

    /// Returns `true` if an order could take at more prices than it can have reports.
    #[inline]
    fn can_exceed_reports(&self, order: &Order) -> bool {
        if !matches!(order.request.operation, Operation::New | Operation::Replace) {
            return false;
        }
        let is_market = order.request.price == 0 || order.request.terms.order_type == OrderType::Market;
        let crosses = |level: &Level| match order.request.side {
            wire::Side::Buy => is_market || level.price <= order.request.price,
            wire::Side::Sell => is_market || level.price >= order.request.price,
        };
        let mut remaining = order.request.quantity;
        let levels = self.setup.exchange.depth(
            order.request.instrument,
            side(order.request.side.opposite()),
            MAX_LEVELS,
        );
        let crossed_levels = levels.take_while(crosses).take_while(|level| {
            let is_needed = remaining > 0;
            remaining = remaining.saturating_sub(level.quantity);
            is_needed
        });
        crossed_levels.count() == MAX_LEVELS
    }

    pub(crate) fn state(&self) -> MarketState {
        // Sorted: equal states have equal bytes.
        let mut open: Vec<(u64, OpenOrder)> = self.open.iter().map(|(id, order)| (*id, *order)).collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        MarketState {
            exchange: self.setup.exchange.state(),
            open,
            script: self.setup.sequencer.as_ref().map(ReplaySequencer::state),
            is_closed: self.is_closed,
            open_peak: self.open_peak,
            refused: self.refused,
        }
    }

    /// Replaces the market's state by that of a snapshot, which has an equal setup.
    pub(crate) fn restore(&mut self, state: MarketState) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.setup.exchange.restore(&state.exchange)?;
        self.open.clear();
        for (id, order) in state.open {
            if self.open.len() >= self.setup.capacity || order.instrument >= self.setup.instruments {
                return Err(StateError::Order(id).into());
            }
            self.open.insert(id, order);
        }
        let is_same_sequencer = match (&mut self.setup.sequencer, &state.script) {
            (Some(sequencer), Some(state)) => sequencer.try_restore(state),
            (sequencer, state) => sequencer.is_none() && state.is_none(),
        };
        if !is_same_sequencer {
            return Err("the snapshot has another replay sequence".into());
        }
        (self.is_closed, self.open_peak, self.refused) = (state.is_closed, state.open_peak, state.refused);
        Ok(())
    }

    #[inline]
    fn flush_outputs(&mut self, sink: &mut impl ExecutionSink) {
        sink.record(&self.reports, &self.trades);
        self.reports.clear();
        self.trades.clear();
    }
}

struct NullSink;

impl Events for NullSink {
    fn on(&mut self, _: Event) {}
}

/// Returns the only report of a request that ends at once.
fn closing_report(order: &Order, venue: u16, status: OrderStatus, reason: u8) -> Report {
    Report { venue, status, reason, filled: 0, cumulative: 0, ..Report::full_fill(order) }
}

/// Adds the orders of an opening book to an exchange and returns their number; an error is the
/// first refused id and the reason.
pub fn open_with(
    exchange: &mut Exchange,
    orders: impl IntoIterator<Item = exchange::NewOrder>,
) -> Result<u64, (u64, RejectReason)> {
    let mut opened = 0;
    let mut events = Vec::new();
    for order in orders {
        let order = exchange::NewOrder { id: order.id | crate::RESTING, owner: OPENING_BOOK_OWNER, ..order };
        exchange.apply(Command::New(order), &mut events);
        if let Some(Event::Rejected { reason, .. }) = events.first() {
            return Err((order.id, *reason));
        }
        events.clear();
        opened += 1;
    }
    Ok(opened)
}
