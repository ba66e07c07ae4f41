//! The pre-trade controls, a record each, and the settings that give them their limits. What each
//! control does is in `orchestrator::risk`.

use crate::kill::Scope;
use crate::reject::Reject;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The value of a limit that is off.
pub const OFF: u64 = u64::MAX;

/// What the value of a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Orders.
    Orders,
    /// Quantity, in 1e-8 units.
    Quantity,
    /// Money: price times quantity, in cents.
    Cents,
    /// Hundredths of a percent.
    BasisPoints,
    /// Ticks of the instrument.
    Ticks,
    /// Messages a second.
    PerSecond,
    /// Messages.
    Messages,
    /// Executions.
    Executions,
    /// Nanoseconds.
    Nanoseconds,
    /// Rejections.
    Rejections,
    /// 1: on.
    Switch,
}

impl Unit {
    /// The unit's name, as it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Orders => "orders",
            Unit::Quantity => "1e-8 units",
            Unit::Cents => "cents",
            Unit::BasisPoints => "basis points",
            Unit::Ticks => "ticks",
            Unit::PerSecond => "a second",
            Unit::Messages => "messages",
            Unit::Executions => "executions",
            Unit::Nanoseconds => "ns",
            Unit::Rejections => "rejections",
            Unit::Switch => "on",
        }
    }
}

/// The kinds of scope that a limit can be set for; [`Scope::All`] always is one, and stands for
/// each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// Each strategy has its own.
    Strategy,
    /// Each credential.
    Credential,
    /// Each instrument.
    Instrument,
    /// Each account, a strategy in an instrument: set for a strategy, for an instrument, or for
    /// all.
    Account,
}

impl Each {
    /// Whether it can be set for that scope.
    pub const fn takes(self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Strategy(_) => matches!(self, Each::Strategy | Each::Account),
            Scope::Credential(_) => matches!(self, Each::Credential),
            Scope::Instrument(_) => matches!(self, Each::Instrument | Each::Account),
            Scope::Venue(_) => false,
        }
    }

    /// The scopes that it can be set for, in words.
    pub const fn scopes(self) -> &'static str {
        match self {
            Each::Strategy => "all or a strategy",
            Each::Credential => "all or a credential",
            Each::Instrument => "all or an instrument",
            Each::Account => "all, a strategy or an instrument",
        }
    }
}

/// What there is to know of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlInfo {
    /// What has a limit of its own.
    pub each: Each,
    /// What the limit counts.
    pub unit: Unit,
    /// The smallest value; any other may be given, and [`OFF`].
    pub least: u64,
    /// The largest value beside [`OFF`].
    pub most: u64,
    /// Why an order is refused; `None`: it refuses nothing, it turns a kill switch or belongs to
    /// another control.
    pub reason: Option<Reject>,
    /// Where regulations ask for it.
    pub regulation: &'static str,
    /// What it does, in a sentence.
    pub meaning: &'static str,
}

