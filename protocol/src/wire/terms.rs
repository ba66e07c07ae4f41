//! The terms of an order besides price and quantity, with their FIX names.

use super::WireError;

codes! {
    BadTerms:
    /// The type of an order: OrdType, FIX tag 40.
    #[derive(Default)]
    OrderType {
        /// Trades at its price or better.
        #[default]
        Limit = 0,
        /// Trades at any price, as does a recording's limit order with price 0.
        Market = 1,
        /// Becomes a market order when a trade happens at its stop price or beyond.
        Stop = 2,
        /// Becomes a limit order when a trade happens at its stop price or beyond.
        StopLimit = 3,
    }
}

codes! {
    BadTerms:
    /// The lifetime of an order: TimeInForce, FIX tag 59.
    #[derive(Default)]
    TimeInForce {
        /// Valid until it is filled or cancelled.
        #[default]
        GoodTillCancel = 0,
        /// The part that is not filled immediately is cancelled.
        ImmediateOrCancel = 1,
        /// Filled immediately and in full, or cancelled.
        FillOrKill = 2,
        /// Valid for the time of [`OrderCondition::Lifetime`].
        GoodTillTime = 3,
    }
}

codes! {
    BadTerms:
    /// Self-trade prevention (FIX tags 2362 and 2964): what happens instead of a trade.
    #[derive(Default)]
    SelfTrade {
        /// The orders trade.
        #[default]
        Allow = 0,
        /// The rest of the newer order is cancelled.
        CancelNewest = 1,
        /// The older order is cancelled.
        CancelOldest = 2,
        /// Both orders are cancelled.
        CancelBoth = 3,
        /// Both orders are reduced by the smaller quantity.
        Decrement = 4,
    }
}

/// An order's one optional parameter, such as a stop price, shown quantity, minimum quantity or
/// lifetime. A message has one word for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderCondition {
    /// The order has no such parameter.
    #[default]
    None,
    /// The price that triggers a stop order, in the units of [`super::OrderRequest::price`].
    StopPrice(i64),
    /// Iceberg order: the maximum quantity shown at once.
    Display(u64),
    /// The minimum quantity that must be filled immediately.
    Minimum(u64),
    /// Lifetime of a good-till-time order from its arrival at the venue, in nanoseconds.
    Lifetime(u64),
}

impl OrderCondition {
    #[inline]
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::StopPrice(_) => 1,
            Self::Display(_) => 2,
            Self::Minimum(_) => 3,
            Self::Lifetime(_) => 4,
        }
    }

    #[inline]
    pub(super) const fn word(self) -> u64 {
        match self {
            Self::None => 0,
            Self::StopPrice(price) => price.cast_unsigned(),
            Self::Display(quantity) | Self::Minimum(quantity) => quantity,
            Self::Lifetime(ns) => ns,
        }
    }

    #[inline]
    pub(super) const fn from_code(code: u8, word: u64) -> Result<Self, WireError> {
        match code {
            0 => Ok(Self::None),
            1 => Ok(Self::StopPrice(word.cast_signed())),
            2 => Ok(Self::Display(word)),
            3 => Ok(Self::Minimum(word)),
            4 => Ok(Self::Lifetime(word)),
            _ => Err(WireError::BadTerms),
        }
    }
}

/// The terms of an order besides price and quantity; a `delay` venue ignores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OrderTerms {
    /// The type of the order.
    pub order_type: OrderType,
    /// The lifetime of the order.
    pub time_in_force: TimeInForce,
    /// `true` if the order is refused rather than taking liquidity.
    pub post_only: bool,
    /// The self-trade prevention of the order.
    pub self_trade: SelfTrade,
    /// The optional parameter of the order, such as its stop price.
    pub condition: OrderCondition,
}
