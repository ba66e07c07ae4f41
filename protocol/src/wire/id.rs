//! Order ids: strategy, epoch and sequence in one word.
//!
//! ```text
//! OrderId   63       58 57      50 49          40 39      32 31                        0
//!          │ 0        │ strategy │ epoch        │ 0        │ sequence                  │
//!          └──────────┴──────────┴──────────────┴──────────┴───────────────────────────┘
//! The zeros are room for what a stamp says beside the order: see `stamps`.
//! ```

use super::{MAX_STRATEGIES, MAX_VENUES, WireError};

/// The last sequence that one strategy can send in one epoch (32 bits).
pub const MAX_SEQUENCE: u64 = (1 << 32) - 1;

/// The last epoch of a strategy: after so many restarts it stays down.
pub const MAX_EPOCH: u16 = (1 << EPOCH_BITS) - 1;

const EPOCH_BITS: u32 = 10;
const EPOCH_SHIFT: u32 = 40;
const STRATEGY_SHIFT: u32 = EPOCH_SHIFT + EPOCH_BITS;
/// The bits of a word that are no id begin here: what a stamp says of an order stands in them.
pub(crate) const ID_WIDTH: u32 = STRATEGY_SHIFT + 8;

/// The bits of a word that are an order's id.
const ID_BITS: u64 = (((1 << (8 + EPOCH_BITS)) - 1) << EPOCH_SHIFT) | MAX_SEQUENCE;

const _: () = assert!(ID_BITS >> ID_WIDTH == 0 && ID_BITS.count_ones() == 8 + EPOCH_BITS + 32);
const _: () = assert!(MAX_STRATEGIES == 1 << 8 && MAX_VENUES <= 1 << 8);

/// Who an order is: strategy (8 bits), epoch (10 bits, the strategy's incarnation), sequence (32
/// bits, from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(u64);

impl OrderId {
    /// Packs the three parts. Bits that do not fit their field are cut off.
    #[inline]
    pub const fn new(strategy: u16, epoch: u16, sequence: u64) -> Self {
        let (strategy, epoch) = (strategy as u64 & 0xFF, epoch as u64 & MAX_EPOCH as u64);
        Self((strategy << STRATEGY_SHIFT) | (epoch << EPOCH_SHIFT) | (sequence & MAX_SEQUENCE))
    }
    /// The id in a word; the bits that are none of it are ignored.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word & ID_BITS)
    }
    /// The word form, below 2^58. Bits 32 to 39 are zero.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }
    /// The sending strategy's index.
    #[inline]
    pub const fn strategy(self) -> u16 {
        ((self.0 >> STRATEGY_SHIFT) & 0xFF) as u16
    }
    /// The strategy's incarnation: 0, and one more after each restart.
    #[inline]
    pub const fn epoch(self) -> u16 {
        (self.0 >> EPOCH_SHIFT) as u16 & MAX_EPOCH
    }
    /// The position among the strategy's orders, from 0 without gaps.
    #[inline]
    pub const fn sequence(self) -> u64 {
        self.0 & MAX_SEQUENCE
    }
}

impl core::fmt::Display for OrderId {
    /// `strategy/sequence`, or `strategy.epoch/sequence` after a restart; what `inspect --order`
    /// takes.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.epoch() {
            0 => write!(f, "{}/{}", self.strategy(), self.sequence()),
            epoch => write!(f, "{}.{}/{}", self.strategy(), epoch, self.sequence()),
        }
    }
}

impl core::str::FromStr for OrderId {
    type Err = WireError;
    fn from_str(text: &str) -> Result<Self, WireError> {
        let parse = || {
            let (who, sequence) = text.split_once('/')?;
            let (strategy, epoch) = match who.split_once('.') {
                Some((strategy, epoch)) => (strategy, epoch.parse::<u16>().ok().filter(|e| *e <= MAX_EPOCH)?),
                None => (who, 0),
            };
            let strategy = strategy.parse::<u16>().ok().filter(|s| usize::from(*s) < MAX_STRATEGIES)?;
            let sequence = sequence.parse::<u64>().ok().filter(|s| *s <= MAX_SEQUENCE)?;
            Some(Self::new(strategy, epoch, sequence))
        };
        parse().ok_or(WireError::BadOrderId)
    }
}
