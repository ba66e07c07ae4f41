//! Pre-trade risk controls, which every order must pass before it reaches a venue.
//!
//! Checks do not allocate, divide or read a clock. Limits are stored in rows in the order of the
//! checks; a control that is off has an unreachable limit. An order is rejected by the first
//! control that it violates, in the order of `docs/src/risk.md`.

mod credential;
mod duplicate;
mod exposure;
mod limits;
mod price;
mod switches;
mod token_bucket;

pub use limits::SettingError;
pub use protocol::reject::Reject;

use crate::positions::{Change, Kind, Positions, target};
use credential::CredentialRow;
use limits::{AccountLimits, StrategyRow};
use price::Listing;
use protocol::index::{PerStrategy, StrategyIndex};
use protocol::instrument::{Instrument, MAX_VALUE};
use protocol::kill::Scope;
use protocol::limits::LimitSetting;
use protocol::wire::{Operation, Order, OrderCondition, OrderType, Side};
use serde::{Deserialize, Serialize};
use shm::prefetch::prefetch_lines;
use std::hint::select_unpredictable;
use switches::is_any_on;

/// The number of strategies, instruments and venues, and the limits, from which an engine is
/// created.
#[derive(Clone, Debug)]
pub struct RiskSetup<'a> {
    /// Number of strategies in the run.
    pub strategies: usize,
    /// Number of spare strategies, the last ones: each is dead until its second incarnation begins.
    pub spares: usize,
    /// Number of venues in the run.
    pub venues: usize,
    /// Number of credentials: strategy i has the credential i modulo this number.
    pub credentials: usize,
    /// The tradable instruments; empty: one that accepts every price and quantity.
    pub instruments: &'a [Instrument],
    /// Risk limits, in the order in which they are set.
    pub limits: &'a [LimitSetting],
    /// Maximum number of open orders of each strategy.
    pub max_open: u64,
    /// Nanoseconds per tick of the run's clock.
    pub ns_per_tick: f64,
    /// Maximum number of orders of each strategy: one more is a flood, for which the stamp logs
    /// have no capacity. Empty: no limit.
    pub orders: &'a [u64],
    /// Number of orders of each strategy for each venue, laid out as
    /// [`protocol::workload::Trading::venue_orders`]. Empty: no limit.
    pub venue_orders: &'a [u64],
    /// Whether each gateway has a successor that resumes its session after a crash, by index;
    /// empty: none has.
    pub resumable_gateways: &'a [bool],
}

impl RiskSetup<'_> {
    /// Returns a setup whose only limit is `max_open` open orders per strategy, with one credential
    /// and one unrestricted instrument. A tick is a nanosecond.
    pub const fn open_orders(strategies: usize, venues: usize, max_open: u64) -> Self {
        Self {
            strategies,
            spares: 0,
            venues,
            credentials: 1,
            instruments: &[],
            limits: &[],
            max_open,
            ns_per_tick: 1.0,
            orders: &[],
            venue_orders: &[],
            resumable_gateways: &[],
        }
    }
}

/// The pre-trade risk controls of all strategies, with their limits and state.
#[derive(Serialize, Deserialize)]
pub struct Risk {
    pub(crate) strategies: PerStrategy<StrategyRow>,
    accounts: Box<[AccountLimits]>,
    pub(crate) traded: Box<[Listing]>,
    pub(crate) credentials: Box<[CredentialRow]>,
    has_credential_limits: bool,
    has_loss_limits: bool,
    /// Active kill switches. Allocated once for the maximum.
    pub(crate) switches: Vec<Scope>,
    #[serde(skip)]
    plan: RiskPlan,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RiskPlan {
    venues: usize,
    max_open: u64,
    ns_per_tick: f64,
}

impl Risk {
    /// Creates the risk controls of a run from its settings.
    pub fn new(setup: &RiskSetup<'_>) -> Result<Self, SettingError> {
        let anything = [Instrument::default()];
        let instruments = if setup.instruments.is_empty() { &anything } else { setup.instruments };
        let (strategies, venues, credentials) = (setup.strategies, setup.venues, setup.credentials.max(1));
        let plan = RiskPlan { venues, max_open: setup.max_open, ns_per_tick: setup.ns_per_tick };
        let accounts = (0..strategies).flat_map(|_| instruments.iter().map(AccountLimits::new)).collect();
        let row =
            |strategy: StrategyIndex| StrategyRow::new((strategy.as_usize() % credentials) as u16, plan);
        let mut risk = Self {
            strategies: PerStrategy::from_fn(strategies, row),
            accounts,
            traded: instruments.iter().map(Listing::new).collect(),
            credentials: (0..credentials).map(|_| CredentialRow::new(instruments.len())).collect(),
            has_credential_limits: false,
            has_loss_limits: false,
            switches: Vec::with_capacity(1 + strategies + credentials + venues + instruments.len()),
            plan,
        };
        let nothing = Positions::new(strategies, instruments.len(), 1);
        for setting in setup.limits {
            risk.set(setting, &nothing)?;
        }
        Ok(risk)
    }

