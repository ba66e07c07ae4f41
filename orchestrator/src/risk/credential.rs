//! The limits of a credential, which its strategies share: exposure, message rate, open orders.

use super::Reject;
use super::exposure::Exposure;
use super::limits::RateLimit;
use protocol::limits::{OFF, RiskControl};
use serde::{Deserialize, Serialize};

/// The limits of a credential, for its strategies together.
#[derive(Serialize, Deserialize)]
pub(crate) struct CredentialRow {
    pub exposure: Exposure,
    pub messages: RateLimit,
    /// Maximum number of open orders; [`OFF`] without a limit.
    max_open: u64,
    /// Orders that may be sent before the open ones are counted again.
    open_allowance: u64,
}

impl CredentialRow {
    pub(crate) fn new(instruments: usize) -> Self {
        Self {
            exposure: Exposure::new(instruments),
            messages: RateLimit::default(),
            max_open: OFF,
            open_allowance: OFF,
        }
    }

    pub(crate) fn has_limit(&self) -> bool {
        self.exposure.is_on() || self.messages.rate != OFF || self.max_open != OFF
    }

    pub(crate) fn set(&mut self, control: RiskControl, value: u64, ns_per_tick: f64) {
        match control {
            RiskControl::CredentialOpenOrders => {
                (self.max_open, self.open_allowance) = (value, if value == OFF { OFF } else { 0 });
            }
            RiskControl::CredentialRate => self.messages.set(value, self.messages.burst, ns_per_tick),
            RiskControl::CredentialBurst => self.messages.set(self.messages.rate, value, ns_per_tick),
            _ => self.exposure.set(control, value),
        }
    }

    /// Takes one order from those that may still be open. `count_open` counts the open ones.
    #[inline]
    pub(crate) fn take_open(&mut self, count_open: impl FnOnce() -> u64) -> Result<(), Reject> {
        if self.open_allowance == 0 {
            self.open_allowance = self.max_open.saturating_sub(count_open());
        }
        self.open_allowance = self.open_allowance.checked_sub(1).ok_or(Reject::CredentialOpen)?;
        Ok(())
    }
}
