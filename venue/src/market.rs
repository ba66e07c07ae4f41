//! The deterministic part of an exchange's role: the same inputs give the same reports and trades.

use crate::answers::{Cause, ReportBuilder, Trade, refusal};
use crate::open::{OpenOrder, OpenOrders};
use crate::request::{OPENING_BOOK_OWNER, command, side};
use crate::script::{ReplaySequencer, ScriptState};
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

/// Prices at which one order can take: each has a report, and there are a few others.
const MOST_LEVELS: usize = MAX_REPORTS - 8;
/// Orders that one call of [`Market::close`] expires.
const CLOSE_BATCH: usize = 64;

/// What a market is made of.
pub struct MarketSetup {
    /// The venue's index.
    pub venue: u16,
    /// The books, opened.
    pub exchange: Exchange,
    /// How many instruments it has.
    pub instruments: u16,
    /// How many sessions: one for each credential.
    pub sessions: usize,
    /// As many orders of strategies can be open at once.
    pub room: usize,
    /// The order in which orders are carried out, where that is not the one in which they come.
    pub script: Option<ReplaySequencer>,
}

/// The books, and what is known of the orders of strategies in them.
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

/// What a market knows beside what it is made of.
#[derive(Serialize, Deserialize)]
pub(crate) struct MarketState {
    exchange: State,
    open: Vec<(u64, OpenOrder)>,
    script: Option<ScriptState>,
    is_closed: bool,
    open_peak: u64,
    refused: u64,
}

/// When something is carried out.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Ticks of the run's clock.
    pub now: u64,
    /// What the clock's ticks are.
    pub time: Timebase,
}

/// Takes what came of an input, part by part: reports and trades, in their order. Both are emptied
/// behind it.
pub trait ExecutionSink {
    /// A command is about to be carried out.
    #[inline]
    fn expect(&mut self, command: &Command, exchange: &Exchange) {
        let _ = (command, exchange);
    }

    /// What came of one command.
    fn take(&mut self, reports: &[Report], trades: &[Trade]);

    /// Trading is over; said before what rests expires.
    fn close(&mut self, exchange: &Exchange);
}

impl Market {
    /// The market; nothing is allocated after this.
    pub fn new(setup: MarketSetup) -> Self {
        let mut open = OpenOrders::default();
        // Twice: a table that is never more than half full makes room for the removed without
        // growing.
        let room = 2 * setup.room + 16;
        open.reserve(room);
        Self {
            open,
            reports: Vec::with_capacity(room),
            trades: Vec::with_capacity(room),
            overrun: Vec::with_capacity(16),
            setup,
            is_closed: false,
            open_peak: 0,
            refused: 0,
        }
    }

    /// The books.
    pub const fn exchange(&self) -> &Exchange {
        &self.setup.exchange
    }

    /// The venue's index.
    pub const fn venue(&self) -> u16 {
        self.setup.venue
    }

    /// How many sessions it is for.
    pub const fn sessions(&self) -> usize {
        self.setup.sessions
    }

    /// How many instruments it has.
    pub const fn instruments(&self) -> u16 {
        self.setup.instruments
    }

    /// The most orders of strategies that were open at once.
    pub const fn open_peak(&self) -> u64 {
        self.open_peak
    }

    /// Requests that were refused.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether trading is over.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether trading is over and nothing rests.
    pub fn is_over(&self) -> bool {
        self.is_closed && self.setup.exchange.is_empty()
    }

    /// When an order expires next, in ticks.
    #[inline]
    pub fn next_expiry(&self) -> u64 {
        self.setup.exchange.next_expiry()
    }

    /// The session that the orders of a strategy come through.
    #[inline]
    pub fn session_of(&self, strategy: u16) -> usize {
        usize::from(strategy) % self.setup.sessions
    }

