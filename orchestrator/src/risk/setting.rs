//! Limits are set: before the start from the plan, and while the run goes on from the desk. Off the way of orders.

use super::limits::burst;
use super::{Control, LimitSetting, Positions, Risk};
use protocol::kill::Scope;
use protocol::limits::{LimitError, OFF};
use thiserror::Error;

/// Why a limit cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// There is no such setting in any run.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The run has no such strategy, credential or instrument.
    #[error("the run has no {0}")]
    NoSuch(Scope),
}

impl Risk {
    /// Whether the run has what the scope names.
    pub(crate) fn has(&self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Strategy(index) => usize::from(index) < self.strategies.len(),
            Scope::Credential(index) => usize::from(index) < self.messages.len(),
            Scope::Venue(index) => usize::from(index) < self.venues.len(),
            Scope::Instrument(index) => usize::from(index) < self.traded.len(),
        }
    }

    /// Sets a limit; what is open and held stays as it is, and counts.
    ///
    /// # Errors
    /// A setting that there cannot be. Nothing is changed then.
    pub fn set(&mut self, setting: &LimitSetting, positions: &Positions) -> Result<(), SettingError> {
        setting.check()?;
        let LimitSetting { scope, control, value } = *setting;
        if !self.has(scope) {
            return Err(SettingError::NoSuch(scope));
        }
        self.set_strategies(scope, control, value);
        self.set_accounts(scope, control, value, positions);
        self.set_credentials(scope, control, value, positions);
        let points = (control == Control::PriceCollar).then_some(value);
        let ticks = (control == Control::PriceCollarTicks).then_some(value);
        if points.is_some() || ticks.is_some() {
            for (index, traded) in (0..).zip(&mut self.traded) {
                if is_or_all(scope, Scope::Instrument(index)) {
                    traded.set_collar(points, ticks);
                }
            }
        }
        if control == Control::MaxLoss {
            self.limits_losses = self.strategies.iter().any(|row| row.max_loss.is_some());
            self.reckon_profits(positions);
        }
        Ok(())
    }

    fn set_strategies(&mut self, scope: Scope, control: Control, value: u64) {
        for (index, row) in (0..).zip(&mut self.strategies) {
            if is_or_all(scope, Scope::Strategy(index)) {
                row.set(control, value, self.max_open, self.ns_per_tick);
            }
        }
    }

    fn set_accounts(&mut self, scope: Scope, control: Control, value: u64, positions: &Positions) {
        let instruments = self.traded.len();
        for (index, limits) in self.accounts.iter_mut().enumerate() {
            let (strategy, instrument) = (index / instruments, (index % instruments) as u16);
            let is_meant = is_or_all(scope, Scope::Strategy(strategy as u16))
                || is_or_all(scope, Scope::Instrument(instrument));
            if is_meant {
                // What is restricted for all strategies or in all instruments.
                let fills = positions.account(strategy, instrument).fills;
                limits.set(control, value, self.largest[usize::from(instrument)], fills);
            }
        }
    }

    fn set_credentials(&mut self, scope: Scope, control: Control, value: u64, positions: &Positions) {
        for index in 0..self.messages.len() {
            if !is_or_all(scope, Scope::Credential(index as u16)) {
                continue;
            }
            match control {
                Control::CredentialRate => self.rates[index].0 = value,
                Control::CredentialBurst => self.rates[index].1 = value,
                Control::GrossExposure => self.exposures.set(index, Some(value), None),
                Control::NetExposure => self.exposures.set(index, None, Some(value)),
                _ => return,
            }
            if matches!(control, Control::CredentialRate | Control::CredentialBurst) {
                let (rate, most) = self.rates[index];
                self.messages[index].set((rate != OFF).then_some(rate), burst(rate, most), self.ns_per_tick);
            }
        }
        if matches!(control, Control::GrossExposure | Control::NetExposure) {
            let Self { exposures, strategies, traded, .. } = self;
            let credential = |strategy: usize| usize::from(strategies[strategy].credential);
            exposures
                .reckon(positions, credential, strategies.len(), |instrument| traded[instrument].reference());
        }
    }
}

fn is_or_all(scope: Scope, one: Scope) -> bool {
    scope == Scope::All || scope == one
}
