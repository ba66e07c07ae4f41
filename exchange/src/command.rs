//! Commands: the input of a matching engine.

/// The side of an order: buy or sell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Side {
    /// The order buys: a bid.
    #[default]
    Buy,
    /// The order sells: an offer.
    Sell,
}

impl Side {
    /// Returns the opposite side: sell for buy, buy for sell.
    #[inline]
    pub(crate) fn opposite(self) -> Side {
        const OPPOSITE: [Side; 2] = [Side::Sell, Side::Buy];
        OPPOSITE[self as usize]
    }
}

/// The type of an order (FIX OrdType, tag 40).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OrderType {
    /// Trades at its limit price or better.
    #[default]
    Limit,
    /// Trades at any price; the remainder is cancelled.
    Market,
    /// Becomes a market order when a trade reaches its stop price.
    Stop,
    /// Becomes a limit order when a trade reaches its stop price.
    StopLimit,
}

impl OrderType {
    /// Returns `true` for types of orders that have a limit price.
    pub fn has_limit_price(self) -> bool {
        matches!(self, OrderType::Limit | OrderType::StopLimit)
    }

    /// Returns `true` for types of orders that wait until a stop price is traded.
    pub fn is_stop(self) -> bool {
        matches!(self, OrderType::Stop | OrderType::StopLimit)
    }
}

/// How long an order remains in force (FIX TimeInForce, tag 59).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TimeInForce {
    /// The order rests until it is filled or cancelled.
    #[default]
    GoodTillCancel,
    /// Fills at once as far as possible; the remainder is cancelled.
    ImmediateOrCancel,
    /// Fills at once and in full, or is cancelled.
    FillOrKill,
    /// Rests until [`NewOrder::expires_at`].
    GoodTillTime,
}

/// Self-trade prevention: the action instead of a trade between two orders of one owner. The
/// aggressor's instruction decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SelfTrade {
    /// The two orders trade with each other.
    #[default]
    Allow,
    /// The aggressor's remainder is cancelled.
    CancelNewest,
    /// The resting order is cancelled; the aggressor continues.
    CancelOldest,
    /// Both orders are cancelled.
    CancelBoth,
    /// Both lose the smaller open quantity; an order with nothing left is cancelled.
    Decrement,
}

/// The fields of a new order. Prices and quantities are integers in units that the user defines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NewOrder {
    /// Order id, unique among the open orders. It may be reused once its order has left the book.
    pub id: u64,
    /// Index of the instrument.
    pub instrument: u16,
    /// Owner of the order, for self-trade prevention and mass cancel.
    pub owner: u32,
    /// Side of the book.
    pub side: Side,
    /// Type of the order, such as limit.
    pub order_type: OrderType,
    /// Time for which the order remains in force.
    pub time_in_force: TimeInForce,
    /// Whether the order is rejected rather than takes liquidity.
    pub post_only: bool,
    /// Self-trade prevention, applied when this order is the aggressor.
    pub self_trade: SelfTrade,
    /// Limit price, above 0; ignored for market and stop orders.
    pub price: i64,
    /// Stop price, above 0; ignored unless the order is a stop or stop-limit order.
    pub stop_price: i64,
    /// Quantity of the order, above 0.
    pub quantity: u64,
    /// Maximum displayed quantity of an iceberg order; 0 displays everything.
    pub display: u64,
    /// Minimum quantity that must fill on arrival, or the order is cancelled; 0 for none.
    pub minimum: u64,
    /// Expiry of a [`TimeInForce::GoodTillTime`] order, in the user's units of time.
    pub expires_at: u64,
}