    pub(crate) fn restore(&mut self, fresh: Self) -> Option<()> {
        let lengths = |risk: &Self| (risk.accounts.len(), risk.traded.len(), risk.credentials.len());
        let credentials = |risk: &Self| risk.strategies.iter().map(|row| row.credential).collect::<Vec<_>>();
        let fits = |(saved, fresh): (&CredentialRow, &CredentialRow)| saved.exposure.fits(&fresh.exposure);
        let is_of_run = lengths(self) == lengths(&fresh)
            && credentials(self) == credentials(&fresh)
            && self.credentials.iter().zip(&fresh.credentials).all(fits);
        let capacity = fresh.switches.capacity();
        let has_switches =
            self.switches.len() <= capacity && self.switches.iter().all(|scope| fresh.has_scope(*scope));
        (is_of_run && has_switches).then_some(())?;
        self.switches.reserve_exact(capacity - self.switches.len());
        self.traded.iter_mut().zip(fresh.traded).for_each(|(traded, plan)| traded.rules = plan.rules);
        self.plan = fresh.plan;
        Some(())
    }

    pub(crate) fn prefetch(&self, strategy: StrategyIndex, lines: usize) {
        let (row, instruments) = (&self.strategies[strategy], self.traded.len());
        prefetch_lines(row, lines);
        prefetch_lines(&self.accounts[strategy.as_usize() * instruments..][..instruments], lines);
        prefetch_lines(&*self.traded, lines);
    }

    #[inline(always)]
    pub(crate) const fn venues(&self) -> usize {
        self.plan.venues
    }

    #[inline(always)]
    pub(crate) fn credential(&self, strategy: StrategyIndex) -> u16 {
        self.strategies[strategy].credential
    }

