//! Gross and net exposure of each credential, kept up to date with every order and report instead of added up for each check.
//!
//! All of it is the worst case of what is open, valued at reference prices. Of an instrument: `long`, with all open buy orders of the
//! credential's strategies filled, and `short`, with all open sell orders filled. Gross is the sum over the instruments of the larger of
//! both in size; net is the sum of all `long` on the one side, of all `short` on the other.
//!
//! An order's worth is the most by which it can raise any of them. So each credential has an allowance, one word: what was left until
//! its nearest limit when that was last added up, less all that was sent since. An order that is worth no more passes, and nearly
//! always that is all that a check reads. One that is worth more is checked exactly, and the allowance is measured anew.

use super::limits::money;
use crate::copy_exact::copy_exact;
use crate::positions::{Change, Positions};
use protocol::instrument::MOST;
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
struct OfCredential {
    gross: i128,
    long: i128,
    short: i128,
    max_gross: i128,
    max_net: i128,
    is_on: bool,
    /// Not below the largest gross quantity in any instrument.
    most_held: i64,
}

impl OfCredential {
    /// What may be sent without a look at anything else: it reaches no limit then, nor a quantity above [`MOST`], as nothing is
    /// worth less than its quantity.
    fn allowance(&self) -> u64 {
        if !self.is_on {
            return u64::MAX;
        }
        let net = if self.long > self.short.wrapping_neg() { self.long } else { self.short.wrapping_neg() };
        let left = self.max_gross.saturating_sub(self.gross).min(self.max_net.saturating_sub(net));
        let held = i128::from(MOST.cast_signed().saturating_sub(self.most_held));
        left.min(held).clamp(0, i64::MAX.into()) as u64
    }
}

/// The exposure of all credentials.
pub(crate) struct Exposures {
    /// Of each credential, never more than [`OfCredential::allowance`].
    allowances: Box<[u64]>,
    credentials: Box<[OfCredential]>,
    /// Credential after credential.
    held: Box<[Held]>,
    instruments: usize,
    is_on: bool,
}

/// The same as plain values.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExposuresState {
    allowances: Vec<u64>,
    credentials: Vec<OfCredential>,
    held: Vec<Held>,
}

const NO_LIMIT: i128 = i128::MAX;

fn times(quantity: i64, price: i64) -> i128 {
    i128::from(quantity) * i128::from(price)
}

impl Exposures {
    pub(crate) fn new(credentials: usize, instruments: usize) -> Self {
        let none = OfCredential {
            gross: 0,
            long: 0,
            short: 0,
            max_gross: NO_LIMIT,
            max_net: NO_LIMIT,
            is_on: false,
            most_held: 0,
        };
        Self {
            allowances: vec![0; credentials].into(),
            credentials: vec![none; credentials].into(),
            held: vec![Held::default(); credentials * instruments].into(),
            instruments,
            is_on: false,
        }
    }

    /// Sets one of a credential's limits, in cents.
    pub(crate) fn set(&mut self, credential: usize, max_gross: Option<u64>, max_net: Option<u64>) {
        let limit = |cents| money(cents).map_or(NO_LIMIT, |limit| limit.cast_signed());
        let of = &mut self.credentials[credential];
        of.max_gross = max_gross.map_or(of.max_gross, limit);
        of.max_net = max_net.map_or(of.max_net, limit);
        of.is_on = (of.max_gross, of.max_net) != (NO_LIMIT, NO_LIMIT);
        self.allowances[credential] = of.allowance();
        self.is_on = self.credentials.iter().any(|of| of.is_on);
    }

