//! The engine's decisions as a pure state machine: an input comes in, effects go out.
//!
//! It has no ring, clock, log, doorbell or journal, and no decision depends on an output's
//! capacity. Equal inputs give equal effects. (Aeron Cluster: a clustered service.)

mod booking;
mod effects;
mod gateways;
mod input;
mod kill;
mod lifecycle;
mod orders;
mod questions;
mod reports;
mod session;

pub use effects::{Effects, LifecycleNotice, OperatorNotice};
pub(crate) use gateways::{GatewaySession, GatewayState};
pub use input::Input;
pub use kill::log_records;
pub use lifecycle::TOLERATED_OFFENSES;
pub(crate) use session::{SessionState, StrategySession};

use crate::positions::{Positions, SavedOrders};
use crate::risk::{Risk, RiskSetup, SettingError};
use kill::{UnconfirmedKill, max_kills};
use protocol::checksum::Checksum;
use protocol::commands::MAX_REASONS;
use protocol::index::{GatewayIndex, PerGateway, PerStrategy, StrategyIndex};
use protocol::record::Record;
use protocol::stamps::{HandOff, LinkEnd};
use protocol::wire::Order;
use serde::{Deserialize, Serialize};
use shm::prefetch::prefetch_lines;

const MAX_OPEN: usize = 1 << 24;

/// The engine's totals of orders and reports since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of orders sent to gateways, without recalled ones.
    pub dispatched: u64,
    /// Number of reports taken from gateways.
    pub reports: u64,
    /// Number of orders that have their last report.
    pub settled: u64,
    /// Number of orders rejected.
    pub rejected: u64,
    /// Number of invalid inputs that the engine received.
    pub faults: u64,
}

/// The engine's state machine: sessions, positions, risk limits and kill switches. Encoded it is a
/// snapshot: skipped fields come from the plan or follow from the rest.
#[derive(Serialize, Deserialize)]
pub struct Core {
    pub(crate) sessions: PerStrategy<StrategySession>,
    pub(crate) gateways: PerGateway<GatewaySession>,
    pub(crate) positions: Positions,
    pub(crate) risk: Risk,
    /// Kill switches with unconfirmed orders. Allocated once for [`max_kills`].
    pub(crate) kills: Vec<UnconfirmedKill>,
    next_switch: u32,
    /// Orders left in the plan for each strategy and venue; empty if the plan has no such limit.
    venue_budgets: Vec<u64>,
    pub(crate) rejected_by_reason: Vec<u64>,
    pub(crate) counts: Counts,
    pub(crate) reported: Checksum,
    /// Time of the current input, in ticks since the run's start.
    #[serde(skip)]
    now: u64,
    /// The order sent by the last input, booked with the next one or after its duty cycle.
    #[serde(skip)]
    unbooked: Option<Order>,
    #[serde(skip)]
    pub(crate) dying: usize,
    /// Number of credentials, from the plan.
    #[serde(skip)]
    credentials: u16,
    /// Gateways whose successor resumes their session, from the plan.
    #[serde(skip)]
    resumable: PerGateway<bool>,
}

pub(crate) type SavedCore = (Core, Vec<SavedOrders>);

impl Core {
    /// Creates the engine's state machine in its state before the first input.
    pub fn new(setup: &RiskSetup<'_>) -> Result<Self, SettingError> {
        let risk = Risk::new(setup)?;
        let RiskSetup { strategies, spares, venues, .. } = *setup;
        let credentials = setup.credentials.max(1);
        let max_open = usize::try_from(setup.max_open).unwrap_or(usize::MAX).min(MAX_OPEN);
        let budget = |index: usize| setup.orders.get(index).copied().unwrap_or(u64::MAX);
        let session = |strategy: StrategyIndex| {
            let session = StrategySession::new(strategy, budget(strategy.as_usize()));
            if strategy.as_usize() + spares < strategies { session } else { session.retired() }
        };
        Ok(Self {
            sessions: PerStrategy::from_fn(strategies, session),
            gateways: PerGateway::filled(GatewaySession::default(), venues * credentials),
            positions: Positions::new(strategies, risk.traded.len(), max_open),
            risk,
            kills: Vec::with_capacity(max_kills(strategies)),
            next_switch: 0,
            venue_budgets: setup.venue_orders.to_vec(),
            rejected_by_reason: vec![0; MAX_REASONS],
            counts: Counts::default(),
            reported: Checksum::default(),
            now: 0,
            unbooked: None,
            dying: 0,
            credentials: credentials as u16,
            resumable: setup.resumable_gateways.to_vec().into(),
        })
    }

    pub(crate) fn save(&self) -> impl Serialize {
        debug_assert!(self.unbooked.is_none(), "only replicas are saved, and they replay");
        (self, self.positions.open_orders())
    }

