//! The limits of orders in the layout that the checks read, and the settings that change them
//! before and during a run.

use super::duplicate::RecentOrders;
use super::token_bucket::TokenBucket;
use super::{Positions, Risk, RiskPlan};
use protocol::index::StrategyIndex;
use protocol::instrument::{Instrument, MAX_VALUE};
use protocol::kill::Scope;
use protocol::limits::{LimitError, LimitSetting, OFF, RiskControl};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One cent as price times quantity, in 1e-8 units.
const CENT: u128 = 100_000_000;

const SECOND: u64 = 1_000_000_000;

/// The reason why a risk limit cannot be set: the setting is invalid, or its scope is not in the
/// run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// The limit setting is invalid in every run.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The run has no such strategy, credential, venue or instrument.
    #[error("the run has no {0}")]
    NoSuch(Scope),
}

/// The limits of a strategy in an instrument, in one cache line.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct AccountLimits {
    pub max_position: i64,
    pub max_quantity: u64,
    /// Maximum value of an order, in price times quantity.
    pub max_value: u128,
    pub max_fills: u64,
    pub is_restricted: bool,
    max_executions: u64,
}

impl AccountLimits {
    pub(crate) fn new(instrument: &Instrument) -> Self {
        Self {
            max_position: MAX_VALUE.cast_signed(),
            max_quantity: instrument.max_quantity,
            max_value: u128::MAX,
            max_fills: OFF,
            is_restricted: false,
            max_executions: OFF,
        }
    }

    fn set(&mut self, control: RiskControl, value: u64, instrument_max: u64, fills: u64) {
        match control {
            RiskControl::MaxOrderVolume => self.max_quantity = value.min(instrument_max),
            RiskControl::MaxOrderValue => self.max_value = money(value).unwrap_or(u128::MAX),
            RiskControl::MaxPosition => self.max_position = value.min(MAX_VALUE).cast_signed(),
            RiskControl::Restricted => self.is_restricted = value != OFF,
            RiskControl::MaxExecutions => {
                self.max_executions = value;
                self.enable(fills);
            }
            _ => {}
        }
    }

    pub(crate) const fn enable(&mut self, fills: u64) {
        self.max_fills = fills.saturating_add(self.max_executions);
    }
}

/// Converts a limit in cents to units of price times quantity; `None` if the limit is off.
pub(crate) fn money(cents: u64) -> Option<u128> {
    (cents != OFF).then(|| u128::from(cents) * CENT)
}

fn ticks(ns: u64, ns_per_tick: f64) -> u64 {
    (ns as f64 / ns_per_tick) as u64
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RateLimit {
    pub bucket: TokenBucket,
    /// Maximum rate in messages per second, or [`OFF`].
    pub rate: u64,
    /// Maximum burst in messages; [`OFF`]: a tenth of a second at the maximum rate.
    pub burst: u64,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { bucket: TokenBucket::default(), rate: OFF, burst: OFF }
    }
}

impl RateLimit {
    /// Takes a token from the bucket. Returns `false` if there is none.
    #[inline(always)]
    pub(crate) const fn try_take(&mut self, now: u64) -> bool {
        let has_token = self.bucket.has_token(now);
        if has_token {
            self.bucket.take(now);
        }
        has_token
    }

