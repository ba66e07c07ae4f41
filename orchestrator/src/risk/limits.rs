//! The limits that orders are checked against, in rows as the checks read them, and how settings change them.

use super::bucket::Bucket;
use super::duplicate::Recent;
use protocol::instrument::{Instrument, MOST};
use protocol::limits::{Control, OFF};
use serde::{Deserialize, Serialize};

/// Money in cents times this is money as prices times quantities are: in 1e-8 of a cent.
pub(crate) const CENT: u128 = 100_000_000;

/// The limits of an account: a cache line that is only read where orders pass.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct AccountLimits {
    /// The largest position, long or short.
    pub max_position: i64,
    pub max_quantity: u64,
    /// In price times quantity.
    pub max_value: u128,
    /// At so many fills the account is off.
    pub fills_until: u64,
    pub is_restricted: bool,
    /// Executions until the account is off; [`OFF`].
    pub max_executions: u64,
}

impl AccountLimits {
    pub(crate) fn new(instrument: &Instrument) -> Self {
        Self {
            max_position: MOST.cast_signed(),
            max_quantity: instrument.max_quantity,
            max_value: u128::MAX,
            fills_until: OFF,
            is_restricted: false,
            max_executions: OFF,
        }
    }

    /// Sets a limit of it, which has that many fills.
    pub(crate) fn set(&mut self, control: Control, value: u64, instrument_most: u64, fills: u64) {
        match control {
            Control::MaxOrderVolume => self.max_quantity = value.min(instrument_most),
            Control::MaxOrderValue => self.max_value = money(value).unwrap_or(u128::MAX),
            Control::MaxPosition => self.max_position = value.min(MOST).cast_signed(),
            Control::Restricted => self.is_restricted = value != OFF,
            Control::MaxExecutions => {
                self.max_executions = value;
                self.enable(fills);
            }
            _ => {}
        }
    }

    /// Somebody has looked: executions count from here.
    pub(crate) const fn enable(&mut self, fills: u64) {
        self.fills_until = fills.saturating_add(self.max_executions);
    }
}

/// Money of a limit in price times quantity; `None`: off.
pub(crate) const fn money(cents: u64) -> Option<u128> {
    if cents == OFF { None } else { Some(cents as u128 * CENT) }
}

/// What each strategy has beside its accounts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct StrategyRow {
    pub max_open: u64,
    pub credential: u16,
    /// A kill switch is on for it, for its credential or for everybody.
    pub is_killed: bool,
    pub kills_on_death: bool,
    pub messages: Bucket,
    /// Above its rate the kill switch is turned on.
    pub kill_messages: Bucket,
    has_kill_rate: bool,
    /// In ticks; 0: off.
    pub duplicate_window: u64,
    pub recent: Recent,
    rate: u64,
    burst: u64,
    /// The largest loss, in price times quantity.
    pub max_loss: Option<u128>,
    rejections: u64,
    max_rejections: u64,
    rejection_window: u64,
    first_rejection: u64,
}

/// A second in nanoseconds: the window of rejections unless another is set.
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds in ticks, rounded down.
pub(crate) fn ticks(ns: u64, ns_per_tick: f64) -> u64 {
    (ns as f64 / ns_per_tick) as u64
}

/// The burst of a rate where none is set: what a tenth of a second brings.
pub(crate) fn burst(rate: u64, burst: u64) -> u64 {
    if burst == OFF { (rate / 10).max(1) } else { burst }
}

impl StrategyRow {
    pub(crate) fn new(credential: u16, max_open: u64, ns_per_tick: f64) -> Self {
        Self {
            max_open,
            credential,
            is_killed: false,
            kills_on_death: false,
            messages: Bucket::default(),
            kill_messages: Bucket::default(),
            has_kill_rate: false,
            duplicate_window: 0,
            recent: Recent::default(),
            rate: OFF,
            burst: OFF,
            max_loss: None,
            rejections: 0,
            max_rejections: OFF,
            rejection_window: ticks(SECOND, ns_per_tick),
            first_rejection: 0,
        }
    }

    /// Sets a limit of it; a run has room for so many open orders.
    pub(crate) fn set(&mut self, control: Control, value: u64, room: u64, ns_per_tick: f64) {
        match control {
            Control::MaxOpenOrders => self.max_open = value.min(room),
            Control::MessageRate => self.rate = value,
            Control::MessageBurst => self.burst = value,
            Control::DuplicateWindow if value == OFF => self.duplicate_window = 0,
            Control::DuplicateWindow => self.duplicate_window = ticks(value, ns_per_tick).max(1),
            Control::MaxLoss => self.max_loss = money(value),
            Control::KillMessageRate => {
                self.has_kill_rate = value != OFF;
                let rate = (value != OFF).then_some(value);
                self.kill_messages.set(rate, burst(value, OFF), ns_per_tick);
            }
            Control::MaxRejections => self.max_rejections = value,
            Control::RejectionWindow => {
                self.rejection_window = ticks(if value == OFF { SECOND } else { value }, ns_per_tick);
            }
            Control::KillOnDeath => self.kills_on_death = value != OFF,
            _ => {}
        }
        if matches!(control, Control::MessageRate | Control::MessageBurst) {
            let rate = (self.rate != OFF).then_some(self.rate);
            self.messages.set(rate, burst(self.rate, self.burst), ns_per_tick);
        }
    }

    /// A message came, let through or not; whether it is one more than the strategy is killed for.
    #[inline(always)]
    pub(crate) const fn floods(&mut self, now: u64) -> bool {
        if !self.has_kill_rate {
            return false;
        }
        let floods = !self.kill_messages.has(now);
        if !floods {
            self.kill_messages.take(now);
        }
        floods
    }

    /// An order was refused; whether that is one more than the strategy is killed for.
    pub(crate) fn is_refused_too_often(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.first_rejection) > self.rejection_window || self.rejections == 0 {
            (self.first_rejection, self.rejections) = (now, 0);
        }
        self.rejections += 1;
        self.rejections > self.max_rejections
    }

    /// Somebody has looked: nothing is held against it any more.
    pub(crate) const fn forgive(&mut self) {
        self.rejections = 0;
    }
}
