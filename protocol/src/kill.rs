//! Kill switches: their scope, their cause, and their records in the stamp log.

use crate::index::{StrategyIndex, VenueIndex};
use crate::record::{Point, Record};
use crate::wire::{ID_WIDTH, OrderId};
use serde::{Deserialize, Serialize};

/// The orders that a kill switch or a limit applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All orders of all strategies.
    #[default]
    All,
    /// Orders of all incarnations of a strategy.
    Strategy(StrategyIndex),
    /// Orders of all strategies of a credential.
    Credential(u16),
    /// Orders for a venue.
    Venue(VenueIndex),
    /// Orders in an instrument, by its index.
    Instrument(u16),
}

impl Scope {
    /// Returns `true` if the scope of a kill switch or limit includes an order of this strategy,
    /// credential, venue and instrument.
    #[inline]
    pub const fn contains(
        self,
        strategy: StrategyIndex,
        credential: u16,
        venue: VenueIndex,
        instrument: u16,
    ) -> bool {
        match self {
            Self::All => true,
            Self::Strategy(index) => index.0 == strategy.0,
            Self::Credential(index) => index == credential,
            Self::Venue(index) => index.0 == venue.0,
            Self::Instrument(index) => index == instrument,
        }
    }

    /// Encodes the scope of a kill switch or limit as two numbers, its kind and its index.
    pub const fn code(self) -> (u8, u16) {
        match self {
            Self::All => (0, 0),
            Self::Strategy(index) => (1, index.0),
            Self::Credential(index) => (2, index),
            Self::Venue(index) => (3, index.0),
            Self::Instrument(index) => (4, index),
        }
    }

    /// Decodes the scope of a kill switch or limit; `None` for numbers that no scope has.
    pub const fn from_code(kind: u8, index: u16) -> Option<Self> {
        match kind {
            0 => Some(Self::All),
            1 => Some(Self::Strategy(StrategyIndex(index))),
            2 => Some(Self::Credential(index)),
            3 => Some(Self::Venue(VenueIndex(index))),
            4 => Some(Self::Instrument(index)),
            _ => None,
        }
    }
}

impl core::fmt::Display for Scope {
    /// `all`, `strategy-3`, `credential-1`, `venue-0`, `instrument-7`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let name = match self {
            Self::All => return f.pad("all"),
            Self::Strategy(_) => "strategy",
            Self::Credential(_) => "credential",
            Self::Venue(_) => "venue",
            Self::Instrument(_) => "instrument",
        };
        f.pad(&format!("{name}-{}", self.code().1))
    }
}

/// The cause of turning a kill switch on or off: an operator, a strategy's death or an exceeded
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum KillCause {
    /// An operator's command changed the switch, which has the command's number.
    Operator,
    /// The engine changed the switch because a strategy died.
    Death,
    /// The engine changed the switch because a limit was exceeded: the code of the limit's control
    /// (0 to 253).
    Limit(u8),
}

impl KillCause {
    const fn code(self) -> u8 {
        match self {
            Self::Operator => 0,
            Self::Death => 1,
            Self::Limit(control) => control.saturating_add(2),
        }
    }

    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Operator,
            1 => Self::Death,
            code => Self::Limit(code - 2),
        }
    }
}

/// A kill switch turned on or off for a scope of orders, as [`Point::KillSeen`] and
/// [`Point::KillDone`] records hold it.
///
/// ```text
/// strategy and epoch    index of the scope: strategy has its bits 10 to 15, epoch bits 0 to 9
/// detail                scope's kind, and in the highest bit whether it is turned off
/// sequence              cause (8 bits) │ number (24 bits)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KillSwitch {
    /// Number of the operator's command, or a number from 0 for changes by the engine; 24 bits.
    pub number: u32,
    /// The orders that the kill switch applies to.
    pub scope: Scope,
    /// `true` if the scope was killed, `false` if it was revived.
    pub is_on: bool,
    /// The cause of the change of the kill switch.
    pub cause: KillCause,
}

const OFF: u8 = 1 << 7;
const NUMBER_BITS: u32 = 24;
const EPOCH_BITS: u32 = 10;

// The id has room for the scope's index.
const _: () = assert!(crate::wire::MAX_EPOCH == (1 << EPOCH_BITS) - 1 && ID_WIDTH >= 58);

impl KillSwitch {
    /// The largest number that can identify a kill-switch change in a stamp log (24 bits); larger
    /// numbers are logged as this one.
    pub const MAX_NUMBER: u32 = (1 << NUMBER_BITS) - 1;

    /// Encodes the kill-switch change as order id and detail of a stamp-log record.
    pub const fn to_record(self) -> (OrderId, u8) {
        let (kind, index) = self.scope.code();
        let number = if self.number < Self::MAX_NUMBER { self.number } else { Self::MAX_NUMBER };
        let sequence = (self.cause.code() as u64) << NUMBER_BITS | number as u64;
        let id = OrderId::new(index >> EPOCH_BITS, index & crate::wire::MAX_EPOCH, sequence);
        (id, kind | if self.is_on { 0 } else { OFF })
    }

    /// Decodes a kill-switch change from a record; `None` for a record of another kind.
    pub const fn from_record(record: &Record) -> Option<Self> {
        if !matches!(record.point, Point::KillSeen | Point::KillDone) {
            return None;
        }
        let index = record.id.strategy().0 << EPOCH_BITS | record.id.epoch();
        let Some(scope) = Scope::from_code(record.detail & !OFF, index) else { return None };
        let sequence = record.id.sequence();
        Some(Self {
            number: sequence as u32 & Self::MAX_NUMBER,
            scope,
            is_on: record.detail & OFF == 0,
            cause: KillCause::from_code((sequence >> NUMBER_BITS) as u8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn kill_switches_round_trip_through_log(
            number in 0..=KillSwitch::MAX_NUMBER, kind in 0u8..5, index: u16, is_on: bool, cause in 0u8..=255,
        ) {
            let scope = Scope::from_code(kind, if kind == 0 { 0 } else { index }).unwrap();
            let switch = KillSwitch { number, scope, is_on, cause: KillCause::from_code(cause) };
            for point in [Point::KillSeen, Point::KillDone] {
                let (id, detail) = switch.to_record();
                prop_assert_eq!(KillSwitch::from_record(&Record { point, id, detail, value: 7 }), Some(switch));
            }
        }

        #[test]
        fn decoding_non_switch_records_returns_none(kind in 5u8..128, word: u64) {
            let id = OrderId::from_word(word);
            let record = |point, detail| Record { point, id, detail, value: 7 };
            prop_assert_eq!(KillSwitch::from_record(&record(Point::KillSeen, kind)), None);
            prop_assert_eq!(KillSwitch::from_record(&record(Point::Gap, 0)), None);
        }
    }

    #[test]
    fn scope_contains_exactly_what_it_names() {
        let concerns = |scope: Scope| scope.contains(StrategyIndex(1), 2, VenueIndex(3), 4);
        for scope in [
            Scope::All,
            Scope::Strategy(StrategyIndex(1)),
            Scope::Credential(2),
            Scope::Venue(VenueIndex(3)),
            Scope::Instrument(4),
        ] {
            assert!(concerns(scope), "{scope}");
        }
        for scope in [
            Scope::Strategy(StrategyIndex(2)),
            Scope::Credential(1),
            Scope::Venue(VenueIndex(4)),
            Scope::Instrument(3),
        ] {
            assert!(!concerns(scope), "{scope}");
        }
        assert_eq!(Scope::Instrument(4).to_string(), "instrument-4");
    }
}
