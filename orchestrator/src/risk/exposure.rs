//! Gross and net exposure of each credential, updated with every order and report (defined in
//! `docs/src/risk.md`).
//!
//! An order raises each of them by at most its value. So each credential has an allowance in one
//! word: the distance to its nearest limit when last computed, less all values sent since. An order
//! within it passes, and nearly always a check reads nothing else. Otherwise the order is checked
//! exactly and the allowance is recomputed.

use super::Risk;
use super::limits::{StrategyRow, money};
use super::price::Listing;
use crate::positions::{Change, Positions};
use protocol::instrument::MAX_VALUE;
use protocol::limits::RiskControl;
use protocol::reject::Reject;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct LongShort {
    long: i64,
    short: i64,
}

impl LongShort {
    /// `long` is never below `short`.
    #[inline(always)]
    const fn gross(self) -> i64 {
        let down = self.short.wrapping_neg();
        if self.long > down { self.long } else { down }
    }
}

/// A credential's exposure, in price times quantity. Wraps on overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CredentialExposure {
    allowance: u64,
    gross: i128,
    long: i128,
    short: i128,
    max_gross: i128,
    max_net: i128,
    max_gross_quantity: i64,
}

impl CredentialExposure {
    const NONE: Self = Self {
        allowance: 0,
        gross: 0,
        long: 0,
        short: 0,
        max_gross: OFF,
        max_net: OFF,
        max_gross_quantity: 0,
    };

    fn is_on(&self) -> bool {
        (self.max_gross, self.max_net) != (OFF, OFF)
    }

    /// Sets the value that reaches no limit, nor a quantity above [`MOST`]: no value is below its
    /// quantity.
    #[cold]
    #[inline(never)]
    fn set_allowance(&mut self) {
        let net = self.long.max(self.short.wrapping_neg());
        let left = self.max_gross.saturating_sub(self.gross).min(self.max_net.saturating_sub(net));
        let held = i128::from(MAX_VALUE.cast_signed().saturating_sub(self.max_gross_quantity));
        self.allowance =
            if self.is_on() { left.min(held).clamp(0, i64::MAX.into()) as u64 } else { u64::MAX };
    }

    #[inline(always)]
    fn add(&mut self, gross: i64, long: i64, short: i64, price: i64) {
        self.gross = self.gross.wrapping_add(times(gross, price));
        self.long = self.long.wrapping_add(times(long, price));
        self.short = self.short.wrapping_add(times(short, price));
    }

