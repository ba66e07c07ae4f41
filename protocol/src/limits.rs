//! The pre-trade risk controls as data, and their limits; `orchestrator::risk` checks them.

use crate::kill::Scope;
use crate::reject::Reject;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The value of a risk limit that is switched off.
pub const OFF: u64 = u64::MAX;

system::named_enum! {
    /// The unit of a limit's value.
    LimitUnit {
        /// The limit is a number of orders.
        Orders = "orders",
        /// The limit is a quantity, in 1e-8 units.
        Quantity = "1e-8 units",
        /// The limit is an amount of money: price times quantity, in cents.
        Cents = "cents",
        /// The limit is a share in basis points: hundredths of a percent.
        BasisPoints = "basis points",
        /// The limit is a price difference in ticks (price steps) of the instrument.
        Ticks = "ticks",
        /// The limit is a rate: messages per second.
        PerSecond = "a second",
        /// The limit is a number of messages.
        Messages = "messages",
        /// The limit is a number of executions.
        Executions = "executions",
        /// The limit is a time in nanoseconds.
        Nanoseconds = "ns",
        /// The limit is a number of rejections.
        Rejections = "rejections",
        /// The limit is a switch: 1 is on.
        Switch = "on",
    }
}

/// The kind of entity to which a risk limit applies separately: each strategy, credential,
/// instrument or account. [`Scope::All`] sets it for every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitDomain {
    /// Each strategy has a limit of its own.
    Strategy,
    /// Each credential has a limit of its own, for all its strategies together.
    Credential,
    /// Each instrument has a limit of its own.
    Instrument,
    /// Each account (a strategy in an instrument) has a limit of its own, set for a strategy, an
    /// instrument, or all.
    Account,
}

impl LimitDomain {
    /// Returns `true` if a risk limit of this domain can be set for a scope.
    pub const fn accepts_scope(self, scope: Scope) -> bool {
        match scope {
            Scope::All => true,
            Scope::Strategy(_) => matches!(self, LimitDomain::Strategy | LimitDomain::Account),
            Scope::Credential(_) => matches!(self, LimitDomain::Credential),
            Scope::Instrument(_) => matches!(self, LimitDomain::Instrument | LimitDomain::Account),
            Scope::Venue(_) => false,
        }
    }

    /// Returns the scopes for which a risk limit of this domain can be set, as text: "all or a
    /// strategy".
    pub const fn scopes(self) -> &'static str {
        match self {
            LimitDomain::Strategy => "all or a strategy",
            LimitDomain::Credential => "all or a credential",
            LimitDomain::Instrument => "all or an instrument",
            LimitDomain::Account => "all, a strategy or an instrument",
        }
    }
}

/// The fixed properties of a risk control: its limit's domain, unit and valid range, its rejection
/// reason, and which regulation requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RiskControlInfo {
    /// The domain of the limit: each strategy, credential, instrument or account.
    pub domain: LimitDomain,
    /// The unit of the limit's value.
    pub unit: LimitUnit,
    /// The smallest valid value of the limit.
    pub min: u64,
    /// The largest valid value of the limit; [`OFF`] is valid too.
    pub max: u64,
    /// The reason of the rejections by this control; `None` if it rejects no order itself.
    pub reason: Option<Reject>,
    /// The regulation that requires the risk control.
    pub regulation: &'static str,
    /// The description of the control, in one sentence.
    pub meaning: &'static str,
}

