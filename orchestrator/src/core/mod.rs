//! The engine's decisions as a pure state machine: an input comes in, effects go out.
//!
//! There is no ring, clock, log, doorbell or journal in here, and no decision asks an output whether it has room. Equal
//! inputs give equal effects, so the engine that is measured, the one that a journal rebuilds and the one that unit tests
//! drive are one function: [`Core::apply`]. (Fowler, "The LMAX Architecture", 2011, calls it the business logic processor;
//! Aeron Cluster, a clustered service.)

mod accounting;
mod effects;
mod gateways;
mod input;
mod kill;
mod lifecycle;
mod orders;
mod session;

pub use effects::{Effects, Notice};
pub(crate) use gateways::{GatewaySession, GatewayState};
pub use input::Input;
pub use kill::log_records;
pub use lifecycle::TOLERATED_OFFENCES;
pub(crate) use session::{SessionState, StrategySession};

use crate::positions::{OpenOrders, Positions, SavedOrders};
use crate::risk::{Risk, RiskSetup, SettingError};
use kill::{Kill, max_kills};
use protocol::checksum::Checksum;
use protocol::desk::MAX_REASONS;
use protocol::stamps::{HandOff, LinkEnd, StampLog};
use protocol::wire::{Message, Order, OrderId};
use serde::{Deserialize, Serialize};
use shm::prefetch::prefetch_lines;

/// The most open orders of a strategy that memory is allocated for.
const MAX_OPEN: usize = 1 << 24;

/// When an input is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Ticks of the run's clock.
    pub ticks: u64,
    /// Ticks since the run's start: what rate limits count in.
    pub since_start: u64,
}

/// Totals since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Orders sent to gateways and not recalled.
    pub dispatched: u64,
    /// Reports taken from gateways.
    pub reports: u64,
    /// Reports that were the last of their order.
    pub settled: u64,
    /// Orders rejected.
    pub rejected: u64,
    /// Inputs that no honest peer sends.
    pub faults: u64,
}

/// Checksums of everything that was sent or taken, by the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksums {
    to_gateway: Vec<Checksum>,
    /// Of the living incarnation.
    to_strategy: Vec<Checksum>,
    pub reports: Checksum,
}

/// The engine's state and its decisions. Encoded it is a snapshot: `O` is another type there, and what is skipped comes
/// from the plan or follows from the rest.
#[derive(Serialize, Deserialize)]
pub struct Core<O = OpenOrders> {
    pub(crate) sessions: Vec<StrategySession>,
    pub(crate) positions: Positions<O>,
    pub(crate) risk: Risk,
    /// Kill switches whose orders are not all confirmed. Allocated once for [`max_kills`].
    pub(crate) kills: Vec<Kill>,
    /// The number of the next kill switch that a limit or a death throws.
    next_switch: u32,
    /// Orders left in the plan for each strategy and venue; empty if the plan has no such limit.
    venue_budgets: Vec<u64>,
    /// Orders open at each gateway; see `counts_gateways`.
    pub(crate) gateway_orders: Vec<u64>,
    pub(crate) gateways: Vec<GatewaySession>,
    /// Orders rejected, by the reason's code.
    pub(crate) refused: Vec<u64>,
    /// Whether the memory that the last order came through names its sender.
    pub(crate) sender_is_authenticated: bool,
    pub(crate) counts: Counts,
    pub(crate) checksums: Checksums,
    /// The last order that was sent, until it is booked.
    #[serde(skip)]
    unbooked: Option<Order>,
    /// Sessions and gateways whose retirement has begun and not ended.
    #[serde(skip)]
    pub(crate) dying: usize,
    #[serde(skip)]
    gateway_limit: Option<u64>,
    /// What goes to each gateway and comes from it is counted: there is a limit, or gateways may die.
    #[serde(skip)]
    counts_gateways: bool,
    /// Gateways whose successor resumes their session.
    #[serde(skip)]
    resumable: Vec<bool>,
    /// Orders are checked against the state of their gateways: there is a limit, or a gateway is down.
    #[serde(skip)]
    restricts_gateways: bool,
    #[serde(skip)]
    credentials: usize,
    #[serde(skip)]
    venues: usize,
}

/// A core in a snapshot.
pub(crate) type SavedCore = Core<SavedOrders>;