    /// Restores an untrusted snapshot into a new state machine, which is unusable after an error.
    /// Returns the part that does not fit this run.
    pub(crate) fn restore(&mut self, (saved, orders): SavedCore) -> Result<(), &'static str> {
        let mut fresh = std::mem::replace(self, saved);
        let strategy = |session: &StrategySession| session.strategy;
        let is_of_run = fresh.sessions.iter().map(strategy).eq(self.sessions.iter().map(strategy))
            && fresh.gateways.len() == self.gateways.len()
            && fresh.venue_budgets.len() == self.venue_budgets.len()
            && fresh.rejected_by_reason.len() == self.rejected_by_reason.len();
        is_of_run.then_some(()).ok_or("strategies and gateways")?;
        self.positions.restore(fresh.positions, &orders).ok_or("positions")?;
        self.risk.restore(fresh.risk).ok_or("limits")?;
        let is_known = |kill: &UnconfirmedKill| self.risk.has_scope(kill.switch.scope);
        let max = max_kills(self.sessions.len());
        let are_known = self.kills.len() <= max && self.kills.iter().all(is_known);
        are_known.then_some(()).ok_or("kill switches")?;
        // Retains the allocation.
        fresh.kills.append(&mut self.kills);
        (self.kills, self.resumable) = (fresh.kills, fresh.resumable);
        self.credentials = fresh.credentials;
        self.dying = self.sessions.iter().filter(|session| session.is_dying()).count()
            + self.gateways.iter().filter(|session| session.is_closing()).count();
        Ok(())
    }

    /// Applies one input to the state machine, and passes the effects to `out` in order. `now` is
    /// in ticks since the run's start.
    #[inline(always)]
    pub fn apply(&mut self, input: Input, now: u64, out: &mut (impl Effects + ?Sized)) {
        self.now = now;
        match input {
            Input::Order { from, message } => self.handle_order(from, &message, out),
            Input::Report { gateway, message } => self.handle_report(gateway, &message, out),
            cold => self.apply_cold(cold, out.off_path()),
        }
    }

    /// Applies one input as [`Core::apply`] does, but not in an order's path: this function is
    /// compiled once for all receivers.
    #[cold]
    #[inline(never)]
    pub(crate) fn apply_off_path(&mut self, input: Input, now: u64, out: &mut dyn Effects) {
        self.apply(input, now, out);
    }

    #[cold]
    fn apply_cold(&mut self, input: Input, out: &mut dyn Effects) {
        self.book_last_order();
        match input {
            Input::Lifecycle { strategy, life } => self.apply_fence(strategy, life, out),
            Input::Retired { strategy } => self.finish_retirement(strategy, out),
            Input::GatewayLife { gateway, life } => self.apply_gateway_fence(gateway, life, out),
            Input::GatewayDrained { gateway } => self.finish_gateway_retirement(gateway, out),
            Input::Command { number, command } => self.handle_command(number, command, out),
            Input::Violation { from, why } => self.quarantine(from, why, out),
            Input::Recalled { message } => self.handle_recalled(&message, out),
            Input::Order { .. } | Input::Report { .. } => {}
        }
    }

    /// Applies an input of a journal, as [`Core::apply`] does, and leaves nothing to be booked.
    pub(crate) fn replay(&mut self, input: Input, now: u64, out: &mut impl Effects) {
        self.apply(input, now, out);
        self.book_last_order();
    }

    /// Returns `true` if strategy, gateway and other indices of an input exist in the run.
    pub(crate) fn can_apply(&self, input: &Input) -> bool {
        let is_strategy = |strategy| self.sessions.has(strategy);
        let is_gateway = |gateway| self.gateways.has(gateway);
        match *input {
            Input::Order { from, .. } | Input::Violation { from, .. } => from.is_none_or(is_strategy),
            Input::Report { gateway, .. } => gateway.is_none_or(is_gateway),
            Input::GatewayLife { gateway, .. } | Input::GatewayDrained { gateway } => is_gateway(gateway),
            Input::Lifecycle { strategy, .. } | Input::Retired { strategy } => is_strategy(strategy),
            Input::Recalled { message } => Order::from_message(message).is_ok_and(|order| {
                let is_venue = usize::from(order.request.venue) < self.risk.venues();
                is_strategy(order.id.strategy()) && is_venue && self.counts.dispatched > 0
            }),
            Input::Command { .. } => true,
        }
    }

    /// Returns the log records of all positions. The last order is booked.
    pub(crate) fn position_records(&self) -> impl Iterator<Item = Record> {
        debug_assert!(self.unbooked.is_none(), "it is booked after each cycle with work");
        self.positions.records()
    }

    /// Returns the checksum of each link end of the engine: what it took and what it sent.
    pub(crate) fn checksums(&self) -> impl Iterator<Item = (LinkEnd, Checksum)> {
        let of_strategy = |session: &StrategySession| {
            let StrategySession { strategy, epoch, taken, returned, .. } = *session;
            let submit = LinkEnd::receiver(HandOff::Submit, strategy.0, epoch);
            [(submit, taken), (LinkEnd::sender(HandOff::Return, strategy.0, epoch), returned)]
        };
        let of_gateway = |(gateway, session): (GatewayIndex, &GatewaySession)| {
            (LinkEnd::sender(HandOff::Inbox, gateway.0, 0), session.sent)
        };
        self.sessions
            .iter()
            .flat_map(of_strategy)
            .chain(self.gateways.enumerate().map(of_gateway))
            .chain([(LinkEnd::receiver(HandOff::Completion, 0, 0), self.reported)])
    }

    /// Prefetches the state that a strategy's next order and report need, at most `lines` cache
    /// lines of each kind.
    pub(crate) fn prefetch(&self, strategy: StrategyIndex, lines: usize) {
        let session = &self.sessions[strategy];
        prefetch_lines(session, lines);
        self.risk.prefetch(strategy, lines);
        self.positions.prefetch_strategy(strategy, lines);
        if let Some(next) = session.next_order() {
            self.positions.prefetch(next);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
