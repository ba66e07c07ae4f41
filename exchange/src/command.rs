//! Commands: the input of a matching engine.

/// Which side of the book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// Bids.
    #[default]
    Buy,
    /// Offers.
    Sell,
}

/// What an order asks for, by its FIX name (OrdType, tag 40).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OrderType {
    /// At its price or better.
    #[default]
    Limit,
    /// At any price; what finds no counterparty is cancelled.
    Market,
    /// A market order from the moment that a trade happens at its stop price or beyond.
    Stop,
    /// A limit order from that moment.
    StopLimit,
}

impl OrderType {
    /// Whether it has a limit price.
    pub fn limits(self) -> bool {
        matches!(self, OrderType::Limit | OrderType::StopLimit)
    }

    /// Whether it waits for its stop price.
    pub fn waits(self) -> bool {
        matches!(self, OrderType::Stop | OrderType::StopLimit)
    }
}

/// How long an order lives, by its FIX name (TimeInForce, tag 59).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeInForce {
    /// Until it is filled or cancelled.
    #[default]
    GoodTillCancel,
    /// What is not filled at once is cancelled.
    ImmediateOrCancel,
    /// Filled at once and in full, or cancelled.
    FillOrKill,
    /// Until a time: [`NewOrder::expires_at`].
    GoodTillTime,
}

/// What happens instead of a trade between two orders of one owner. The aggressor's instruction
/// decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SelfTrade {
    /// They trade.
    #[default]
    Allow,
    /// The aggressor's remainder is cancelled.
    CancelNewest,
    /// The resting order is cancelled and the aggressor goes on.
    CancelOldest,
    /// Both are cancelled.
    CancelBoth,
    /// Both lose the smaller quantity; what is left with nothing is cancelled.
    Decrement,
}

/// A new order. Prices and quantities are integers in the instrument's units; what they mean is the
/// user's affair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewOrder {
    /// Its name, unique among the orders that are in the books. A used id is free again when its
    /// order is gone.
    pub id: u64,
    /// The instrument's index.
    pub instrument: u16,
    /// Whose it is: for self-trade prevention and mass cancel.
    pub owner: u32,
    /// Its side.
    pub side: Side,
    /// Its type.
    pub order_type: OrderType,
    /// How long it lives.
    pub time_in_force: TimeInForce,
    /// Rejected rather than take liquidity.
    pub post_only: bool,
    /// What happens instead of a trade with an order of the same owner.
    pub self_trade: SelfTrade,
    /// Limit price, above 0; ignored for market and stop orders.
    pub price: i64,
    /// Of a stop order: the price that triggers it. Else ignored.
    pub stop_price: i64,
    /// Quantity, above 0.
    pub quantity: u64,
    /// Iceberg: the most that is shown at once; 0: all of it.
    pub display: u64,
    /// The least that must be filled at once, or the order is cancelled; 0: none. After that it is
    /// an ordinary order.
    pub minimum: u64,
    /// Of a [`TimeInForce::GoodTillTime`] order: the time from which on it is gone, in the user's
    /// units.
    pub expires_at: u64,
}