impl Core {
    /// A core in which nothing has happened.
    ///
    /// # Errors
    /// The first limit that does not exist.
    pub fn new(setup: &RiskSetup<'_>) -> Result<Self, SettingError> {
        let risk = Risk::new(setup)?;
        let (strategies, credentials) = (setup.strategies, setup.credentials.max(1));
        let gateways = setup.venues * credentials;
        let max_open = usize::try_from(setup.max_open).unwrap_or(usize::MAX).min(MAX_OPEN);
        Ok(Self {
            sessions: (0..strategies).map(|index| StrategySession::new(index as u16)).collect(),
            positions: Positions::new(strategies, risk.instruments(), max_open),
            risk,
            kills: Vec::with_capacity(max_kills(strategies)),
            next_switch: 0,
            venue_budgets: Vec::new(),
            gateway_orders: vec![0; gateways],
            gateways: vec![GatewaySession::default(); gateways],
            refused: vec![0; MAX_REASONS],
            sender_is_authenticated: true,
            counts: Counts::default(),
            checksums: Checksums {
                to_gateway: vec![Checksum::default(); gateways],
                to_strategy: vec![Checksum::default(); strategies],
                reports: Checksum::default(),
            },
            unbooked: None,
            dying: 0,
            gateway_limit: None,
            counts_gateways: false,
            resumable: Vec::new(),
            restricts_gateways: false,
            credentials,
            venues: setup.venues,
        })
    }

    /// Limits how many orders each strategy sends in all: one more is a flood. The stamp logs have room for no more.
    #[must_use]
    pub fn expecting(mut self, orders: &[u64]) -> Self {
        for (session, orders) in self.sessions.iter_mut().zip(orders) {
            session.budget = *orders;
        }
        self
    }

    /// Limits the orders of each strategy and venue, laid out as [`protocol::workload::Trading::venue_orders`]. Empty: no limit.
    #[must_use]
    pub fn expecting_at_venues(self, venue_orders: &[u64]) -> Self {
        Self { venue_budgets: venue_orders.to_vec(), ..self }
    }

    /// Limits the orders that may be open at one gateway: a new one beyond it is rejected (`venue-busy`).
    #[must_use]
    pub fn with_gateway_limit(self, limit: Option<u64>) -> Self {
        let counts_gateways = self.counts_gateways || limit.is_some();
        Self { gateway_limit: limit, restricts_gateways: limit.is_some(), counts_gateways, ..self }
    }

