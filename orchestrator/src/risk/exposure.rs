//! Gross and net exposure of a credential, updated with every order and report (defined in
//! `docs/src/risk.md`).
//!
//! An order raises each of them by at most its value. So there is an allowance in one word: the
//! distance to the nearest limit when last computed, less all values sent since. An order within it
//! passes, and nearly always a check reads nothing else. Otherwise the order is checked exactly and
//! the allowance is recomputed.

use super::Risk;
use super::limits::money;
use super::price::Listing;
use crate::positions::{Change, Positions};
use protocol::index::StrategyIndex;
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

/// The exposure of a credential's strategies, in price times quantity. Wraps on overflow.
#[derive(Serialize, Deserialize)]
pub(crate) struct Exposure {
    allowance: u64,
    gross: i128,
    long: i128,
    short: i128,
    max_gross: i128,
    max_net: i128,
    max_gross_quantity: i64,
    /// By instrument.
    quantities: Box<[LongShort]>,
    is_on: bool,
}

const OFF: i128 = i128::MAX;

fn times(quantity: i64, price: i64) -> i128 {
    i128::from(quantity) * i128::from(price)
}

impl Exposure {
    pub(crate) fn new(instruments: usize) -> Self {
        Self {
            allowance: 0,
            gross: 0,
            long: 0,
            short: 0,
            max_gross: OFF,
            max_net: OFF,
            max_gross_quantity: 0,
            quantities: vec![LongShort::default(); instruments].into(),
            is_on: false,
        }
    }

    /// Sets the value that reaches no limit, nor a quantity above [`MAX_VALUE`]: no value is below
    /// its quantity.
    #[cold]
    #[inline(never)]
    fn set_allowance(&mut self) {
        let net = self.long.max(self.short.wrapping_neg());
        let left = self.max_gross.saturating_sub(self.gross).min(self.max_net.saturating_sub(net));
        let held = i128::from(MAX_VALUE.cast_signed().saturating_sub(self.max_gross_quantity));
        self.allowance = if self.is_on { left.min(held).clamp(0, i64::MAX.into()) as u64 } else { u64::MAX };
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

    /// Sets an exposure limit in cents; [`Exposure::recompute`] follows.
    pub(crate) fn set(&mut self, control: RiskControl, cents: u64) {
        let limit = money(cents).map_or(OFF, u128::cast_signed);
        match control {
            RiskControl::GrossExposure => self.max_gross = limit,
            RiskControl::NetExposure => self.max_net = limit,
            _ => {}
        }
    }

    pub(super) fn recompute(
        &mut self,
        positions: &Positions,
        is_member: impl Fn(&StrategyIndex) -> bool,
        traded: &[Listing],
    ) {
        (self.gross, self.long, self.short, self.max_gross_quantity) = (0, 0, 0, 0);
        for (instrument, listing) in (0u16..).zip(traded) {
            let mut held = LongShort::default();
            for strategy in positions.strategies.indices().filter(&is_member) {
                let account = positions.account(strategy, instrument);
                held.long = held.long.wrapping_add(account.max_position());
                held.short = held.short.wrapping_add(account.min_position());
            }
            self.quantities[usize::from(instrument)] = held;
            self.add(held.gross(), held.long, held.short, listing.reference);
            self.max_gross_quantity = self.max_gross_quantity.max(held.gross());
        }
        self.is_on = (self.max_gross, self.max_net) != (OFF, OFF);
        self.set_allowance();
    }

    #[inline(always)]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    #[inline(always)]
    pub(crate) fn check(
        &mut self,
        instrument: u16,
        is_buy: bool,
        more: i64,
        reference: i64,
    ) -> Result<(), Reject> {
        let worth = u128::from(more.cast_unsigned()) * u128::from(reference.cast_unsigned());
        if worth <= u128::from(self.allowance) && reference > 0 {
            return Ok(());
        }
        self.set_allowance();
        self.check_exactly(instrument, is_buy, more, reference)
    }

    #[inline(never)]
    pub(super) fn check_exactly(
        &self,
        instrument: u16,
        is_buy: bool,
        more: i64,
        reference: i64,
    ) -> Result<(), Reject> {
        if reference == 0 {
            return Err(Reject::NoReference);
        }
        let held = self.quantities[usize::from(instrument)];
        let worth = times(more, reference);
        let net = select_unpredictable(is_buy, self.long.wrapping_add(worth), worth.wrapping_sub(self.short));
        let bought = select_unpredictable(is_buy, more, 0);
        let projected = LongShort {
            long: held.long.saturating_add(bought),
            short: held.short.saturating_sub(more - bought),
        };
        if projected.gross() > MAX_VALUE.cast_signed() {
            return Err(Reject::Overflow);
        }
        if self.gross.wrapping_add(times(projected.gross().wrapping_sub(held.gross()), reference))
            > self.max_gross
        {
            return Err(Reject::GrossExposure);
        }
        if net > self.max_net {
            return Err(Reject::NetExposure);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn book(&mut self, change: &Change, reference: i64) {
        let held = &mut self.quantities[usize::from(change.instrument)];
        let before = held.gross();
        held.long = held.long.wrapping_add(change.long);
        held.short = held.short.wrapping_add(change.short);
        let gross = held.gross();
        self.add(gross.wrapping_sub(before), change.long, change.short, reference);
        self.max_gross_quantity = self.max_gross_quantity.max(gross);
        let opened = change.long.max(0).wrapping_sub(change.short.min(0));
        self.spend(opened.cast_unsigned(), reference);
    }

    pub(crate) fn revalue(&mut self, instrument: u16, by: i64) {
        let held = self.quantities[usize::from(instrument)];
        self.add(held.gross(), held.long, held.short, by);
        // Net moves by no more than gross.
        self.spend(held.gross().unsigned_abs(), by);
    }

    pub(super) fn fits(&self, other: &Self) -> bool {
        self.quantities.len() == other.quantities.len()
    }

    #[cfg(test)]
    pub(crate) const fn sums(&self) -> (i128, i128, i128) {
        (self.gross, self.long, self.short)
    }
}

impl Risk {
    pub(super) fn recompute_profits(&mut self, positions: &Positions) {
        for (strategy, row) in self.strategies.enumerate_mut() {
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
        strategy: StrategyIndex,
        change: &Change,
        price: i64,
        moved: i64,
        positions: &Positions,
    ) -> Option<StrategyIndex> {
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
            for (other, row) in self.strategies.enumerate_mut() {
                let net = i128::from(positions.account(other, change.instrument).net);
                row.profit = row.profit.wrapping_add(net * i128::from(moved));
            }
        }
        let has_lost = |strategy: &StrategyIndex| {
            let row = &self.strategies[*strategy];
            row.max_loss.is_some_and(|max| row.profit < -max.cast_signed()) && !self.is_killed(*strategy)
        };
        if moved == 0 { Some(strategy).filter(has_lost) } else { self.strategies.indices().find(has_lost) }
    }
}
