//! Order ids: strategy, epoch and sequence in one word.
//!
//! ```text
//! OrderId   63       58 57      50 49          40 39      32 31                        0
//!          │ 0        │ strategy │ epoch        │ 0        │ sequence                  │
//!          └──────────┴──────────┴──────────────┴──────────┴───────────────────────────┘
//! The zeros are space for a stamp's other fields: see `stamps`.
//! ```

use super::{MAX_STRATEGIES, MAX_VENUES, WireError};
use crate::index::StrategyIndex;

/// The largest sequence number of the orders of one incarnation of a strategy (32 bits).
pub const MAX_SEQUENCE: u64 = (1 << 32) - 1;

/// The largest incarnation number of a strategy, after which it is not restarted.
pub const MAX_EPOCH: u16 = (1 << EPOCH_BITS) - 1;

const EPOCH_BITS: u32 = 10;
const EPOCH_SHIFT: u32 = 40;
const STRATEGY_SHIFT: u32 = EPOCH_SHIFT + EPOCH_BITS;
/// Width of an order id in bits; the higher bits of a stamp's word hold its code.
pub(crate) const ID_WIDTH: u32 = STRATEGY_SHIFT + 8;

/// The bits of a word that an order id uses.
const ID_BITS: u64 = (((1 << (8 + EPOCH_BITS)) - 1) << EPOCH_SHIFT) | MAX_SEQUENCE;

const _: () = assert!(ID_BITS >> ID_WIDTH == 0 && ID_BITS.count_ones() == 8 + EPOCH_BITS + 32);
const _: () = assert!(MAX_STRATEGIES == 1 << 8 && MAX_VENUES <= 1 << 8);

/// An order's identity: strategy (8 bits), epoch (10, its incarnation), sequence (32, from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(u64);

impl OrderId {
    /// Creates an order's id from its strategy's index, the strategy's epoch and a sequence number.
    /// Bits that do not fit their field are dropped.
    #[inline]
    pub const fn new(strategy: u16, epoch: u16, sequence: u64) -> Self {
        let (strategy, epoch) = (strategy as u64 & 0xFF, epoch as u64 & MAX_EPOCH as u64);
        Self((strategy << STRATEGY_SHIFT) | (epoch << EPOCH_SHIFT) | (sequence & MAX_SEQUENCE))
    }
    /// Decodes an order id from a 64-bit word, and ignores the bits that no field of the id uses.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word & ID_BITS)
    }
    /// Returns the id of the order with this sequence number from the same strategy and
    /// incarnation. Higher bits of the sequence are dropped.
    #[inline]
    pub const fn with_sequence(self, sequence: u64) -> Self {
        Self(self.0 & !MAX_SEQUENCE | sequence & MAX_SEQUENCE)
    }
    /// Encodes the order id as a 64-bit word, whose bits 32 to 39 and 58 to 63 are zero.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }
    /// Returns the index of the strategy that sent the order.
    #[inline]
    pub const fn strategy(self) -> StrategyIndex {
        StrategyIndex(((self.0 >> STRATEGY_SHIFT) & 0xFF) as u16)
    }
    /// Returns the incarnation number of the order's strategy: 0, plus one after each restart.
    #[inline]
    pub const fn epoch(self) -> u16 {
        (self.0 >> EPOCH_SHIFT) as u16 & MAX_EPOCH
    }
    /// Returns the order's number among those of the strategy's incarnation, from 0 without gaps.
    #[inline]
    pub const fn sequence(self) -> u64 {
        self.0 & MAX_SEQUENCE
    }
}

impl core::fmt::Display for OrderId {
    /// `strategy/sequence`, or `strategy.epoch/sequence` after a restart, as `--order` expects.
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