    /// Continues from a snapshot, in a core in which nothing has happened. What is read back is not trusted. After an error
    /// the core is of no use.
    ///
    /// # Errors
    /// Names the part that is not of a run like this one.
    pub(crate) fn restore(&mut self, saved: SavedCore) -> Result<(), &'static str> {
        let Core {
            sessions,
            positions,
            risk,
            kills,
            next_switch,
            venue_budgets,
            gateway_orders,
            gateways,
            refused,
            ..
        } = saved;
        let Checksums { to_gateway, to_strategy, reports } = saved.checksums;
        if !(0..).zip(&sessions).all(|(index, session)| session.strategy == index) {
            return Err("strategies");
        }
        replace(&mut self.sessions, sessions).ok_or("strategies")?;
        self.dying = self.sessions.iter().filter(|session| session.is_dying()).count();
        self.positions.restore(positions).ok_or("positions")?;
        self.risk.restore(risk).ok_or("limits")?;
        if kills.len() > max_kills(self.sessions.len())
            || !kills.iter().all(|kill| self.risk.has(kill.switch.scope))
        {
            return Err("kill switches");
        }
        // The allocation stays.
        self.kills.extend(kills);
        replace(&mut self.venue_budgets, venue_budgets).ok_or("orders of the plan")?;
        replace(&mut self.gateway_orders, gateway_orders).ok_or("orders at gateways")?;
        replace(&mut self.gateways, gateways).ok_or("states of gateways")?;
        self.dying += self.gateways.iter().filter(|session| session.is_closing()).count();
        self.restrict_gateways();
        replace(&mut self.refused, refused).ok_or("reasons of rejections")?;
        replace(&mut self.checksums.to_gateway, to_gateway).ok_or("gateways")?;
        replace(&mut self.checksums.to_strategy, to_strategy).ok_or("strategies")?;
        (self.checksums.reports, self.next_switch) = (reports, next_switch);
        (self.counts, self.sender_is_authenticated) = (saved.counts, saved.sender_is_authenticated);
        Ok(())
    }

    /// Applies one input and produces its effects, in order.
    #[inline(always)]
    pub fn apply(&mut self, input: Input, at: Moment, out: &mut impl Effects) {
        match input {
            Input::Order { from, message } => self.order(from.map(usize::from), &message, at, out),
            Input::Report { gateway, message } => self.report(gateway, &message, out),
            cold => self.apply_cold(cold, at, out),
        }
    }

    #[cold]
    fn apply_cold(&mut self, input: Input, at: Moment, out: &mut impl Effects) {
        self.book();
        match input {
            Input::Lifecycle { strategy, life } => self.lifecycle(strategy.into(), life, at, out),
            Input::Retired { strategy } => self.retired(strategy.into(), out),
            Input::GatewayLife { gateway, life } => self.gateway_life(gateway.into(), life, at, out),
            Input::GatewayDrained { gateway } => self.gateway_drained(gateway.into(), out),
            Input::Command { number, command } => self.command(number, command, out),
            Input::Violation { from, why } => self.violation(from.map(usize::from), why, out),
            Input::Recalled { message } => self.recalled(&message, at, out),
            Input::Order { .. } | Input::Report { .. } => {}
        }
        self.book();
    }

    /// Returns `true` if an input names only what the run has.
    pub(crate) fn accepts(&self, input: &Input) -> bool {
        let is_strategy = |strategy: u16| usize::from(strategy) < self.sessions.len();
        let is_gateway = |gateway: u16| usize::from(gateway) < self.gateways.len();
        match *input {
            Input::Order { from, .. } | Input::Violation { from, .. } => from.is_none_or(is_strategy),
            Input::Report { gateway, .. } => gateway.is_none_or(is_gateway),
            Input::GatewayLife { gateway, .. } | Input::GatewayDrained { gateway } => is_gateway(gateway),
            Input::Lifecycle { strategy, .. } | Input::Retired { strategy } => is_strategy(strategy),
            Input::Recalled { message } => Order::from_message(message).is_ok_and(|order| {
                let is_venue = usize::from(order.venue) < self.venues;
                is_strategy(order.id.strategy()) && is_venue && self.counts.dispatched > 0
            }),
            Input::Command { .. } => true,
        }
    }

    pub(crate) fn strategies(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn gateways(&self) -> usize {
        self.gateway_orders.len()
    }

    pub(crate) const fn positions(&self) -> &Positions {
        &self.positions
    }

    pub(crate) fn refused(&self) -> &[u64] {
        &self.refused
    }

    pub(crate) fn sessions(&self) -> &[StrategySession] {
        &self.sessions
    }

    /// Returns `true` if a message is the next order of a living incarnation of the strategy that it names.
    #[inline(always)]
    pub(crate) fn expects(&self, message: &Message) -> bool {
        let id = OrderId::from_word(message[0]);
        self.sessions.get(usize::from(id.strategy())).is_some_and(|session| session.is_next(id))
    }

    /// Returns `true` if an order that is still queued for its gateway must not go: its sender or its gateway is dead, or a kill
    /// switch stops it.
    #[cold]
    pub fn must_recall(&self, message: &Message) -> bool {
        let Ok(order) = Order::from_message(*message) else { return false };
        let session = self.sessions.get(usize::from(order.id.strategy()));
        session.is_some_and(|session| {
            !session.is_current(order.id) || self.risk.stops(&order) || self.is_for_dead_gateway(message)
        })
    }

    /// Logs checksums and positions; once, after the last input.
    pub(crate) fn seal(&self, log: &mut StampLog) {
        for (session, returned) in self.sessions.iter().zip(&self.checksums.to_strategy) {
            let (strategy, epoch) = (session.strategy, session.epoch);
            log.append_checksum(LinkEnd::receiver(HandOff::Submit, strategy, epoch), session.taken);
            log.append_checksum(LinkEnd::sender(HandOff::Return, strategy, epoch), *returned);
        }
        for (gateway, sent) in (0..).zip(&self.checksums.to_gateway) {
            log.append_checksum(LinkEnd::sender(HandOff::Inbox, gateway, 0), *sent);
        }
        log.append_checksum(LinkEnd::receiver(HandOff::Completion, 0, 0), self.checksums.reports);
        self.positions.seal(log);
    }

    /// Fetches what the next order and the next report of a strategy need, at most `lines` cache lines of each kind.
    pub(crate) fn prefetch(&self, strategy: usize, lines: usize) {
        let session = &self.sessions[strategy];
        prefetch_lines(session, lines);
        self.risk.prefetch(strategy, lines);
        self.positions.prefetch_strategy(strategy, lines);
        if let Some(next) = session.next_order() {
            self.positions.prefetch(next);
        }
    }
}

/// Replaces a table by one that was read back. Returns `None` if it is of another length, and so of another run.
fn replace<T>(table: &mut Vec<T>, saved: Vec<T>) -> Option<()> {
    (table.len() == saved.len()).then(|| *table = saved)
}

#[cfg(test)]
pub(crate) mod tests;