    #[inline(always)]
    fn spend(&mut self, quantity: u64, price: i64) {
        let worth = u128::from(quantity) * u128::from(price.unsigned_abs());
        self.allowance = u64::try_from(worth).map_or(0, |worth| self.allowance.saturating_sub(worth));
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Exposures {
    credentials: Box<[CredentialExposure]>,
    quantities: Box<[LongShort]>,
    instruments: usize,
    is_on: bool,
}

const OFF: i128 = i128::MAX;

fn times(quantity: i64, price: i64) -> i128 {
    i128::from(quantity) * i128::from(price)
}

impl Exposures {
    pub(crate) fn new(credentials: usize, instruments: usize) -> Self {
        Self {
            credentials: vec![CredentialExposure::NONE; credentials].into(),
            quantities: vec![LongShort::default(); credentials * instruments].into(),
            instruments,
            is_on: false,
        }
    }

    /// Sets a credential's exposure limit in cents; [`Exposures::recompute`] follows.
    pub(crate) fn set(&mut self, credential: usize, control: RiskControl, cents: u64) {
        let (limit, of) = (money(cents).map_or(OFF, u128::cast_signed), &mut self.credentials[credential]);
        match control {
            RiskControl::GrossExposure => of.max_gross = limit,
            RiskControl::NetExposure => of.max_net = limit,
            _ => {}
        }
    }

    pub(super) fn recompute(&mut self, positions: &Positions, rows: &[StrategyRow], traded: &[Listing]) {
        self.quantities.fill(LongShort::default());
        for (strategy, row) in rows.iter().enumerate() {
            for instrument in 0..self.instruments {
                let account = positions.account(strategy, instrument as u16);
                let held = &mut self.quantities[usize::from(row.credential) * self.instruments + instrument];
                held.long = held.long.wrapping_add(account.long());
                held.short = held.short.wrapping_add(account.short());
            }
        }
        for (of, held) in self.credentials.iter_mut().zip(self.quantities.chunks(self.instruments)) {
            let sum = |part: fn(LongShort) -> i64| {
                let worth = |(held, traded): (&LongShort, &Listing)| times(part(*held), traded.reference);
                held.iter().zip(traded).map(worth).fold(0, i128::wrapping_add)
            };
            (of.gross, of.long, of.short) =
                (sum(LongShort::gross), sum(|held| held.long), sum(|held| held.short));
            of.max_gross_quantity = held.iter().map(|held| held.gross()).max().unwrap_or(0);
            of.set_allowance();
        }
        self.is_on = self.credentials.iter().any(CredentialExposure::is_on);
    }

    #[inline(always)]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline(always)]
    pub(crate) fn check(
        &mut self,
        credential: usize,
        instrument: u16,
        is_buy: bool,
        more: i64,
        reference: i64,
    ) -> Result<(), Reject> {
        let worth = u128::from(more.cast_unsigned()) * u128::from(reference.cast_unsigned());
        let of = &mut self.credentials[credential];
        if worth <= u128::from(of.allowance) && reference > 0 {
            return Ok(());
        }
        of.set_allowance();
        self.check_exactly(credential, instrument, is_buy, more, reference)
    }

    #[inline(never)]
    pub(super) fn check_exactly(
        &self,
        credential: usize,
        instrument: u16,
        is_buy: bool,
        more: i64,
        reference: i64,
    ) -> Result<(), Reject> {
        let of = &self.credentials[credential];
        if !of.is_on() {
            return Ok(());
        }
        if reference == 0 {
            return Err(Reject::NoReference);
        }
        let held = self.quantities[credential * self.instruments + usize::from(instrument)];
        let worth = times(more, reference);
        let net = select_unpredictable(is_buy, of.long.wrapping_add(worth), worth.wrapping_sub(of.short));
        let bought = select_unpredictable(is_buy, more, 0);
        let then = LongShort {
            long: held.long.saturating_add(bought),
            short: held.short.saturating_sub(more - bought),
        };
        if then.gross() > MAX_VALUE.cast_signed() {
            return Err(Reject::Overflow);
        }
        if of.gross.wrapping_add(times(then.gross().wrapping_sub(held.gross()), reference)) > of.max_gross {
            return Err(Reject::GrossExposure);
        }
        if net > of.max_net {
            return Err(Reject::NetExposure);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn book(&mut self, credential: usize, change: &Change, reference: i64) {
        let held = &mut self.quantities[credential * self.instruments + usize::from(change.instrument)];
        let before = held.gross();
        held.long = held.long.wrapping_add(change.long);
        held.short = held.short.wrapping_add(change.short);
        let grown = held.gross().wrapping_sub(before);
        let of = &mut self.credentials[credential];
        of.add(grown, change.long, change.short, reference);
        of.max_gross_quantity = of.max_gross_quantity.max(held.gross());
        let opened = change.long.max(0).wrapping_sub(change.short.min(0));
        of.spend(opened.cast_unsigned(), reference);
    }

    pub(crate) fn revalue(&mut self, instrument: u16, by: i64) {
        for (of, held) in self.credentials.iter_mut().zip(self.quantities.chunks(self.instruments)) {
            let held = held[usize::from(instrument)];
            of.add(held.gross(), held.long, held.short, by);
            // Net moves by no more than gross.
            of.spend(held.gross().unsigned_abs(), by);
        }
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        let lengths = |of: &Self| (of.credentials.len(), of.quantities.len(), of.instruments);
        lengths(self) == lengths(other)
    }

    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<(i128, i128, i128)> {
        self.credentials.iter().map(|of| (of.gross, of.long, of.short)).collect()
    }
}

impl Risk {
    /// Recomputes the profit of every strategy after a limit was set.
    pub(super) fn recompute_profits(&mut self, positions: &Positions) {
        for (strategy, row) in self.strategies.iter_mut().enumerate() {
            let of = |(instrument, traded): (u16, &super::Listing)| match traded.reference {
                0 => 0,
                reference => positions.account(strategy, instrument).profit(reference),
            };
            row.profit = (0..).zip(&self.traded).map(of).fold(0, i128::wrapping_add);
        }
    }

    /// Updates strategies' profits by a fill at `price`, which changed the reference price by
    /// `moved`. Returns a strategy that exceeds its loss limit and is not killed yet.
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
        // The fill counts at the previous reference price; the change then applies to all.
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
