//! The agent: sessions around a matching engine.

use super::answers::{Answers, Cause, Trade, refusal};
use super::open::{OpenOrder, OpenOrders};
use super::request::{HOUSE, command, side};
use super::script::Script;
use super::session::SessionEnd;
use crate::command::{Command, Side};
use crate::event::{Event, Events, RejectReason};
use crate::exchange::Exchange;
use crate::market_board::{MarketBoard, Written};
use crate::view::Level;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::labels::ExchangeCounter;
use protocol::stamps::{Point, TouchWritten};
use protocol::wire::{
    self, CancelScope, Instruction, MAX_REPORTS, Operation, Order, OrderId, OrderStatus, OrderType, Report,
};
use shm::clock::Clock;

/// Instructions that one duty cycle takes of each session.
const BATCH: usize = 16;
/// Prices at which one order can take: each has a report, and there are a few others.
const MOST_LEVELS: usize = MAX_REPORTS - 8;
/// Orders that one duty cycle expires when trading is over.
const CLOSE_BATCH: usize = 64;

/// Where an exchange says what it has done: trades as they happen, and the books when trading is over, before what rests expires.
pub trait Close: Send {
    /// A trade.
    fn trade(&mut self, trade: &Trade, ticks: u64);
    /// Trading is over.
    fn close(&mut self, exchange: &Exchange);
}

/// What an exchange is made of.
pub struct Setup<T> {
    /// The venue's index.
    pub venue: u16,
    /// The books, opened.
    pub exchange: Exchange,
    /// How many instruments it has.
    pub instruments: u16,
    /// Its sessions, by the credential.
    pub sessions: Vec<SessionEnd>,
    /// As many orders of strategies can be open at once.
    pub room: usize,
    /// The order in which orders are carried out, where that is not the one in which they come.
    pub script: Option<Script>,
    /// What takes trades and the last books.
    pub tape: T,
    /// Where the touches of its instruments are written, if anybody reads them.
    pub market: Option<MarketBoard>,
}

/// An exchange with its sessions.
pub struct ExchangeAgent<T> {
    setup: Setup<T>,
    open: OpenOrders,
    reports: Vec<Report>,
    trades: Vec<Trade>,
    overrun: Vec<u64>,
    is_closed: bool,
    received: u64,
    completed: u64,
    refused: u64,
    traded: u64,
    open_peak: u64,
    faults: u64,
    /// The order that came last, and the version of a touch that it says made its strategy send it.
    triggered: Option<(OrderId, u64)>,
    touches: u64,
}

impl<T: Close> ExchangeAgent<T> {
    /// The agent; nothing is allocated after this.
    pub fn new(setup: Setup<T>) -> Self {
        let mut open = OpenOrders::default();
        // Twice: a table that is never more than half full makes room for the removed without growing.
        open.reserve(2 * setup.room + 16);
        let room = 2 * setup.room + 16;
        Self {
            open,
            reports: Vec::with_capacity(room),
            trades: Vec::with_capacity(room),
            overrun: Vec::with_capacity(16),
            setup,
            is_closed: false,
            received: 0,
            completed: 0,
            refused: 0,
            traded: 0,
            open_peak: 0,
            faults: 0,
            triggered: None,
            touches: 0,
        }
    }

