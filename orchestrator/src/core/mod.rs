//! The engine's decisions as a pure state machine: an input comes in, effects go out.
//!
//! No ring, clock, log, doorbell or journal is in here, and no decision asks an output whether it has room. The same inputs give the
//! same effects, so the engine that is measured, the one that a journal rebuilds and the one that unit tests drive are one function:
//! [`Core::apply`]. (Fowler, "The LMAX Architecture", 2011, calls it the business logic processor; Aeron Cluster, a clustered service.)

mod accounting;
mod commands;
mod effects;
mod gateways;
mod input;
mod kill;
mod lifecycle;
mod orders;
mod session;
mod state;

pub use effects::{Effects, Notice};
pub(crate) use gateways::{GatewaySession, GatewayState};
pub use input::{Input, RecoveryError};
pub use kill::log_records;
pub use lifecycle::TOLERATED_OFFENCES;
pub(crate) use session::{SessionState, StrategySession};
pub(crate) use state::CoreState;

use crate::positions::Positions;
use crate::risk::{Risk, RiskSetup, SettingError};
use kill::Kills;
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

/// The engine's state and its decisions.
pub struct Core {
    pub(crate) sessions: Vec<StrategySession>,
    pub(crate) positions: Positions,
    pub(crate) risk: Risk,
    pub(crate) kills: Kills,
    /// Orders left in the plan for each strategy and venue; empty where the plan has no such limit.
    venue_budgets: Vec<u64>,
    /// Orders open at each gateway; counted only under a limit.
    gateway_orders: Vec<u64>,
    gateway_limit: Option<u64>,
    /// Which gateways are up.
    pub(crate) gateways: Vec<GatewaySession>,
    /// Orders are checked against the state of their gateways: there is a limit, or one of them is down.
    restricts_gateways: bool,
    /// Orders rejected, by the reason's code.
    refused: [u64; MAX_REASONS],
    credentials: usize,
    venues: usize,
    /// Whether the memory that the last order came through names its sender.
    sender_is_authenticated: bool,
    /// The last order that was sent, until it is booked.
    unbooked: Option<Order>,
    /// Sessions and gateways whose retirement has begun and not ended.
    dying: usize,
    counts: Counts,
    checksums: Checksums,
}

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
            kills: Kills::new(strategies),
            risk,
            venue_budgets: Vec::new(),
            gateway_orders: vec![0; gateways],
            gateway_limit: None,
            gateways: vec![GatewaySession::default(); gateways],
            restricts_gateways: false,
            refused: [0; MAX_REASONS],
            credentials,
            venues: setup.venues,
            sender_is_authenticated: true,
            unbooked: None,
            dying: 0,
            counts: Counts::default(),
            checksums: Checksums {
                to_gateway: vec![Checksum::default(); gateways],
                to_strategy: vec![Checksum::default(); strategies],
                reports: Checksum::default(),
            },
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
        Self { gateway_limit: limit, restricts_gateways: limit.is_some(), ..self }
    }

    /// Applies one input and produces its effects, in order.
    #[inline(always)]
    pub fn apply(&mut self, input: Input, at: Moment, out: &mut impl Effects) {
        match input {
            Input::Order { from, message } => self.order(from.map(usize::from), &message, at, out),
            Input::Report { message, .. } => self.report(&message, at, out),
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
            Input::Command { number, command } => self.command(number, command, at, out),
            Input::Violation { from, why } => self.violation(from.map(usize::from), why, out),
            Input::Recalled { message } => self.recalled(&message, at, out),
            Input::Order { .. } | Input::Report { .. } => {}
        }
        self.book();
    }

    /// Whether an input names only strategies and gateways that the run has.
    pub(crate) fn accepts(&self, input: &Input) -> bool {
        let is_strategy = |strategy: u16| usize::from(strategy) < self.sessions.len();
        let is_gateway = |gateway: u16| usize::from(gateway) < self.gateways.len();
        match *input {
            Input::Order { from, .. } | Input::Violation { from, .. } => from.is_none_or(is_strategy),
            Input::Report { gateway, .. } => gateway.is_none_or(is_gateway),
            Input::GatewayLife { gateway, .. } | Input::GatewayDrained { gateway } => is_gateway(gateway),
            Input::Lifecycle { strategy, .. } | Input::Retired { strategy } => is_strategy(strategy),
            Input::Recalled { message } => {
                let order = Order::from_message(message);
                order.is_ok_and(|order| {
                    is_strategy(order.id.strategy()) && usize::from(order.venue) < self.venues
                }) && self.counts.dispatched > 0
            }
            Input::Command { .. } => true,
        }
    }

    /// How many strategies there are.
    pub fn strategies(&self) -> usize {
        self.sessions.len()
    }

    /// How many gateways there are.
    pub fn gateways(&self) -> usize {
        self.gateway_orders.len()
    }

    /// What each strategy holds and has open.
    pub const fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Totals since the start of the run.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Orders rejected, by the reason's code.
    pub(crate) const fn refused(&self) -> &[u64; MAX_REASONS] {
        &self.refused
    }

    pub(crate) fn sessions(&self) -> &[StrategySession] {
        &self.sessions
    }

    /// Whether the retirement of some session or gateway has begun and not ended.
    #[inline(always)]
    pub(crate) const fn has_dying(&self) -> bool {
        self.dying > 0
    }

    /// The sender of the last order, if the memory that it came through names it.
    pub(crate) const fn sender_is_authenticated(&self) -> bool {
        self.sender_is_authenticated
    }

    /// Whether the message in a ring that several strategies write is the next order of a living incarnation.
    #[inline(always)]
    pub(crate) fn expects(&self, message: &Message) -> bool {
        let id = OrderId::from_word(message[0]);
        self.sessions.get(usize::from(id.strategy())).is_some_and(|session| session.is_next(id))
    }

    /// Whether an order that is still queued for its gateway must not go: its sender or its gateway is dead, or a kill switch stops it.
    #[cold]
    pub fn must_recall(&self, message: &Message) -> bool {
        let Ok(order) = Order::from_message(*message) else { return false };
        let session = self.sessions.get(usize::from(order.id.strategy()));
        session.is_some_and(|session| {
            !session.is_current(order.id) || self.risk.stops(&order) || self.is_for_dead_gateway(message)
        })
    }

    /// Writes checksums and positions into the log; once, after the last input.
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

    /// Fetches what the next order and the next report of one strategy will need, at most `lines` cache lines of each.
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
