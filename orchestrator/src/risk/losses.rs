//! The loss limit: the profit of each strategy at reference prices, kept while a loss is limited.

use super::Risk;
use crate::positions::{Change, Positions};

impl Risk {
    /// Adds every profit up again: a limit was set.
    pub(super) fn recompute_profits(&mut self, positions: &Positions) {
        for (strategy, row) in self.strategies.iter_mut().enumerate() {
            let of = |(instrument, traded): (u16, &super::Traded)| match traded.reference {
                0 => 0,
                reference => positions.account(strategy, instrument).profit(reference),
            };
            row.profit = (0..).zip(&self.traded).map(of).fold(0, i128::wrapping_add);
        }
    }

    /// Books a fill at `price`, after which the reference price has `moved`. Returns a strategy
    /// that has lost more than it may and is not killed yet.
    #[cold]
    pub(super) fn book_loss(
        &mut self,
        strategy: usize,
        change: &Change,
        price: i64,
        moved: i64,
        positions: &Positions,
    ) -> Option<usize> {
        let reference = self.traded[usize::from(change.instrument)].reference;
        if reference == 0 {
            return None;
        }
        // The fill counts at the reference price before it; the move then counts for all that is
        // held.
        let before = i128::from(reference.wrapping_sub(moved));
        let gained = i128::from(change.filled).wrapping_mul(before - i128::from(price));
        let profit = &mut self.strategies[strategy].profit;
        *profit = profit.wrapping_add(gained);
        if moved != 0 {
            for (other, row) in self.strategies.iter_mut().enumerate() {
                let net = i128::from(positions.account(other, change.instrument).net);
                row.profit = row.profit.wrapping_add(net * i128::from(moved));
            }
        }
        let has_lost = |strategy: &usize| {
            let row = &self.strategies[*strategy];
            row.max_loss.is_some_and(|max| row.profit < -max.cast_signed()) && !self.is_killed(*strategy)
        };
        if moved == 0 { Some(strategy).filter(has_lost) } else { (0..self.strategies.len()).find(has_lost) }
    }
}