    /// Carries out a command; why it was refused, if it was. Its reports wait in `reports`.
    #[inline]
    fn apply(&mut self, command: Command, cause: Cause) -> Option<RejectReason> {
        let Self { setup, open, reports, trades, overrun, .. } = self;
        if let Some(market) = &mut setup.market {
            market.expect(&command, &setup.exchange);
        }
        let mut answers = Answers::new(setup.venue, cause, open, reports, trades, overrun);
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
            self.setup.exchange.apply(Command::Cancel { id, owner }, &mut Unheard);
        }
    }

    /// A request has come through a session.
    #[inline]
    fn receive<C: Clock>(&mut self, order: Order, cycle: &mut Cycle<C>) {
        cycle.stamp(Point::ExchangeRecv, order.id);
        self.received += 1;
        if order.trigger > 0 {
            self.triggered = Some((order.id, order.trigger));
        }
        match &mut self.setup.script {
            None => self.request(&order, cycle),
            Some(script) => {
                if let Some(order) = script.put(order) {
                    self.request(&order, cycle);
                }
                while let Some(order) = self.setup.script.as_mut().and_then(Script::take) {
                    self.request(&order, cycle);
                    self.answer(cycle);
                }
            }
        }
    }

    /// Carries out a request of a strategy.
    #[inline]
    fn request<C: Clock>(&mut self, order: &Order, cycle: &mut Cycle<C>) {
        let id = order.id.word();
        if self.is_closed
            || self.open.len() >= self.setup.room
            || self.open.insert(id, OpenOrder::new(order)).is_some()
        {
            self.refused += 1;
            self.reports.push(closing(
                order,
                self.setup.venue,
                OrderStatus::Refused,
                refusal(RejectReason::Full),
            ));
            return;
        }
        self.open_peak = self.open_peak.max(self.open.len() as u64);
        let refused = if self.takes_too_many(order) {
            Some(RejectReason::BadQuantity)
        } else {
            self.apply(command(order, cycle.now, cycle.time), Cause::Request(order.id))
        };
        let is_new = order.operation == Operation::New;
        if let Some(reason) = refused {
            self.refused += 1;
            self.open.remove(&id);
            self.reports.push(closing(order, self.setup.venue, OrderStatus::Refused, refusal(reason)));
        } else if !is_new {
            self.open.remove(&id);
            self.reports.push(closing(order, self.setup.venue, OrderStatus::Done, 0));
        }
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

    /// Cancels the orders of a scope that came through a session.
    #[cold]
    fn withdraw(&mut self, scope: CancelScope, session: usize) {
        let sessions = self.setup.sessions.len();
        let owners = match scope.strategy {
            Some(dead) => dead.strategy()..dead.strategy() + 1,
            None => 0..protocol::wire::MAX_STRATEGIES as u16,
        };
        // Those of the session's credential: another's are not its to cancel.
        for owner in owners.filter(|owner| usize::from(*owner) % sessions == session) {
            let command = Command::MassCancel { owner: owner.into(), instrument: scope.instrument };
            self.apply(command, Cause::Withdrawal);
        }
    }

    /// Sends the reports of the last commands, each to the session of its order's strategy, and writes down the trades.
    #[inline]
    fn answer<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        for place in 0..self.reports.len() {
            let report = &self.reports[place];
            let sessions = self.setup.sessions.len();
            let session = usize::from(report.id.strategy()) % sessions;
            cycle.stamp_with(Point::ExchangeDone, report.id, report.number);
            self.setup.sessions[session].send(report);
            self.completed += 1;
        }
        self.reports.clear();
        if !self.trades.is_empty() {
            let ticks = cycle.clock.peek();
            self.traded += self.trades.len() as u64;
            self.trades.iter().for_each(|trade| self.setup.tape.trade(trade, ticks));
            if let Some(market) = &mut self.setup.market {
                self.trades
                    .iter()
                    .for_each(|trade| market.traded(trade.instrument, trade.price, trade.quantity));
            }
            self.trades.clear();
        }
        self.tell(cycle);
    }

    /// Tells the market what the last command has changed, and takes down which version triggered its order: behind the reports, so that
    /// neither is part of an order's way.
    #[inline]
    fn tell<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Setup { market: Some(market), venue, exchange, .. } = &mut self.setup else { return };
        if let Some((id, version)) = self.triggered.take() {
            cycle.log.append(Point::Trigger, id, version);
        }
        // What expires when trading is over is no news, and would need room in the log.
        if !market.may_have_changed() || self.is_closed {
            return;
        }
        let Cycle { clock, log, .. } = cycle;
        self.touches += market.write(
            exchange,
            || clock.now(),
            |Written { instrument, version, ticks }| {
                log.append_record(TouchWritten { venue: *venue, instrument, version, ticks }.record());
            },
        );
    }

    /// Trading is over: what rests expires, a part in each duty cycle.
    #[cold]
    fn close<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        while let Some(order) = self.setup.script.as_mut().and_then(Script::take_any) {
            self.request(&order, cycle);
            self.answer(cycle);
        }
        if !self.is_closed {
            self.is_closed = true;
            self.setup.tape.close(&self.setup.exchange);
        }
        let mut looks = CLOSE_BATCH;
        for instrument in 0..self.setup.instruments {
            for side in [Side::Buy, Side::Sell] {
                while looks > 0 {
                    let exchange = &self.setup.exchange;
                    let first = exchange.orders(instrument, side).next();
                    let first = first.or_else(|| exchange.stops(instrument, side).next());
                    let Some(first) = first else { break };
                    self.apply(Command::Cancel { id: first.id, owner: first.owner }, Cause::Close);
                    looks -= 1;
                }
            }
        }
        CLOSE_BATCH - looks
    }
}

