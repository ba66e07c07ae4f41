//! The terms of an order beside price and quantity, with their FIX names.

use super::WireError;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant = $code,)+ }

        impl $name {
            /// Every value, in the order of their codes, which begin at 0.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$variant),+];

            #[inline]
            pub(super) const fn code(self) -> u8 {
                self as u8
            }

            #[inline]
            pub(super) const fn from_code(code: u8) -> Result<Self, WireError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(WireError::BadTerms),
                }
            }
        }
    };
}

codes! {
    /// OrdType, FIX tag 40.
    OrderType {
        /// At its price or better.
        #[default]
        Limit = 0,
        /// At any price. A limit order of price 0 of a recording is one too: see
        /// [`super::Order::price`].
        Market = 1,
        /// A market order from the moment that a trade happens at its stop price or beyond.
        Stop = 2,
        /// A limit order from that moment.
        StopLimit = 3,
    }
}

codes! {
    /// TimeInForce, FIX tag 59.
    TimeInForce {
        /// Until it is filled or cancelled.
        #[default]
        GoodTillCancel = 0,
        /// What is not filled at once is cancelled.
        ImmediateOrCancel = 1,
        /// Filled at once and in full, or cancelled.
        FillOrKill = 2,
        /// For as long as [`Condition::Life`] says.
        GoodTillTime = 3,
    }
}

codes! {
    /// What happens instead of a trade between two orders of one strategy; FIX tags 2362 and 2964.
    SelfTrade {
        /// They trade.
        #[default]
        Allow = 0,
        /// What is left of the newer one is cancelled.
        CancelNewest = 1,
        /// The older one is cancelled.
        CancelOldest = 2,
        /// Both are cancelled.
        CancelBoth = 3,
        /// Both lose the smaller quantity.
        Decrement = 4,
    }
}

/// The one further number that an order can carry. Who needs two of them at once needs another
/// venue: a message has one word for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Condition {
    /// None.
    #[default]
    None,
    /// Of a stop order: the price that triggers it, in the units of [`super::Order::price`].
    StopPrice(i64),
    /// Iceberg: the most that is shown at once, in the units of [`super::Order::quantity`].
    Display(u64),
    /// The least that must be filled at once.
    Minimum(u64),
    /// How long a [`TimeInForce::GoodTillTime`] order lives from its arrival at the venue, in
    /// nanoseconds.
    Life(u64),
}

impl Condition {
    #[inline]
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::StopPrice(_) => 1,
            Self::Display(_) => 2,
            Self::Minimum(_) => 3,
            Self::Life(_) => 4,
        }
    }

    #[inline]
    pub(super) const fn word(self) -> u64 {
        match self {
            Self::None => 0,
            Self::StopPrice(price) => price.cast_unsigned(),
            Self::Display(quantity) | Self::Minimum(quantity) => quantity,
            Self::Life(ns) => ns,
        }
    }

    #[inline]
    pub(super) const fn from_code(code: u8, word: u64) -> Result<Self, WireError> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::StopPrice(word.cast_signed())),
            2 => Ok(Self::Display(word)),
            3 => Ok(Self::Minimum(word)),
            4 => Ok(Self::Life(word)),
            _ => Err(WireError::BadTerms),
        }
    }
}

/// What an order says beside price and quantity. The default is a plain limit order. A `delay`
/// venue looks at none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Its type.
    pub order_type: OrderType,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Refused rather than take liquidity.
    pub post_only: bool,
    /// What happens instead of a trade with an order of the same strategy.
    pub self_trade: SelfTrade,
    /// A further number.
    pub condition: Condition,
}