macro_rules! controls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $each:ident, $unit:ident, $least:literal to $most:expr, $reason:expr, $regulation:literal, $meaning:literal;)+) => {
        system::names! {
            /// A pre-trade control, or what belongs to one.
            Control { $($(#[$doc])* $variant = $name,)+ }
        }

        impl Control {
            /// What there is to know of it.
            pub const fn record(self) -> &'static ControlInfo {
                match self {
                    $(Control::$variant => &ControlInfo {
                        each: Each::$each,
                        unit: Unit::$unit,
                        least: $least,
                        most: $most,
                        reason: $reason,
                        regulation: $regulation,
                        meaning: $meaning,
                    },)+
                }
            }
        }
    };
}

/// The largest money limit, in cents: what is reckoned with fits 128 bits.
const MONEY: u64 = 1 << 62;
/// The largest quantity.
const QUANTITY: u64 = crate::instrument::MOST;
/// The longest window, in nanoseconds: an hour.
const WINDOW: u64 = 3_600_000_000_000;
const MANY: u64 = u32::MAX as u64;

controls! {
    /// Orders that a strategy may have at its venues.
    MaxOpenOrders = "max-open-orders": Strategy, Orders, 0 to MANY, Some(Reject::TooManyOpen),
        "", "orders that a strategy may have at its venues; never more than the plan has room for";
    /// The largest quantity of an order.
    MaxOrderVolume = "max-order-volume": Account, Quantity, 0 to QUANTITY, Some(Reject::TooLarge),
        "RTS 6 Art. 15(1)(c)", "the largest quantity of an order";
    /// The largest value of an order.
    MaxOrderValue = "max-order-value": Account, Cents, 0 to MONEY, Some(Reject::OrderValue),
        "RTS 6 Art. 15(1)(b)", "the largest price times quantity; a market order counts at the reference price";
    /// The price collar, relative.
    PriceCollar = "price-collar": Instrument, BasisPoints, 0 to 1_000_000, Some(Reject::PriceCollar),
        "RTS 6 Art. 15(1)(a)", "how far a price may be from the reference price, in basis points of it";
    /// The price collar, absolute.
    PriceCollarTicks = "price-collar-ticks": Instrument, Ticks, 0 to 1_000_000_000, Some(Reject::PriceCollar),
        "RTS 6 Art. 15(1)(a)", "the same in ticks; with both the narrower one counts";
    /// Messages a second of a strategy.
    MessageRate = "message-rate": Strategy, PerSecond, 1 to 1_000_000_000, Some(Reject::MessageRate),
        "RTS 6 Art. 15(1)(d)", "messages a second of a strategy in the long run";
    /// The burst of a strategy.
    MessageBurst = "message-burst": Strategy, Messages, 1 to 1_000_000, None,
        "", "messages that a strategy may send at once; off: a tenth of a second's";
    /// Messages a second of a credential.
    CredentialRate = "credential-rate": Credential, PerSecond, 1 to 1_000_000_000, Some(Reject::CredentialRate),
        "RTS 6 Art. 15(1)(d)", "messages a second of all strategies of a credential";
    /// The burst of a credential.
    CredentialBurst = "credential-burst": Credential, Messages, 1 to 1_000_000, None,
        "", "messages that they may send at once; off: a tenth of a second's";
    /// The repeated-execution throttle.
    MaxExecutions = "max-executions": Account, Executions, 0 to MANY, Some(Reject::ExecutionThrottle),
        "RTS 6 Art. 15(3)", "executions after which an account is off until somebody revives its strategy, its instrument or all";
    /// The window of the duplicate check.
    DuplicateWindow = "duplicate-window": Strategy, Nanoseconds, 1 to WINDOW, Some(Reject::Duplicate),
        "SEC 15c3-5(c)(1)(ii)", "how long the same instrument, side, price and quantity counts as a duplicate of one of the strategy's last eight orders";
    /// The largest position.
    MaxPosition = "max-position": Account, Quantity, 0 to QUANTITY, Some(Reject::Position),
        "SEC 15c3-5(c)(1)(i)", "the largest position, long or short, with all that is open on one side filled";
    /// The largest gross exposure of a credential.
    GrossExposure = "max-gross-exposure": Credential, Cents, 0 to MONEY, Some(Reject::GrossExposure),
        "SEC 15c3-5(c)(1)(i)", "the sum over the instruments of the largest position that can come of what is open, at reference prices";
    /// The largest net exposure of a credential.
    NetExposure = "max-net-exposure": Credential, Cents, 0 to MONEY, Some(Reject::NetExposure),
        "SEC 15c3-5(c)(1)(i)", "the same with long and short instruments set off against each other";
    /// A restricted instrument.
    Restricted = "restricted": Account, Switch, 1 to 1, Some(Reject::Restricted),
        "SEC 15c3-5(c)(2)(ii)", "no new orders in the instrument, or none of the strategy";
    /// Loss after which a strategy is killed.
    MaxLoss = "max-loss": Strategy, Cents, 0 to MONEY, None,
        "RTS 6 Art. 12 and 15(4)", "a loss, realised and not, at reference prices: above it the strategy's kill switch is turned on";
    /// Messages a second at which a strategy is killed.
    KillMessageRate = "kill-message-rate": Strategy, PerSecond, 1 to 1_000_000_000, None,
        "RTS 6 Art. 12", "messages a second, refused ones too, above which the strategy's kill switch is turned on";
    /// Rejections after which a strategy is killed.
    MaxRejections = "max-rejections": Strategy, Rejections, 0 to MANY, None,
        "RTS 6 Art. 12", "rejections within a window, above which the strategy's kill switch is turned on";
    /// The window in which they are counted.
    RejectionWindow = "rejection-window": Strategy, Nanoseconds, 1 to WINDOW, None,
        "", "the window in which rejections are counted, from the first of them on; off: a second";
    /// The death of a strategy turns its kill switch on.
    KillOnDeath = "kill-on-death": Strategy, Switch, 1 to 1, None,
        "RTS 6 Art. 12", "the death of the strategy turns its kill switch on: the next incarnation is refused until it is revived";
}

impl Control {
    /// Its code in commands and logs, from 0.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The control with that code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// A limit, and for whom. A later setting overrides an earlier one where both apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSetting {
    /// For whom.
    pub scope: Scope,
    /// Of which control.
    pub control: Control,
    /// In the unit of the control; [`OFF`]: no limit.
    pub value: u64,
}

/// What is wrong with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// The control has no limit of that scope.
    #[error("{control} cannot be set for {scope}: it is set for {}", control.record().each.scopes())]
    Scope {
        /// The control.
        control: Control,
        /// The scope.
        scope: Scope,
    },
    /// The value is out of its range.
    #[error("{control} cannot be {value}: from {} to {} ({}), or off", control.record().least, control.record().most, control.record().unit.name())]
    Value {
        /// The control.
        control: Control,
        /// The value.
        value: u64,
    },
}