macro_rules! controls {
    ($($variant:ident = $code:literal, $name:literal: $domain:ident, $unit:ident, $min:literal to $max:expr, $reason:expr, $regulation:literal, $meaning:literal;)+) => {
        system::named_enum! {
            /// A pre-trade risk control, or a parameter of one.
            RiskControl { $(#[doc = $meaning] $variant = $name,)+ }
        }

        impl RiskControl {
            /// Returns the code of the risk control in commands and logs.
            pub const fn code(self) -> u8 {
                match self { $(RiskControl::$variant => $code,)+ }
            }

            /// Returns the static description of the risk control, such as its domain, unit and
            /// valid range.
            pub const fn info(self) -> &'static RiskControlInfo {
                match self {
                    $(RiskControl::$variant => &RiskControlInfo {
                        domain: LimitDomain::$domain,
                        unit: LimitUnit::$unit,
                        min: $min,
                        max: $max,
                        reason: $reason,
                        regulation: $regulation,
                        meaning: $meaning,
                    },)+
                }
            }
        }
    };
}

/// The largest money limit, in cents: sums and products fit 128 bits.
const MONEY: u64 = 1 << 62;
const QUANTITY: u64 = crate::instrument::MAX_VALUE;
/// The longest window, in nanoseconds: an hour.
const WINDOW: u64 = 3_600_000_000_000;
const MANY: u64 = u32::MAX as u64;

controls! {
    MaxOpenOrders = 0, "max-open-orders": Strategy, Orders, 0 to MANY, Some(Reject::TooManyOpen),
        "", "orders that a strategy may have at its venues; never more than the plan has room for";
    MaxOrderVolume = 1, "max-order-volume": Account, Quantity, 0 to QUANTITY, Some(Reject::TooLarge),
        "RTS 6 Art. 15(1)(c)", "the largest quantity of an order";
    MaxOrderValue = 2, "max-order-value": Account, Cents, 0 to MONEY, Some(Reject::OrderValue),
        "RTS 6 Art. 15(1)(b)", "the largest price times quantity; a market order counts at the reference price";
    PriceCollar = 3, "price-collar": Instrument, BasisPoints, 0 to 1_000_000, Some(Reject::PriceCollar),
        "RTS 6 Art. 15(1)(a)", "how far a price may be from the reference price, in basis points of it";
    PriceCollarTicks = 4, "price-collar-ticks": Instrument, Ticks, 0 to 1_000_000_000, Some(Reject::PriceCollar),
        "RTS 6 Art. 15(1)(a)", "the same in ticks; with both the narrower one counts";
    MessageRate = 5, "message-rate": Strategy, PerSecond, 1 to 1_000_000_000, Some(Reject::MessageRate),
        "RTS 6 Art. 15(1)(d)", "messages a second of a strategy in the long run";
    MessageBurst = 6, "message-burst": Strategy, Messages, 1 to 1_000_000, None,
        "", "messages that a strategy may send at once; off: a tenth of a second's";
    CredentialRate = 7, "credential-rate": Credential, PerSecond, 1 to 1_000_000_000, Some(Reject::CredentialRate),
        "RTS 6 Art. 15(1)(d)", "messages a second of all strategies of a credential";
    CredentialBurst = 8, "credential-burst": Credential, Messages, 1 to 1_000_000, None,
        "", "messages that they may send at once; off: a tenth of a second's";
    MaxExecutions = 9, "max-executions": Account, Executions, 0 to MANY, Some(Reject::ExecutionThrottle),
        "RTS 6 Art. 15(3)", "executions after which an account is off until somebody revives its strategy, its instrument or all";
    DuplicateWindow = 10, "duplicate-window": Strategy, Nanoseconds, 1 to WINDOW, Some(Reject::Duplicate),
        "SEC 15c3-5(c)(1)(ii)", "how long the same instrument, side, price and quantity counts as a duplicate of one of the strategy's last eight orders";
    MaxPosition = 11, "max-position": Account, Quantity, 0 to QUANTITY, Some(Reject::Position),
        "SEC 15c3-5(c)(1)(i)", "the largest position, long or short, with all that is open on one side filled";
    GrossExposure = 12, "max-gross-exposure": Credential, Cents, 0 to MONEY, Some(Reject::GrossExposure),
        "SEC 15c3-5(c)(1)(i)", "the sum over the instruments of the largest position that can come of what is open, at reference prices";
    NetExposure = 13, "max-net-exposure": Credential, Cents, 0 to MONEY, Some(Reject::NetExposure),
        "SEC 15c3-5(c)(1)(i)", "the same with long and short instruments set off against each other";
    Restricted = 14, "restricted": Account, Switch, 1 to 1, Some(Reject::Restricted),
        "SEC 15c3-5(c)(2)(ii)", "no new orders in the instrument, or none of the strategy";
    MaxLoss = 15, "max-loss": Strategy, Cents, 0 to MONEY, None,
        "RTS 6 Art. 12 and 15(4)", "a loss, realised and not, at reference prices: above it the strategy's kill switch is turned on";
    KillMessageRate = 16, "kill-message-rate": Strategy, PerSecond, 1 to 1_000_000_000, None,
        "RTS 6 Art. 12", "messages a second, refused ones too, above which the strategy's kill switch is turned on";
    MaxRejections = 17, "max-rejections": Strategy, Rejections, 0 to MANY, None,
        "RTS 6 Art. 12", "rejections within a window, above which the strategy's kill switch is turned on";
    RejectionWindow = 18, "rejection-window": Strategy, Nanoseconds, 1 to WINDOW, None,
        "", "the window in which rejections are counted, from the first of them on; off: a second";
    KillOnDeath = 19, "kill-on-death": Strategy, Switch, 1 to 1, None,
        "RTS 6 Art. 12", "the death of the strategy turns its kill switch on: the next incarnation is refused until it is revived";
    CredentialOpenOrders = 20, "credential-open-orders": Credential, Orders, 0 to MANY, Some(Reject::CredentialOpen),
        "", "orders that all strategies of a credential may have at their venues together";
}

impl RiskControl {
    /// Returns the risk control with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|control| control.code() == code)
    }
}