    /// Carries out an order, or lets it wait for its turn.
    #[inline]
    pub fn order(&mut self, order: &Order, at: At, outcome: &mut impl ExecutionSink) {
        let order = match &mut self.setup.script {
            None => Some(*order),
            Some(script) => script.put(*order),
        };
        if let Some(order) = order {
            self.request(&order, at, outcome);
        }
        while let Some(order) = self.setup.script.as_mut().and_then(ReplaySequencer::take) {
            self.request(&order, at, outcome);
        }
    }

    /// Time has come to this.
    #[inline]
    pub fn time(&mut self, at: At, outcome: &mut impl ExecutionSink) {
        self.apply(Command::Time(at.now), Cause::Time, outcome);
        self.hand_over(outcome);
    }

    /// Cancels the orders of a scope that came through a session.
    #[cold]
    pub fn withdraw(&mut self, scope: CancelScope, session: usize, outcome: &mut impl ExecutionSink) {
        let owners = match scope.strategy {
            Some(dead) => dead.strategy()..dead.strategy() + 1,
            None => 0..MAX_STRATEGIES as u16,
        };
        // Those of the session's credential: another's are not its to cancel.
        for owner in owners {
            if self.session_of(owner) != session {
                continue;
            }
            let command = Command::MassCancel { owner: owner.into(), instrument: scope.instrument };
            self.apply(command, Cause::Withdrawal, outcome);
        }
        self.hand_over(outcome);
    }

    /// Trading is over: what rests expires, a part in each call; how much that was.
    #[cold]
    pub fn close(&mut self, at: At, outcome: &mut impl ExecutionSink) -> usize {
        while let Some(order) = self.setup.script.as_mut().and_then(ReplaySequencer::take_any) {
            self.request(&order, at, outcome);
        }
        if !self.is_closed {
            self.is_closed = true;
            outcome.close(&self.setup.exchange);
        }
        let mut looks = CLOSE_BATCH;
        for instrument in 0..self.setup.instruments {
            for side in [Side::Buy, Side::Sell] {
                while looks > 0 {
                    let exchange = &self.setup.exchange;
                    let first = exchange.orders(instrument, side).next();
                    let first = first.or_else(|| exchange.stops(instrument, side).next());
                    let Some(first) = first else { break };
                    let command = Command::Cancel { id: first.id, owner: first.owner };
                    self.apply(command, Cause::Close, outcome);
                    looks -= 1;
                }
            }
        }
        self.hand_over(outcome);
        CLOSE_BATCH - looks
    }

    /// Carries out a command; why it was refused, if it was. Its reports wait in `reports`.
    #[inline]
    fn apply(
        &mut self,
        command: Command,
        cause: Cause,
        outcome: &mut impl ExecutionSink,
    ) -> Option<RejectReason> {
        outcome.expect(&command, &self.setup.exchange);
        let Self { setup, open, reports, trades, overrun, .. } = self;
        let mut answers = ReportBuilder::new(setup.venue, cause, open, reports, trades, overrun);
        setup.exchange.apply(command, &mut answers);
        let refused = answers.refused();
        if !self.overrun.is_empty() {
            self.end_overrun();
        }
        refused
    }

    /// Takes orders out of the books that could have no more reports.
    #[cold]
    fn end_overrun(&mut self) {
        while let Some(id) = self.overrun.pop() {
            let owner = OrderId::from_word(id).strategy().into();
            // Its reports are given: nothing of this is heard.
            self.setup.exchange.apply(Command::Cancel { id, owner }, &mut NullSink);
        }
    }