/// A command to the matching engine, such as a new order or a cancel. Commands are applied in
/// order, each completely.
///
/// # Rejects
/// The first reason that applies is reported. A rejected command changes nothing.
///
/// - `New`: `UnknownInstrument`, `DuplicateId` (also of a waiting stop order), `BadQuantity`,
///   `BadPrice`, `NotionalOverflow`, `BadCombination`, `Expired`, `WrongPhase`, `WouldTrade`,
///   `Full`
/// - `Cancel`: `UnknownOrder`
/// - `Replace`: `UnknownOrder`, `BadCombination` (a waiting stop order), `BadQuantity`, `BadPrice`,
///   `NotionalOverflow`, `WouldTrade` (a post-only order, which stays unchanged), `Full`
/// - `MassCancel`: `UnknownInstrument` (the event has id 0)
/// - `Auction`, `Uncross`: `UnknownInstrument`, `WrongPhase` (the event has id 0)
///
/// The reasons:
///
/// - `BadQuantity`: `quantity` is 0, not a multiple of the lot or above the maximum; `display` or
///   `minimum` is not a multiple of the lot or above `quantity`.
/// - `BadPrice`: the price of a limit or stop-limit order, or the stop price of a stop or
///   stop-limit order, is outside of the band or off the tick. The band's lowest price is above 0.
///   Ticks are counted from price 0.
/// - `NotionalOverflow`: limit price or stop price times quantity is above `u64::MAX`.
/// - `WouldTrade`: the order is post-only and its price reaches the best price of the other side,
///   also if that is an order of its own owner.
/// - `Full`: every order slot is in use, or there are not enough level slots, see `Capacity`. A
///   replacement that loses its priority needs one free level.
///
/// # Valid combinations
/// An order with a combination named here is rejected as `BadCombination`; all others are valid.
///
/// | attribute | not with |
/// |---|---|
/// | market | good till time, post-only, iceberg |
/// | stop | post-only, iceberg, minimum |
/// | stop-limit | post-only, minimum |
/// | immediate or cancel | post-only, iceberg |
/// | fill or kill | post-only, iceberg, minimum |
/// | minimum | post-only |
///
/// A market order's time in force is immediate or cancel if it is good till cancel. A stop order's
/// time in force other than good till time applies once it is triggered; a good-till-time order
/// also expires while it waits. In an auction market orders are rejected as `WrongPhase`, and so
/// are limit orders that are immediate or cancel, fill or kill, post-only or have a minimum.
///
/// # Matching
/// Price-time priority. A trade is at the resting order's price. An iceberg order trades with its
/// displayed part; once that is filled the next part joins the end of its level. An arriving
/// iceberg trades with all its quantity before it rests. The events of an order are `Accepted`, its
/// trades, and the end of its remainder. Before a fill-or-kill order or one with a minimum trades,
/// the quantity available to it is counted, including hidden parts and excluding trades that
/// self-trade prevention would prevent. If that is not enough, `Cancelled` follows `Accepted` and
/// nothing else changes. The remainder of an immediate-or-cancel order is cancelled as `Immediate`,
/// of a market order as `NoLiquidity`.
///
/// # Self-trade prevention
/// Applies when the next order to trade with has the same owner. Open quantities include hidden
/// parts. `CancelNewest`: `Cancelled` for the aggressor. `CancelOldest`: `Cancelled` for the
/// resting order, and the aggressor continues. `CancelBoth`: both, the resting order first.
/// `Decrement`: both lose the smaller open quantity, the resting order's event first. An order with
/// quantity left is `Reduced` and keeps its priority (an iceberg loses hidden quantity first); one
/// with nothing left is `Cancelled` with its previous open quantity. A fill-or-kill order that
/// would lose quantity that way cannot fill. In an auction self-trade prevention does not apply.
///
/// # Stop orders
/// Each trade triggers the buy stops at or below its price, the lowest first, and then the sell
/// stops at or above its price, the highest first; those at one stop price in order of arrival.
/// Triggered orders queue, and act in that order once the trading order is done, each after its
/// event `Triggered`. Their own trades append to the queue. A stop order whose stop price was
/// already reached by the instrument's last trade is triggered at once, after `Accepted`. In an
/// auction stop orders wait; the last price triggers them when it ends.
///
/// # Mass cancel
/// Cancels instrument by instrument: bids from the best, offers from the best, each level in time
/// priority, then waiting buy stops from the lowest and sell stops from the highest.
///
/// # Auctions
/// Every price of the band on the tick can be the auction's price, with or without orders at it.
/// Its volume is the smaller of the quantity bid at it or above and offered at it or below,
/// including hidden parts. Bids trade from the highest, offers from the lowest, each level in time
/// priority, each order with its full open quantity; the buyer's order is the event's taker. An
/// iceberg that trades in part keeps its priority, and its displayed quantity falls by the traded
/// quantity, or is a full part again if nothing displayed is left. Without volume `Uncrossed` has
/// price and volume 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Command {
    /// Enters a new order.
    New(NewOrder),
    /// Cancels an order of that owner.
    Cancel {
        /// Id of the order.
        id: u64,
        /// Owner of the order. Another owner's order is an `UnknownOrder`.
        owner: u32,
    },
    /// Replaces price and open quantity of a resting order of that owner. The order keeps its
    /// priority if the price stays and the quantity does not rise (an iceberg loses hidden quantity
    /// first). Otherwise it trades if its new price crosses, under its own self-trade prevention,
    /// and joins the end of its level.
    Replace {
        /// Id of the order.
        id: u64,
        /// Owner of the order.
        owner: u32,
        /// New limit price.
        price: i64,
        /// New open quantity, above 0.
        quantity: u64,
    },
    /// Cancels every order of an owner, in one instrument or in all.
    MassCancel {
        /// Owner of the orders.
        owner: u32,
        /// The instrument, or `None` for all.
        instrument: Option<u16>,
    },
    /// Advances the time: orders with this expiry or an earlier one expire, the earliest first.
    /// Those of one time expire in order of arrival (of the new order, also if it was replaced
    /// since). An earlier time than the current one is ignored.
    Time(u64),
    /// Begins a call auction: orders of the instrument rest and do not trade.
    Auction {
        /// Index of the instrument.
        instrument: u16,
    },
    /// Ends a call auction: orders that cross trade at one price. It is the one with the largest
    /// volume, then the smallest surplus, then nearest to the instrument's reference price, then
    /// the higher. Continuous trading begins.
    Uncross {
        /// Index of the instrument.
        instrument: u16,
    },
}
