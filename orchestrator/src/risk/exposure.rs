//! Gross and net exposure of each credential, updated with every order and report:
//! `docs/src/risk.md` says what they are.
//!
//! An order's value is the most by which it can raise any of them. So each credential has an
//! allowance, one word: what was left until its nearest limit when that was last added up, less all
//! that was sent since. An order of at most that value passes, and nearly always a check reads
//! nothing else. Any other is checked exactly, and the allowance is computed again.

use super::limits::{StrategyRow, money};
use super::price::Traded;
use crate::positions::{Change, Positions};
use protocol::instrument::MAX_VALUE;
use protocol::limits::RiskControl;
use protocol::reject::Reject;
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    long: i64,
    short: i64,
}

impl Held {
    /// The larger of both in size: `long` is never below `short`.
    #[inline(always)]
    const fn gross(self) -> i64 {
        let down = self.short.wrapping_neg();
        if self.long > down { self.long } else { down }
    }
}

/// A credential's exposure, in price times quantity. Wraps rather than stop the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CredentialExposure {
    /// The value that passes without an exact check.
    allowance: u64,
    gross: i128,
    long: i128,
    short: i128,
    max_gross: i128,
    max_net: i128,
    /// Not below the largest gross quantity in any instrument.
    max_held: i64,
}

impl CredentialExposure {
    const NONE: Self =
        Self { allowance: 0, gross: 0, long: 0, short: 0, max_gross: OFF, max_net: OFF, max_held: 0 };

    fn is_on(&self) -> bool {
        (self.max_gross, self.max_net) != (OFF, OFF)
    }

    /// Sets the value that can be sent and reaches no limit, nor a quantity above [`MOST`]: no
    /// value is below its quantity.
    #[cold]
    #[inline(never)]
    fn set_allowance(&mut self) {
        let net = self.long.max(self.short.wrapping_neg());
        let left = self.max_gross.saturating_sub(self.gross).min(self.max_net.saturating_sub(net));
        let held = i128::from(MAX_VALUE.cast_signed().saturating_sub(self.max_held));
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
    held: Box<[Held]>,
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
            held: vec![Held::default(); credentials * instruments].into(),
            instruments,
            is_on: false,
        }
    }

    /// Sets a credential's limit, in cents, ahead of [`Exposures::recompute`].
    pub(crate) fn set(&mut self, credential: usize, control: RiskControl, cents: u64) {
        let (limit, of) = (money(cents).map_or(OFF, u128::cast_signed), &mut self.credentials[credential]);
        match control {
            RiskControl::GrossExposure => of.max_gross = limit,
            RiskControl::NetExposure => of.max_net = limit,
            _ => {}
        }
    }

    /// Adds everything up again: the first limit may be set in the middle of a run.
    pub(super) fn recompute(&mut self, positions: &Positions, strategies: &[StrategyRow], traded: &[Traded]) {
        self.held.fill(Held::default());
        for (strategy, row) in strategies.iter().enumerate() {
            for instrument in 0..self.instruments {
                let account = positions.account(strategy, instrument as u16);
                let held = &mut self.held[usize::from(row.credential) * self.instruments + instrument];
                held.long = held.long.wrapping_add(account.long());
                held.short = held.short.wrapping_add(account.short());
            }
        }
        for (of, held) in self.credentials.iter_mut().zip(self.held.chunks(self.instruments)) {
            let sum = |part: fn(Held) -> i64| {
                let worth = |(held, traded): (&Held, &Traded)| times(part(*held), traded.reference);
                held.iter().zip(traded).map(worth).fold(0, i128::wrapping_add)
            };
            (of.gross, of.long, of.short) = (sum(Held::gross), sum(|held| held.long), sum(|held| held.short));
            of.max_held = held.iter().map(|held| held.gross()).max().unwrap_or(0);
            of.set_allowance();
        }
        self.is_on = self.credentials.iter().any(CredentialExposure::is_on);
    }

    #[inline(always)]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Checks an order that opens `more` on a side.
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
        let held = self.held[credential * self.instruments + usize::from(instrument)];
        let worth = times(more, reference);
        let net = select_unpredictable(is_buy, of.long.wrapping_add(worth), worth.wrapping_sub(of.short));
        let bought = select_unpredictable(is_buy, more, 0);
        let then =
            Held { long: held.long.saturating_add(bought), short: held.short.saturating_sub(more - bought) };
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

    /// Books the effect of an order or a report.
    #[inline]
    pub(crate) fn change(&mut self, credential: usize, change: &Change, reference: i64) {
        let held = &mut self.held[credential * self.instruments + usize::from(change.instrument)];
        let before = held.gross();
        held.long = held.long.wrapping_add(change.long);
        held.short = held.short.wrapping_add(change.short);
        let grown = held.gross().wrapping_sub(before);
        let of = &mut self.credentials[credential];
        of.add(grown, change.long, change.short, reference);
        of.max_held = of.max_held.max(held.gross());
        let opened = change.long.max(0).wrapping_sub(change.short.min(0));
        of.spend(opened.cast_unsigned(), reference);
    }

    /// Revalues an instrument whose reference price moved.
    pub(crate) fn moved(&mut self, instrument: u16, by: i64) {
        for (of, held) in self.credentials.iter_mut().zip(self.held.chunks(self.instruments)) {
            let held = held[usize::from(instrument)];
            of.add(held.gross(), held.long, held.short, by);
            // Net moves by no more than gross.
            of.spend(held.gross().unsigned_abs(), by);
        }
    }

    /// The lengths of its tables: equal in all states of a run.
    pub(super) fn shape(&self) -> [usize; 3] {
        [self.credentials.len(), self.held.len(), self.instruments]
    }

    /// Gross, long and short of every credential.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<(i128, i128, i128)> {
        self.credentials.iter().map(|of| (of.gross, of.long, of.short)).collect()
    }
}