    /// Carries out a request of a strategy.
    #[inline]
    fn request(&mut self, order: &Order, at: At, outcome: &mut impl ExecutionSink) {
        let venue = self.setup.venue;
        let id = order.id.word();
        if self.is_closed
            || self.open.len() >= self.setup.room
            || self.open.insert(id, OpenOrder::new(order)).is_some()
        {
            self.refused += 1;
            self.reports.push(closing(order, venue, OrderStatus::Refused, refusal(RejectReason::Full)));
            self.hand_over(outcome);
            return;
        }
        self.open_peak = self.open_peak.max(self.open.len() as u64);
        let refused = if self.takes_too_many(order) {
            Some(RejectReason::BadQuantity)
        } else {
            self.apply(command(order, at.now, at.time), Cause::Request(order.id), outcome)
        };
        let is_new = order.operation == Operation::New;
        if let Some(reason) = refused {
            self.refused += 1;
            self.open.remove(&id);
            self.reports.push(closing(order, venue, OrderStatus::Refused, refusal(reason)));
        } else if !is_new {
            self.open.remove(&id);
            self.reports.push(closing(order, venue, OrderStatus::Done, 0));
        }
        self.hand_over(outcome);
    }

    /// Whether an order could take at more prices than it can have reports.
    #[inline]
    fn takes_too_many(&self, order: &Order) -> bool {
        if !matches!(order.operation, Operation::New | Operation::Replace) {
            return false;
        }
        let any = order.price == 0 || order.terms.order_type == OrderType::Market;
        let crosses = |level: &Level| match order.side {
            wire::Side::Buy => any || level.price <= order.price,
            wire::Side::Sell => any || level.price >= order.price,
        };
        let mut left = order.quantity;
        let levels = self.setup.exchange.depth(order.instrument, side(order.side.opposite()), MOST_LEVELS);
        let taken = levels.take_while(crosses).take_while(|level| {
            let is_needed = left > 0;
            left = left.saturating_sub(level.quantity);
            is_needed
        });
        taken.count() == MOST_LEVELS
    }

    /// Its state between two inputs.
    pub(crate) fn state(&self) -> MarketState {
        // In an order: the same state has the same bytes.
        let mut open: Vec<(u64, OpenOrder)> = self.open.iter().map(|(id, order)| (*id, *order)).collect();
        open.sort_unstable_by_key(|(id, _)| *id);
        MarketState {
            exchange: self.setup.exchange.state(),
            open,
            script: self.setup.script.as_ref().map(ReplaySequencer::state),
            is_closed: self.is_closed,
            open_peak: self.open_peak,
            refused: self.refused,
        }
    }

    /// Goes on from a state of a market of the same making; whatever was in it is forgotten.
    pub(crate) fn restore(&mut self, state: MarketState) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.setup.exchange.restore(&state.exchange)?;
        self.open.clear();
        for (id, order) in state.open {
            if self.open.len() >= self.setup.room || order.instrument >= self.setup.instruments {
                return Err(StateError::Order(id).into());
            }
            self.open.insert(id, order);
        }
        let is_same_script = match (&mut self.setup.script, &state.script) {
            (Some(script), Some(state)) => script.restore(state),
            (script, state) => script.is_none() && state.is_none(),
        };
        if !is_same_script {
            return Err("another script of whose turn it is".into());
        }
        (self.is_closed, self.open_peak, self.refused) = (state.is_closed, state.open_peak, state.refused);
        Ok(())
    }

    #[inline]
    fn hand_over(&mut self, outcome: &mut impl ExecutionSink) {
        outcome.take(&self.reports, &self.trades);
        self.reports.clear();
        self.trades.clear();
    }
}

/// Whom events do not concern.
struct NullSink;

impl Events for NullSink {
    fn on(&mut self, _: Event) {}
}

/// The one report that ends a request.
fn closing(order: &Order, venue: u16, status: OrderStatus, reason: u8) -> Report {
    Report {
        id: order.id,
        venue,
        instrument: order.instrument,
        status,
        reason,
        side: order.side,
        price: order.price,
        filled: 0,
        leaves: 0,
        cumulative: 0,
        number: 0,
        is_last: true,
    }
}

/// Opens the books of an exchange with orders that belong to nobody in the run.
///
/// # Errors
/// The id of the first order that was refused, and why.
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
