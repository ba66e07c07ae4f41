//! The largest loss: the profit of each strategy at reference prices, kept up to date where a loss is limited.

use super::Risk;
use crate::positions::{Change, Positions};

impl Risk {
    /// Adds every profit up anew: what is needed where a limit is set.
    pub(super) fn reckon_profits(&mut self, positions: &Positions) {
        let traded = &self.traded;
        for (strategy, profit) in self.profits.iter_mut().enumerate() {
            let of = |instrument: usize| {
                let reference = traded[instrument].reference();
                let account = positions.account(strategy, instrument as u16);
                if reference == 0 { 0 } else { account.profit(reference) }
            };
            *profit = (0..traded.len()).map(of).fold(0, i128::wrapping_add);
        }
    }

    /// A fill at that price, after which the reference price has `moved`. A strategy that has lost more than it may now, unless its
    /// kill switch is on already.
    #[cold]
    pub(super) fn lose(
        &mut self,
        strategy: usize,
        change: &Change,
        price: i64,
        moved: i64,
        positions: &Positions,
    ) -> Option<usize> {
        let reference = self.traded[usize::from(change.instrument)].reference();
        if reference == 0 {
            return None;
        }
        // At the reference price of before: what was held then is worth more by what it moved, with what was filled.
        let before = i128::from(reference.wrapping_sub(moved));
        let gained = i128::from(change.filled).wrapping_mul(before - i128::from(price));
        self.profits[strategy] = self.profits[strategy].wrapping_add(gained);
        if moved != 0 {
            for (other, profit) in self.profits.iter_mut().enumerate() {
                let net = i128::from(positions.account(other, change.instrument).net);
                *profit = profit.wrapping_add(net * i128::from(moved));
            }
        }
        let has_lost = |strategy: &usize| {
            let most = self.strategies[*strategy].max_loss;
            most.is_some_and(|most| self.profits[*strategy] < -most.cast_signed())
                && !self.is_killed(*strategy)
        };
        if moved == 0 {
            return Some(strategy).filter(has_lost);
        }
        (0..self.profits.len()).find(has_lost)
    }
}
