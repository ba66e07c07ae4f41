//! What positions are, as plain values.

use super::{Account, OpenOrder, Positions};
use protocol::wire::OrderId;
use serde::{Deserialize, Serialize};

/// What each strategy holds and has open.
#[derive(Serialize, Deserialize)]
pub(crate) struct PositionsState {
    pub accounts: Vec<Account>,
    pub strategies: Vec<StrategyState>,
}

/// Of one strategy.
#[derive(Serialize, Deserialize)]
pub(crate) struct StrategyState {
    pub requests: u64,
    /// Those in the window, and the others: which is where decides when there is no room for one more.
    pub orders: [Vec<OpenOrder>; 2],
}

impl Positions {
    pub(crate) fn state(&self) -> PositionsState {
        let strategies = (0..).zip(&self.strategies);
        let of = |(strategy, of): (u16, &super::OfStrategy)| StrategyState {
            requests: of.requests,
            orders: of.orders.all(strategy),
        };
        PositionsState { accounts: self.accounts.to_vec(), strategies: strategies.map(of).collect() }
    }

    /// Goes on from there, with nothing open yet; `None`: it cannot be of these strategies and instruments.
    pub(crate) fn restore(&mut self, state: &PositionsState) -> Option<()> {
        crate::copy_exact::copy_exact(&mut self.accounts, &state.accounts)?;
        (self.strategies.len() == state.strategies.len()).then_some(())?;
        let instruments = self.instruments;
        for ((strategy, of), state) in (0..).zip(&mut self.strategies).zip(&state.strategies) {
            let is_ours = |order: &OpenOrder| {
                OrderId::from_word(order.key).strategy() == strategy
                    && usize::from(order.instrument) < instruments
            };
            state.orders.iter().flatten().all(is_ours).then_some(())?;
            of.requests = state.requests;
            of.orders.put(&state.orders)?;
        }
        Some(())
    }
}
