//! What the controls remember and what their limits are, as plain values.

use super::Risk;
use super::bucket::Bucket;
use super::exposure::ExposuresState;
use super::limits::{AccountLimits, StrategyRow};
use super::price::TradedState;
use super::switches::Switches;
use crate::copy_exact::copy_exact;
use serde::{Deserialize, Serialize};

/// The state of the controls.
#[derive(Serialize, Deserialize)]
pub(crate) struct RiskState {
    pub strategies: Vec<StrategyRow>,
    pub accounts: Vec<AccountLimits>,
    pub traded: Vec<TradedState>,
    pub messages: Vec<Bucket>,
    pub rates: Vec<(u64, u64)>,
    pub exposures: ExposuresState,
    pub profits: Vec<i128>,
    pub limits_losses: bool,
    pub switches: Switches,
}

impl Risk {
    pub(crate) fn state(&self) -> RiskState {
        RiskState {
            strategies: self.strategies.to_vec(),
            accounts: self.accounts.to_vec(),
            traded: self.traded.iter().map(super::price::Traded::state).collect(),
            messages: self.messages.to_vec(),
            rates: self.rates.to_vec(),
            exposures: self.exposures.state(),
            profits: self.profits.to_vec(),
            limits_losses: self.limits_losses,
            switches: self.switches.clone(),
        }
    }

    /// Goes on from there; `None`: it is of another run's strategies, credentials, venues or instruments.
    pub(crate) fn restore(&mut self, state: &RiskState) -> Option<()> {
        let credentials = self.strategies.iter().map(|row| row.credential);
        state.strategies.iter().map(|row| row.credential).eq(credentials).then_some(())?;
        copy_exact(&mut self.strategies, &state.strategies)?;
        copy_exact(&mut self.accounts, &state.accounts)?;
        copy_exact(&mut self.messages, &state.messages)?;
        copy_exact(&mut self.rates, &state.rates)?;
        copy_exact(&mut self.profits, &state.profits)?;
        (self.traded.len() == state.traded.len()).then_some(())?;
        for (traded, state) in self.traded.iter_mut().zip(&state.traded) {
            traded.restore(state);
        }
        self.exposures.restore(&state.exposures)?;
        self.limits_losses = state.limits_losses;
        self.switches.is_like(&state.switches).then_some(())?;
        self.switches = state.switches.clone();
        // What the rows have of them follows.
        self.fold();
        Some(())
    }
}
