//! What a matching engine is told to do.

/// Which side of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Bids.
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

/// What happens instead of a trade between two orders of one owner. The aggressor's instruction decides.
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

/// A new order. Prices and quantities are integers in the instrument's units; what they mean is the user's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// Its name, unique among the orders that are in the books. A used id is free again when its order is gone.
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
    /// Limit price in ticks of one unit, above 0; ignored for market and stop orders.
    pub price: i64,
    /// Of a stop order: the price that triggers it. Else ignored.
    pub stop_price: i64,
    /// Quantity, above 0.
    pub quantity: u64,
    /// Iceberg: the most that is shown at once; 0: all of it.
    pub display: u64,
    /// The least that must be filled at once, or the order is cancelled; 0: none. After that it is an ordinary order.
    pub minimum: u64,
    /// Of a [`TimeInForce::GoodTillTime`] order: the time from which on it is gone, in the user's units.
    pub expires_at: u64,
}

/// A command. Commands are carried out one after the other, each completely.
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
    /// Changes price and total open quantity of a resting order of that owner. It keeps its priority when only its quantity falls;
    /// else it goes to the end of its level, and trades first if its new price crosses.
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
    /// The time is now this: orders that live until then or earlier expire, the earliest first, those of one time in the order of
    /// their arrival. Time never goes back; an earlier one is ignored.
    Time(u64),
    /// Begins a call auction: from here on orders of the instrument gather and do not trade.
    Auction {
        /// The instrument.
        instrument: u16,
    },
    /// Ends it: what crosses trades at one price, the one with the largest volume, then the smallest surplus, then nearest to the
    /// reference price, then the higher; continuous trading begins.
    Uncross {
        /// The instrument.
        instrument: u16,
    },
}