/// A command. Commands are carried out one after the other, each completely.
///
/// # Rejects
/// The first that applies counts, in this order; nothing has changed then.
///
/// | command | reasons in the order in which they are looked for |
/// |---|---|
/// | `New` | `UnknownInstrument`, `DuplicateId` (waiting stop orders are open too), `BadQuantity`, `BadPrice`, `NotionalOverflow`, `BadCombination`, `Expired`, `WrongPhase`, `WouldTrade`, `Full` |
/// | `Cancel` | `UnknownOrder` |
/// | `Replace` | `UnknownOrder`, `BadCombination` (a stop order that waits), `BadQuantity`, `BadPrice`, `NotionalOverflow`, `WouldTrade` (a post-only order; it stays as it was), `Full` |
/// | `MassCancel` | `UnknownInstrument` (the event names id 0) |
/// | `Auction`, `Uncross` | `UnknownInstrument`, `WrongPhase` (the event names id 0) |
///
/// - `BadQuantity`: `quantity` is 0, no multiple of the lot or above the largest; `display` or
///   `minimum` is no multiple of the lot or above `quantity`.
/// - `BadPrice`: the price of a limit or stop-limit order, or the stop price of a stop or
///   stop-limit order, is outside of the band or off the tick. The band's lowest price is above 0.
///   Ticks are counted from price 0.
/// - `NotionalOverflow`: price times quantity is above `u64::MAX`: the limit price's, the stop
///   price's, each that the order has. Market orders have none.
/// - `WouldTrade`: the order is post-only and its price reaches the best price of the other side,
///   whoever that is.
/// - `Full`: every order slot is in use, whatever the order would do; or there are not enough level
///   slots, see `Capacity`. A replacement that does not keep its priority needs one free level.
///
/// # What goes together
/// Everything not named here does. Otherwise the order is rejected as `BadCombination`.
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
/// time in force other than good till time counts from when it is triggered; the time of good till
/// time runs from the start. In an auction only limit, stop and stop-limit orders are taken, no
/// market orders, and of the limit orders none that is immediate or cancel, fill or kill, post-only
/// or has a minimum: `WrongPhase`.
///
/// # Matching
/// The best price first, at a price the order that came first. A trade is at the resting order's
/// price. An iceberg order trades with its shown part; when that is done the next part goes to the
/// end of its level. An arriving iceberg trades with all its quantity before it rests. The events
/// of an order: `Accepted`, its trades, and what became of its rest. Fill or kill and minimum look
/// first: they count what they would trade with, hidden parts too and without what self-trade
/// prevention would prevent; if that is too little, `Cancelled` follows `Accepted` and nothing else
/// has changed. The rest of an immediate-or-cancel order is cancelled as `Immediate`, of a market
/// order as `NoLiquidity`.
///
/// # Self-trade prevention
/// When the next order to trade with has the same owner, by the aggressor's instruction (its
/// quantity is all that is open, hidden parts too): `CancelNewest`: `Cancelled` for the aggressor.
/// `CancelOldest`: `Cancelled` for the resting order, the aggressor goes on. `CancelBoth`: both,
/// the resting order first. `Decrement`: both lose the smaller quantity, the resting order's event
/// first: who has something left is `Reduced` and keeps its place (an iceberg loses hidden quantity
/// first), who has nothing left is `Cancelled` with what was open of it. A fill-or-kill order that
/// would lose quantity in that way cannot be filled in full. There is none in an auction.
///
/// # Stop orders
/// Each trade triggers the buy stops at or below its price, the lowest first, and then the sell
/// stops at or above its price, the highest first; those at one stop price in the order of their
/// arrival. They queue, and act when the order that trades is done, first come first served, each
/// with the event `Triggered` before what it does. Their own trades append to the queue. A stop
/// order that arrives when the instrument's last trade has reached its stop price is triggered at
/// once, after `Accepted`. In an auction stop orders wait; they are looked at with the last price
/// when it ends.
///
/// # Mass cancel
/// Cancels instrument by instrument: bids from the best, offers from the best, each level in its
/// order, then waiting buy stops from the lowest, sell stops from the highest.
///
/// # Auctions
/// Every price in the band that is on the tick can be the auction's, also one at which there is no
/// order. Its volume is the smaller of what is bid at it or above and what is offered at it or
/// below, hidden parts too. Bids trade from the highest, offers from the lowest, each level in its
/// order, each order with all that is open of it; the buyer's order is the event's taker. An
/// iceberg that trades in part keeps its place and shows what was shown less what was traded, or a
/// full part if nothing shown is left. Without volume `Uncrossed` has price and volume 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A new order.
    New(NewOrder),
    /// Cancels an order of that owner.
    Cancel {
        /// The order.
        id: u64,
        /// Its owner: nobody cancels what is another's.
        owner: u32,
    },
    /// Changes price and total open quantity of a resting order of that owner. At the same price it
    /// keeps its priority when its quantity falls or stays (an iceberg loses hidden quantity
    /// first); else it trades if its new price crosses, with the self-trade prevention that it came
    /// with, and goes to the end of its level.
    Replace {
        /// The order.
        id: u64,
        /// Its owner.
        owner: u32,
        /// Its new limit price.
        price: i64,
        /// What is open of it from now on, above 0.
        quantity: u64,
    },
    /// Cancels every order of the owner, of one instrument or of all.
    MassCancel {
        /// Whose.
        owner: u32,
        /// Of which instrument; `None`: of all.
        instrument: Option<u16>,
    },
    /// The time is now this: orders that live until then or earlier expire, the earliest first,
    /// those of one time in the order of their arrival (of the new order, whatever replaced it
    /// since). Time never goes back; an earlier one is ignored.
    Time(u64),
    /// Begins a call auction: from here on orders of the instrument gather and do not trade.
    Auction {
        /// The instrument.
        instrument: u16,
    },
    /// Ends it: what crosses trades at one price, the one with the largest volume, then the
    /// smallest surplus, then nearest to the instrument's reference price, then the higher;
    /// continuous trading begins.
    Uncross {
        /// The instrument.
        instrument: u16,
    },
}