    pub(crate) fn set(&mut self, rate: u64, burst: u64, ns_per_tick: f64) {
        let size = if burst == OFF { (rate / 10).max(1) } else { burst };
        self.bucket.set((rate != OFF).then_some(rate), size, ns_per_tick);
        (self.rate, self.burst) = (rate, burst);
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StrategyRow {
    pub max_open: u64,
    pub credential: u16,
    pub kills_on_death: bool,
    pub messages: RateLimit,
    kill_messages: RateLimit,
    /// Time window of the check for duplicate orders, in ticks; 0: off.
    pub duplicate_window: u64,
    pub recent: RecentOrders,
    /// Maximum loss of the strategy, in price times quantity.
    pub max_loss: Option<u128>,
    /// Profit of the strategy at reference prices, in price times quantity; maintained while a loss
    /// limit is set.
    pub profit: i128,
    pub rejections: u64,
    max_rejections: u64,
    /// In ticks.
    rejection_window: u64,
    /// In ticks.
    first_rejection: u64,
}

impl StrategyRow {
    pub(crate) fn new(credential: u16, plan: RiskPlan) -> Self {
        Self {
            max_open: plan.max_open,
            credential,
            max_rejections: OFF,
            rejection_window: ticks(SECOND, plan.ns_per_tick),
            ..Self::default()
        }
    }

    fn set(&mut self, control: RiskControl, value: u64, RiskPlan { max_open, ns_per_tick, .. }: RiskPlan) {
        match control {
            RiskControl::MaxOpenOrders => self.max_open = value.min(max_open),
            RiskControl::MessageRate => self.messages.set(value, self.messages.burst, ns_per_tick),
            RiskControl::MessageBurst => self.messages.set(self.messages.rate, value, ns_per_tick),
            RiskControl::DuplicateWindow if value == OFF => self.duplicate_window = 0,
            RiskControl::DuplicateWindow => self.duplicate_window = ticks(value, ns_per_tick).max(1),
            RiskControl::MaxLoss => self.max_loss = money(value),
            RiskControl::KillMessageRate => self.kill_messages.set(value, OFF, ns_per_tick),
            RiskControl::MaxRejections => self.max_rejections = value,
            RiskControl::RejectionWindow => {
                self.rejection_window = ticks(if value == OFF { SECOND } else { value }, ns_per_tick);
            }
            RiskControl::KillOnDeath => self.kills_on_death = value != OFF,
            _ => {}
        }
    }
}

impl Risk {
    /// Counts a message of a strategy against the strategy's message-rate limit. Returns the
    /// control that turns on the strategy's kill switch if the message exceeds its rate.
    #[inline(always)]
    pub fn count_message(&mut self, strategy: StrategyIndex, now: u64) -> Option<RiskControl> {
        let limit = &mut self.strategies[strategy].kill_messages;
        if limit.rate == OFF {
            return None;
        }
        if !limit.bucket.has_token(now) {
            return Some(RiskControl::KillMessageRate);
        }
        limit.bucket.take(now);
        None
    }

    #[cold]
    pub(crate) fn count_rejection(&mut self, strategy: StrategyIndex, now: u64) -> Option<RiskControl> {
        let row = &mut self.strategies[strategy];
        if now.saturating_sub(row.first_rejection) > row.rejection_window || row.rejections == 0 {
            (row.first_rejection, row.rejections) = (now, 0);
        }
        row.rejections += 1;
        (row.rejections > row.max_rejections).then_some(RiskControl::MaxRejections)
    }

    pub(crate) fn has_scope(&self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Strategy(index) => self.strategies.has(index),
            Scope::Credential(index) => usize::from(index) < self.credentials.len(),
            Scope::Venue(index) => index.as_usize() < self.plan.venues,
            Scope::Instrument(index) => usize::from(index) < self.traded.len(),
        }
    }

    /// Sets a risk limit for a scope, such as one strategy or venue; an invalid setting changes
    /// nothing. Open orders and positions stay, and count.
    pub fn set(&mut self, setting: &LimitSetting, positions: &Positions) -> Result<(), SettingError> {
        setting.check()?;
        let LimitSetting { scope, control, value } = *setting;
        if !self.has_scope(scope) {
            return Err(SettingError::NoSuch(scope));
        }
        let plan = self.plan;
        let is_meant = |member: Scope| scope == Scope::All || scope == member;
        for (strategy, row) in self.strategies.enumerate_mut() {
            if is_meant(Scope::Strategy(strategy)) {
                row.set(control, value, plan);
            }
        }
        let instruments = self.traded.len();
        for (index, limits) in self.accounts.iter_mut().enumerate() {
            let (strategy, instrument) = (StrategyIndex((index / instruments) as u16), index % instruments);
            if is_meant(Scope::Strategy(strategy)) || is_meant(Scope::Instrument(instrument as u16)) {
                let fills = positions.account(strategy, instrument as u16).fills;
                limits.set(control, value, self.traded[instrument].rules.max_quantity, fills);
            }
        }
        for (index, traded) in (0..).zip(&mut self.traded) {
            if is_meant(Scope::Instrument(index)) {
                traded.set(control, value);
            }
        }
        for (index, row) in (0..).zip(&mut self.credentials) {
            if is_meant(Scope::Credential(index)) {
                row.set(control, value, plan.ns_per_tick);
                let is_member = |strategy: &StrategyIndex| self.strategies[*strategy].credential == index;
                row.exposure.recompute(positions, is_member, &self.traded);
            }
        }
        self.has_credential_limits = self.credentials.iter().any(|row| row.has_limit());
        if control == RiskControl::MaxLoss {
            self.has_loss_limits = self.strategies.iter().any(|row| row.max_loss.is_some());
            self.recompute_profits(positions);
        }
        Ok(())
    }
}