    /// Checks a strategy's order against all risk controls at `now`, in ticks since the start.
    /// Returns the first that it violates. An order that passes takes a token from each bucket and
    /// is remembered for the duplicate check.
    #[inline(always)]
    pub fn check(&mut self, order: &Order, positions: &Positions, now: u64) -> Result<(), Reject> {
        let strategy = order.id.strategy();
        let row = &mut self.strategies[strategy];
        if usize::from(order.request.venue) >= self.plan.venues {
            return Err(Reject::UnknownVenue);
        }
        let Some(traded) = self.traded.get(usize::from(order.request.instrument)) else {
            return Err(Reject::UnknownInstrument);
        };
        if positions.open(strategy) >= row.max_open || !positions.has_room(strategy) {
            return Err(Reject::TooManyOpen);
        }
        if !matches!(order.request.operation, Operation::New | Operation::Replace) {
            // Never rejected for a missing token.
            _ = row.messages.try_take(now);
            if self.has_credential_limits {
                _ = self.credentials[usize::from(row.credential)].messages.try_take(now);
            }
            return Ok(());
        }
        if self.has_credential_limits {
            let (credential, every) = (usize::from(row.credential), self.credentials.len());
            self.credentials[credential].take_open(|| positions.open_of_every(credential, every))?;
        }
        if !self.switches.is_empty() && is_any_on(&self.switches, order, row.credential) {
            return Err(Reject::Killed);
        }
        let row_start = strategy.as_usize() * self.traded.len();
        let limits = &self.accounts[row_start + usize::from(order.request.instrument)];
        if limits.is_restricted {
            return Err(Reject::Restricted);
        }
        let price = checked_price(order);
        if price != 0 {
            traded.check_price(price)?;
        }
        traded.check_lot(order.request.quantity)?;
        if order.request.quantity > limits.max_quantity {
            return Err(Reject::TooLarge);
        }
        let at = if price == 0 { traded.reference } else { price };
        if u128::from(at.cast_unsigned()) * u128::from(order.request.quantity) > limits.max_value {
            return Err(Reject::OrderValue);
        }
        if at == 0 && limits.max_value != u128::MAX {
            return Err(Reject::NoReference);
        }
        let account = positions.account(strategy, order.request.instrument);
        if account.fills >= limits.max_fills {
            return Err(Reject::ExecutionThrottle);
        }
        let is_new = order.request.operation == Operation::New;
        let (side, more) = match is_new {
            true => (order.request.side, order.request.quantity.cast_signed()),
            false => opened_by_replace(order, positions)?,
        };
        let is_buy = side == Side::Buy;
        let bought = account.max_position().saturating_add(more);
        let sold = more.saturating_sub(account.min_position());
        // Branch predictors cannot predict the side of the next order.
        let reached = select_unpredictable(is_buy, bought, sold);
        if reached > limits.max_position && more > 0 {
            let is_off = limits.max_position == MAX_VALUE.cast_signed();
            return Err(if is_off { Reject::Overflow } else { Reject::Position });
        }
        if self.has_credential_limits {
            let exposure = &mut self.credentials[usize::from(row.credential)].exposure;
            if exposure.is_on() && more > 0 {
                exposure.check(order.request.instrument, is_buy, more, traded.reference)?;
            }
        }
        if row.duplicate_window != 0 && is_new && row.recent.contains(order, now, row.duplicate_window) {
            return Err(Reject::Duplicate);
        }
        if !row.messages.bucket.has_token(now) {
            return Err(Reject::MessageRate);
        }
        if self.has_credential_limits && !self.credentials[usize::from(row.credential)].messages.try_take(now)
        {
            return Err(Reject::CredentialRate);
        }
        row.messages.bucket.take(now);
        if row.duplicate_window != 0 && is_new {
            row.recent.remember(order, now);
        }
        Ok(())
    }

    pub(crate) fn should_kill_on_death(&self, strategy: StrategyIndex) -> bool {
        self.strategies[strategy].kills_on_death && !self.is_killed(strategy)
    }

    /// Updates exposures, reference prices and losses after a sent order or a report, with the
    /// change of the strategy's position. Returns a strategy that exceeds its loss limit.
    #[inline(always)]
    pub fn book(
        &mut self,
        strategy: StrategyIndex,
        change: &Change,
        price: i64,
        positions: &Positions,
    ) -> Option<StrategyIndex> {
        let traded = &mut self.traded[usize::from(change.instrument)];
        if self.has_credential_limits {
            let credential = usize::from(self.strategies[strategy].credential);
            self.credentials[credential].exposure.book(change, traded.reference);
        }
        if change.filled == 0 {
            return None;
        }
        let moved = traded.record_trade(price);
        if moved != 0 && self.has_credential_limits {
            self.credentials.iter_mut().for_each(|row| row.exposure.revalue(change.instrument, moved));
        }
        if self.has_loss_limits { self.book_loss(strategy, change, price, moved, positions) } else { None }
    }
}

/// Returns the price to check: the limit, or a stop order's trigger; 0 for a market order.
#[inline(always)]
fn checked_price(order: &Order) -> i64 {
    match order.request.terms.order_type {
        OrderType::Limit | OrderType::StopLimit => order.request.price,
        OrderType::Market => 0,
        OrderType::Stop => match order.request.terms.condition {
            OrderCondition::StopPrice(price) => price,
            _ => 0,
        },
    }
}

/// Returns the side of a replace, and the quantity that it opens beyond its order's; 0 if the order
/// is gone, which the venue refuses.
#[cold]
fn opened_by_replace(order: &Order, positions: &Positions) -> Result<(Side, i64), Reject> {
    let Some(open) = positions.order(target(order)) else { return Ok((order.request.side, 0)) };
    let Kind::Order(side) = open.kind else { return Ok((order.request.side, 0)) };
    if open.instrument != order.request.instrument {
        return Err(Reject::WrongInstrument);
    }
    Ok((side, order.request.quantity.saturating_sub(open.reserved()).min(MAX_VALUE).cast_signed()))
}

#[cfg(test)]
mod tests;
