//! One strategy's account in one instrument: quantity held, cost, open quantity.

use protocol::wire::Side;
use serde::{Deserialize, Serialize};

/// A strategy's net position, cost and open order quantities in one instrument, in one cache line.
/// Quantities are in 1e-8 units, prices in cents, money is price times quantity. All of them wrap
/// rather than stop the engine.
///
/// The merge of a run computes the same from the logged fills, by the rule in `docs/src/risk.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(align(64))]
pub struct Account {
    /// Net quantity: bought minus sold.
    pub net: i64,
    /// Open quantity of buy orders; an order that is being replaced counts with the larger of both
    /// quantities.
    pub open_buy: i64,
    /// Open quantity of sell orders.
    pub open_sell: i64,
    /// Number of fills.
    pub fills: u64,
    /// Cost of the position in price times quantity: paid minus received.
    pub cost: i128,
    /// Realized profit, in price times quantity.
    pub realised: i128,
}

impl Account {
    /// Returns the net quantity, in 1e-8 of the instrument's unit, if all open buy orders were
    /// filled and no open sell order.
    #[inline(always)]
    pub const fn max_position(&self) -> i64 {
        self.net.wrapping_add(self.open_buy)
    }

    /// Returns the net quantity, in 1e-8 of the instrument's unit, if all open sell orders were
    /// filled and no open buy order.
    #[inline(always)]
    pub const fn min_position(&self) -> i64 {
        self.net.wrapping_sub(self.open_sell)
    }

    /// Returns the average price of the quantity held, in cents; 0 without one.
    pub(crate) fn average_price(&self) -> i64 {
        let basis = self.cost.wrapping_add(self.realised);
        basis.checked_div(self.net.into()).unwrap_or(0) as i64
    }

    #[inline(always)]
    pub(crate) fn fill(&mut self, side: Side, quantity: u64, price: i64) -> i64 {
        let signed = match side {
            Side::Buy => quantity.cast_signed(),
            Side::Sell => quantity.cast_signed().wrapping_neg(),
        };
        self.fills += 1;
        if (signed < 0) != (self.net < 0) && self.net != 0 && signed != 0 {
            self.close(signed, price);
        }
        self.net = self.net.wrapping_add(signed);
        self.cost = self.cost.wrapping_add(i128::from(signed) * i128::from(price));
        signed
    }

    #[inline(never)]
    fn close(&mut self, signed: i64, price: i64) {
        let held = self.net.unsigned_abs();
        let closed = i128::from(signed.unsigned_abs().min(held));
        let basis = self.cost.wrapping_add(self.realised);
        let released = if closed == i128::from(held) {
            basis
        } else if let (Ok(basis), Ok(closed)) = (i64::try_from(basis), i64::try_from(closed)) {
            // Nearly always: a division of 128 bits by 64 whose result fits.
            (i128::from(basis) * i128::from(closed)) / i128::from(held)
        } else {
            let held = i128::from(held);
            (basis / held).wrapping_mul(closed).wrapping_add(basis % held * closed / held)
        };
        let fetched = closed.wrapping_mul(i128::from(price)) * i128::from(self.net.signum());
        self.realised = self.realised.wrapping_add(fetched).wrapping_sub(released);
    }

    /// Returns the account's realized plus unrealized profit, in 1e-8 cents, at `price` in cents
    /// per unit of the instrument.
    #[inline]
    pub fn profit(&self, price: i64) -> i128 {
        (i128::from(self.net) * i128::from(price)).wrapping_sub(self.cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn account_of(fills: &[(bool, u64, i64)]) -> Account {
        let mut account = Account::default();
        for (is_buy, quantity, price) in fills {
            account.fill(if *is_buy { Side::Buy } else { Side::Sell }, *quantity, *price);
        }
        account
    }

    #[test]
    fn closing_realizes_at_average_price() {
        const BOUGHT: [(bool, u64, i64); 2] = [(true, 10, 100), (true, 10, 120)];
        for (fills, (net, realised, cost)) in [
            (&BOUGHT[..], (20, 0, 2_200)),
            (&[BOUGHT[0], BOUGHT[1], (false, 5, 130)], (15, 100, 1_550)),
            (&[BOUGHT[0], BOUGHT[1], (false, 25, 130)], (-5, 400, -1_050)),
            (&[(false, 4, 50), (true, 4, 60)], (0, -40, 40)),
        ] {
            let account = account_of(fills);
            assert_eq!((account.net, account.realised, account.cost), (net, realised, cost));
            let average = if net == 0 { 0 } else { (cost + realised) / i128::from(net) };
            assert_eq!(i128::from(account.average_price()), average);
        }
    }

    proptest! {
        #[test]
        fn account_equals_the_sum_of_fills(
            fills in prop::collection::vec((any::<bool>(), 0u64..1 << 40, 0i64..1 << 40), 0..60), at in 0i64..1 << 40,
        ) {
            let account = account_of(&fills);
            let signed = |is_buy: bool, quantity: u64| i128::from(quantity) * if is_buy { 1 } else { -1 };
            let net: i128 = fills.iter().map(|(is_buy, quantity, _)| signed(*is_buy, *quantity)).sum();
            let cost: i128 = fills.iter().map(|(b, quantity, price)| signed(*b, *quantity) * i128::from(*price)).sum();
            prop_assert_eq!((i128::from(account.net), account.cost), (net, cost));
            prop_assert_eq!(account.profit(at), net * i128::from(at) - cost);
            if net == 0 {
                prop_assert_eq!(account.realised, -cost, "nothing held: all of it is realised");
            }
        }

        #[test]
        fn realized_profit_follows_average_price(
            fills in prop::collection::vec((any::<bool>(), 1u64..1_000, 1i64..1_000), 0..60),
        ) {
            // The rule with an average that is not truncated.
            let (mut net, mut basis, mut realised, mut lost) = (0i128, 0f64, 0f64, 0f64);
            for (is_buy, quantity, price) in &fills {
                let signed = i128::from(*quantity) * if *is_buy { 1 } else { -1 };
                if net != 0 && (signed < 0) != (net < 0) {
                    let closed = signed.abs().min(net.abs()) as f64;
                    let released = basis * closed / net.abs() as f64;
                    realised += net.signum() as f64 * closed * *price as f64 - released;
                    basis -= released;
                    lost += 1.0;
                    let opens = signed.abs() as f64 - closed;
                    basis += signed.signum() as f64 * opens * *price as f64;
                } else {
                    basis += signed as f64 * *price as f64;
                }
                net += signed;
            }
            let difference = account_of(&fills).realised as f64 - realised;
            prop_assert!(difference.abs() <= lost + 1.0, "at most one unit is truncated a closing fill: {difference}");
        }

        #[test]
        fn extreme_fills_do_not_panic(
            fills in prop::collection::vec((any::<bool>(), any::<u64>(), any::<i64>()), 0..20),
        ) {
            let account = account_of(&fills);
            let _ = (account.max_position(), account.min_position(), account.profit(1));
        }
    }
}