impl LimitSetting {
    /// Whether there can be such a setting in some run.
    ///
    /// # Errors
    /// A scope that the control is not set for, or a value out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        let Self { scope, control, value } = *self;
        let record = control.record();
        if !record.each.takes(scope) {
            return Err(LimitError::Scope { control, scope });
        }
        if value != OFF && !(record.least..=record.most).contains(&value) {
            return Err(LimitError::Value { control, value });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_lead_back() {
        for control in Control::ALL {
            assert_eq!(Control::from_code(control.code()), Some(*control));
            assert_eq!(Control::from_name(control.name()), Some(*control));
            let record = control.record();
            assert!(record.least <= record.most && record.most < OFF && !record.meaning.is_empty());
        }
        assert_eq!(Control::from_code(Control::ALL.len() as u8), None);
    }

    #[test]
    fn settings_have_a_range_and_scopes() {
        let setting = |scope, control, value| LimitSetting { scope, control, value }.check();
        let rate = Control::MessageRate;
        assert_eq!(setting(Scope::Strategy(3), rate, 1), Ok(()));
        assert_eq!(setting(Scope::All, rate, OFF), Ok(()));
        assert_eq!(setting(Scope::All, rate, 0), Err(LimitError::Value { control: rate, value: 0 }));
        let scope = Scope::Credential(1);
        assert_eq!(setting(scope, rate, 5), Err(LimitError::Scope { control: rate, scope }));
        for control in Control::ALL {
            let record = control.record();
            for value in [record.least, record.most, OFF] {
                assert_eq!(setting(Scope::All, *control, value), Ok(()), "{control}");
            }
            assert!(setting(Scope::All, *control, record.most + 1).is_err(), "{control}");
            assert!(setting(Scope::Venue(0), *control, record.least).is_err(), "{control}");
        }
    }
}
