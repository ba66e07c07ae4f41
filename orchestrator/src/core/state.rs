//! The core's state as plain values: what a snapshot holds.
//!
//! Only what decides about later inputs is in it. What is read back is not trusted: every index is checked.

use super::gateways::GatewaySession;
use super::kill::Kills;
use super::session::StrategySession;
use super::{Checksums, Core, Counts, SessionState};
use crate::copy_exact::copy_exact;
use crate::positions::PositionsState;
use crate::risk::RiskState;
use serde::{Deserialize, Serialize};

/// The state of a [`Core`].
#[derive(Serialize, Deserialize)]
pub(crate) struct CoreState {
    pub sessions: Vec<StrategySession>,
    pub positions: PositionsState,
    pub risk: RiskState,
    pub kills: Kills,
    pub venue_budgets: Vec<u64>,
    pub gateway_orders: Vec<u64>,
    pub gateways: Vec<GatewaySession>,
    pub refused: Vec<u64>,
    pub sender_is_authenticated: bool,
    counts: Counts,
    pub checksums: Checksums,
}

impl Core {
    /// The state; every order that was sent is booked.
    pub(crate) fn state(&self) -> CoreState {
        debug_assert!(self.unbooked.is_none(), "booked after each input");
        CoreState {
            sessions: self.sessions.clone(),
            positions: self.positions.state(),
            risk: self.risk.state(),
            kills: self.kills.clone(),
            venue_budgets: self.venue_budgets.clone(),
            gateway_orders: self.gateway_orders.clone(),
            gateways: self.gateways.clone(),
            refused: self.refused.to_vec(),
            sender_is_authenticated: self.sender_is_authenticated,
            counts: self.counts,
            checksums: self.checksums.clone(),
        }
    }

    /// Continues from a state, in a core in which nothing has happened yet. After an error the core is of no use.
    ///
    /// # Errors
    /// Names the part that is not of a run like this one.
    pub(crate) fn restore(&mut self, state: &CoreState) -> Result<(), &'static str> {
        self.restore_sessions(&state.sessions).ok_or("strategies")?;
        self.positions.restore(&state.positions).ok_or("positions")?;
        self.risk.restore(&state.risk).ok_or("limits")?;
        self.kills.restore(&state.kills, &self.risk).ok_or("kill switches")?;
        copy_exact(&mut self.venue_budgets, &state.venue_budgets).ok_or("orders of the plan")?;
        copy_exact(&mut self.gateway_orders, &state.gateway_orders).ok_or("orders at gateways")?;
        copy_exact(&mut self.gateways, &state.gateways).ok_or("states of gateways")?;
        self.dying += self.gateways.iter().filter(|session| session.is_closing()).count();
        self.restrict_gateways();
        copy_exact(&mut self.refused, &state.refused).ok_or("reasons of rejections")?;
        let Checksums { to_gateway, to_strategy, reports } = &state.checksums;
        copy_exact(&mut self.checksums.to_gateway, to_gateway).ok_or("gateways")?;
        copy_exact(&mut self.checksums.to_strategy, to_strategy).ok_or("strategies")?;
        self.checksums.reports = *reports;
        self.counts = state.counts;
        self.sender_is_authenticated = state.sender_is_authenticated;
        Ok(())
    }

    fn restore_sessions(&mut self, sessions: &[StrategySession]) -> Option<()> {
        sessions
            .iter()
            .enumerate()
            .all(|(index, session)| usize::from(session.strategy) == index)
            .then_some(())?;
        copy_exact(&mut self.sessions, sessions)?;
        let is_dying = |session: &&StrategySession| matches!(session.state, SessionState::Dying { .. });
        self.dying = self.sessions.iter().filter(is_dying).count();
        Some(())
    }
}