/// Whom events do not concern.
struct Unheard;

impl Events for Unheard {
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

impl<T: Close, C: Clock> Agent<C> for ExchangeAgent<T> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        // What is in the books at the start.
        self.tell(cycle);
        if self.setup.exchange.next_expiry() <= cycle.now {
            self.apply(Command::Time(cycle.now), Cause::Time);
            self.answer(cycle);
            work += 1;
        }
        for session in 0..self.setup.sessions.len() {
            if self.setup.sessions[session].is_waiting() {
                work += self.setup.sessions[session].flush();
            }
            let mut taken = 0;
            while taken < BATCH && self.setup.sessions[session].has_news() {
                taken += 1;
                match self.setup.sessions[session].receive() {
                    Some(Instruction::Order(order))
                        if usize::from(order.id.strategy()) % self.setup.sessions.len() == session =>
                    {
                        self.receive(order, cycle);
                    }
                    // Of a strategy that has another credential.
                    Some(Instruction::Order(_)) => self.faults += 1,
                    Some(Instruction::CancelAll(scope)) => self.withdraw(scope, session),
                    None => {}
                }
                self.answer(cycle);
            }
            work += taken;
        }
        if cycle.draining && work == 0 && !(self.is_closed && self.setup.exchange.is_empty()) {
            work += self.close(cycle);
            self.answer(cycle);
        }
        work
    }

    fn next_deadline(&self) -> u64 {
        let at_once = self.setup.sessions.iter().any(|session| session.is_waiting() || session.has_news());
        if at_once { 0 } else { self.setup.exchange.next_expiry() }
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let sum = |of: fn(&SessionEnd) -> u64| self.setup.sessions.iter().map(of).sum::<u64>();
        let slot = slots.take();
        slot.set(ExchangeCounter::Received, self.received);
        slot.set(ExchangeCounter::Completed, self.completed);
        slot.set(ExchangeCounter::Trades, self.traded);
        slot.set(ExchangeCounter::OpenPeak, self.open_peak);
        slot.set(ExchangeCounter::Refused, self.refused);
        slot.set(ExchangeCounter::Full, sum(|session| session.full));
        slot.set(ExchangeCounter::ProtocolErrors, self.faults + sum(|session| session.faults));
        slot.set(ExchangeCounter::Touches, self.touches);
    }
}

/// Opens the books of an exchange with orders that belong to nobody in the run.
///
/// # Errors
/// The id of the first order that was refused, and why.
pub fn open_with(
    exchange: &mut Exchange,
    orders: impl IntoIterator<Item = crate::NewOrder>,
) -> Result<u64, (u64, crate::RejectReason)> {
    let mut opened = 0;
    let mut events = Vec::new();
    for order in orders {
        let order = crate::NewOrder { id: order.id | super::RESTING, owner: HOUSE, ..order };
        exchange.apply(Command::New(order), &mut events);
        if let Some(crate::Event::Rejected { reason, .. }) = events.first() {
            return Err((order.id, *reason));
        }
        events.clear();
        opened += 1;
    }
    Ok(opened)
}