/// A risk limit with its scope (the orders to which it applies). A later setting overrides an
/// earlier one where both apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitSetting {
    /// The orders that the limit applies to.
    pub scope: Scope,
    /// The risk control whose limit is set.
    pub control: RiskControl,
    /// The limit, in the unit of the control; [`OFF`]: no limit.
    pub value: u64,
}

/// The error that the setting of a limit is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitError {
    /// The control has no limit of that scope.
    #[error("{control} cannot be set for {scope}: it is set for {}", control.info().domain.scopes())]
    Scope {
        /// The risk control that was named.
        control: RiskControl,
        /// The scope for which the limit was requested.
        scope: Scope,
    },
    /// The value of the limit is outside the control's valid range.
    #[error("{control} cannot be {value}: from {} to {} ({}), or off", control.info().min, control.info().max, control.info().unit.name())]
    Value {
        /// The risk control that was named.
        control: RiskControl,
        /// The value that is not allowed.
        value: u64,
    },
}

impl LimitSetting {
    /// Checks the scope and the range of the risk limit.
    pub fn check(&self) -> Result<(), LimitError> {
        let Self { scope, control, value } = *self;
        let record = control.info();
        if !record.domain.accepts_scope(scope) {
            return Err(LimitError::Scope { control, scope });
        }
        if value != OFF && !(record.min..=record.max).contains(&value) {
            return Err(LimitError::Value { control, value });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{StrategyIndex, VenueIndex};

    #[test]
    fn codes_and_names_round_trip() {
        for control in RiskControl::ALL {
            assert_eq!(RiskControl::from_code(control.code()), Some(*control));
            assert_eq!(RiskControl::from_name(control.name()), Some(*control));
            let record = control.info();
            assert!(record.min <= record.max && record.max < OFF && !record.meaning.is_empty());
        }
        assert_eq!(RiskControl::from_code(RiskControl::ALL.len() as u8), None);
    }

    #[test]
    fn settings_outside_range_or_scope_are_refused() {
        let setting = |scope, control, value| LimitSetting { scope, control, value }.check();
        let rate = RiskControl::MessageRate;
        assert_eq!(setting(Scope::Strategy(StrategyIndex(3)), rate, 1), Ok(()));
        assert_eq!(setting(Scope::All, rate, OFF), Ok(()));
        assert_eq!(setting(Scope::All, rate, 0), Err(LimitError::Value { control: rate, value: 0 }));
        let scope = Scope::Instrument(1);
        assert_eq!(setting(scope, rate, 5), Err(LimitError::Scope { control: rate, scope }));
        for control in RiskControl::ALL {
            let record = control.info();
            for value in [record.min, record.max, OFF] {
                assert_eq!(setting(Scope::All, *control, value), Ok(()), "{control}");
            }
            assert!(setting(Scope::All, *control, record.max + 1).is_err(), "{control}");
            assert!(setting(Scope::Venue(VenueIndex(0)), *control, record.min).is_err(), "{control}");
        }
    }
}
