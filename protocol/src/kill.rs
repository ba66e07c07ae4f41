//! Kill switches: whom they concern, what turns them, and how the stamp log tells of it.

use crate::record::{Point, Record};
use crate::wire::{ID_WIDTH, OrderId};
use serde::{Deserialize, Serialize};

/// Whom a kill switch or a limit concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Everybody.
    #[default]
    All,
    /// A strategy, every incarnation of it.
    Strategy(u16),
    /// The strategies of a credential.
    Credential(u16),
    /// Orders for a venue.
    Venue(u16),
    /// Orders in an instrument, by its index.
    Instrument(u16),
}

impl Scope {
    /// Whether it concerns an order of that strategy and credential, for that venue, in that
    /// instrument.
    #[inline]
    pub const fn concerns(self, strategy: u16, credential: u16, venue: u16, instrument: u16) -> bool {
        match self {
            Self::All => true,
            Self::Strategy(index) => index == strategy,
            Self::Credential(index) => index == credential,
            Self::Venue(index) => index == venue,
            Self::Instrument(index) => index == instrument,
        }
    }

    /// Kind and index as numbers: what segments and logs hold.
    pub const fn code(self) -> (u8, u16) {
        match self {
            Self::All => (0, 0),
            Self::Strategy(index) => (1, index),
            Self::Credential(index) => (2, index),
            Self::Venue(index) => (3, index),
            Self::Instrument(index) => (4, index),
        }
    }

    /// The scope with these numbers, if there is one.
    pub const fn from_code(kind: u8, index: u16) -> Option<Self> {
        match kind {
            0 => Some(Self::All),
            1 => Some(Self::Strategy(index)),
            2 => Some(Self::Credential(index)),
            3 => Some(Self::Venue(index)),
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

/// What turned a kill switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// An operator's command: the switch has the command's number.
    Operator,
    /// The death of a strategy.
    Death,
    /// A limit, by the code of its control (0 to 253).
    Limit(u8),
}

impl Cause {
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

/// A kill switch that was turned: what the records [`Point::KillSeen`] and [`Point::KillDone`] say
/// beside their time.
///
/// ```text
/// strategy and epoch    index of the scope: strategy has its bits 10 to 15, epoch bits 0 to 9
/// detail                scope's kind, and in the highest bit whether it is turned off
/// sequence              cause (8 bits) │ number (24 bits)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Switch {
    /// The number of the operator's command; of what the engine does by itself a number of its own,
    /// from 0. 24 bits.
    pub number: u32,
    /// Whom it concerns.
    pub scope: Scope,
    /// On: killed. Off: revived.
    pub is_on: bool,
    /// What turned it.
    pub cause: Cause,
}

const OFF: u8 = 1 << 7;
const NUMBER_BITS: u32 = 24;
const EPOCH_BITS: u32 = 10;

// The id has room for the scope's index.
const _: () = assert!(crate::wire::MAX_EPOCH == (1 << EPOCH_BITS) - 1 && ID_WIDTH >= 58);

impl Switch {
    /// The largest number.
    pub const MAX_NUMBER: u32 = (1 << NUMBER_BITS) - 1;

    /// Id and detail of its records.
    pub const fn to_record(self) -> (OrderId, u8) {
        let (kind, index) = self.scope.code();
        let number = if self.number < Self::MAX_NUMBER { self.number } else { Self::MAX_NUMBER };
        let sequence = (self.cause.code() as u64) << NUMBER_BITS | number as u64;
        let id = OrderId::new(index >> EPOCH_BITS, index & crate::wire::MAX_EPOCH, sequence);
        (id, kind | if self.is_on { 0 } else { OFF })
    }

    /// The switch of a record; `None` if it is of something else.
    pub const fn of(record: &Record) -> Option<Self> {
        if !matches!(record.point, Point::KillSeen | Point::KillDone) {
            return None;
        }
        let index = record.id.strategy() << EPOCH_BITS | record.id.epoch();
        let Some(scope) = Scope::from_code(record.detail & !OFF, index) else { return None };
        let sequence = record.id.sequence();
        Some(Self {
            number: sequence as u32 & Self::MAX_NUMBER,
            scope,
            is_on: record.detail & OFF == 0,
            cause: Cause::from_code((sequence >> NUMBER_BITS) as u8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn switches_survive_the_log(
            number in 0..=Switch::MAX_NUMBER, kind in 0u8..5, index: u16, is_on: bool, cause in 0u8..=255,
        ) {
            let scope = Scope::from_code(kind, if kind == 0 { 0 } else { index }).unwrap();
            let switch = Switch { number, scope, is_on, cause: Cause::from_code(cause) };
            for point in [Point::KillSeen, Point::KillDone] {
                let (id, detail) = switch.to_record();
                prop_assert_eq!(Switch::of(&Record { point, id, detail, value: 7 }), Some(switch));
            }
        }

        #[test]
        fn what_is_no_switch_is_none(kind in 5u8..128, word: u64) {
            let id = OrderId::from_word(word);
            let record = |point, detail| Record { point, id, detail, value: 7 };
            prop_assert_eq!(Switch::of(&record(Point::KillSeen, kind)), None);
            prop_assert_eq!(Switch::of(&record(Point::Gap, 0)), None);
        }
    }

    #[test]
    fn a_scope_concerns_what_it_names() {
        let concerns = |scope: Scope| scope.concerns(1, 2, 3, 4);
        for scope in
            [Scope::All, Scope::Strategy(1), Scope::Credential(2), Scope::Venue(3), Scope::Instrument(4)]
        {
            assert!(concerns(scope), "{scope}");
        }
        for scope in [Scope::Strategy(2), Scope::Credential(1), Scope::Venue(4), Scope::Instrument(3)] {
            assert!(!concerns(scope), "{scope}");
        }
        assert_eq!(Scope::Instrument(4).to_string(), "instrument-4");
    }
}