    /// Adds everything up anew: what is needed where the first limit is set while the run goes on.
    pub(crate) fn reckon(
        &mut self,
        positions: &Positions,
        credential_of: impl Fn(usize) -> usize,
        strategies: usize,
        reference: impl Fn(usize) -> i64,
    ) {
        self.held.fill(Held::default());
        for strategy in 0..strategies {
            for instrument in 0..self.instruments {
                let account = positions.account(strategy, instrument as u16);
                let held = &mut self.held[credential_of(strategy) * self.instruments + instrument];
                held.long = held.long.wrapping_add(account.long());
                held.short = held.short.wrapping_add(account.short());
            }
        }
        for (of, held) in self.credentials.iter_mut().zip(self.held.chunks(self.instruments)) {
            let sum = |part: fn(Held) -> i64| {
                let worth = |(instrument, held): (usize, &Held)| times(part(*held), reference(instrument));
                held.iter().enumerate().map(worth).fold(0, i128::wrapping_add)
            };
            (of.gross, of.long, of.short) = (sum(Held::gross), sum(|held| held.long), sum(|held| held.short));
            of.most_held = held.iter().map(|held| held.gross()).max().unwrap_or(0);
        }
        for (allowance, of) in self.allowances.iter_mut().zip(&self.credentials) {
            *allowance = of.allowance();
        }
    }

    /// Whether any credential has a limit.
    #[inline(always)]
    pub(crate) const fn is_on(&self) -> bool {
        self.is_on
    }

    /// Checks an order that opens so much more on a side.
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
        if worth <= u128::from(self.allowances[credential]) && reference > 0 {
            return Ok(());
        }
        self.allowances[credential] = self.credentials[credential].allowance();
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
        if !of.is_on {
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
        if then.gross() > MOST.cast_signed() {
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

    /// What an order or a report has changed.
    #[inline]
    pub(crate) fn change(&mut self, credential: usize, change: &Change, reference: i64) {
        let held = &mut self.held[credential * self.instruments + usize::from(change.instrument)];
        let before = held.gross();
        held.long = held.long.wrapping_add(change.long);
        held.short = held.short.wrapping_add(change.short);
        let grown = held.gross().wrapping_sub(before);
        let of = &mut self.credentials[credential];
        of.gross = of.gross.wrapping_add(times(grown, reference));
        of.long = of.long.wrapping_add(times(change.long, reference));
        of.short = of.short.wrapping_add(times(change.short, reference));
        of.most_held = of.most_held.max(held.gross());
        let opened = change.long.max(0).wrapping_sub(change.short.min(0));
        self.spend(credential, opened.cast_unsigned(), reference);
    }

    /// Something became worth so much more at most.
    #[inline(always)]
    fn spend(&mut self, credential: usize, quantity: u64, price: i64) {
        let worth = u128::from(quantity) * u128::from(price.unsigned_abs());
        let allowance = &mut self.allowances[credential];
        *allowance = u64::try_from(worth).map_or(0, |worth| allowance.saturating_sub(worth));
    }

    /// The reference price of an instrument moved by so much.
    pub(crate) fn moved(&mut self, instrument: u16, by: i64) {
        for credential in 0..self.credentials.len() {
            let held = self.held[credential * self.instruments + usize::from(instrument)];
            let of = &mut self.credentials[credential];
            of.gross = of.gross.wrapping_add(times(held.gross(), by));
            of.long = of.long.wrapping_add(times(held.long, by));
            of.short = of.short.wrapping_add(times(held.short, by));
            // Net moves by no more than gross.
            self.spend(credential, held.gross().unsigned_abs(), by);
        }
    }

    pub(super) fn state(&self) -> ExposuresState {
        let Self { allowances, credentials, held, .. } = self;
        ExposuresState {
            allowances: allowances.to_vec(),
            credentials: credentials.to_vec(),
            held: held.to_vec(),
        }
    }

    /// Goes on from there; `None`: it is of other credentials or instruments.
    pub(super) fn restore(&mut self, state: &ExposuresState) -> Option<()> {
        copy_exact(&mut self.allowances, &state.allowances)?;
        copy_exact(&mut self.credentials, &state.credentials)?;
        copy_exact(&mut self.held, &state.held)?;
        self.is_on = self.credentials.iter().any(|of| of.is_on);
        Some(())
    }

    /// Gross, long and short of every credential: for tests.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Vec<(i128, i128, i128)> {
        self.credentials.iter().map(|of| (of.gross, of.long, of.short)).collect()
    }
}
