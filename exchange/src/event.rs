//! Events: the output of the matching engine.

use crate::command::Side;
use thiserror::Error;

/// The reason why the matching engine rejected a command. A rejected command changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RejectReason {
    /// The instrument's index is unknown.
    #[error("unknown instrument")]
    UnknownInstrument,
    /// An order of this id is open.
    #[error("an order of this id is open")]
    DuplicateId,
    /// No order of this id and owner is open.
    #[error("no such open order")]
    UnknownOrder,
    /// A price is 0 or below, off the tick, or outside of the band.
    #[error("bad price")]
    BadPrice,
    /// A quantity is 0, off the lot, or above the maximum.
    #[error("bad quantity")]
    BadQuantity,
    /// Price times quantity does not fit 64 bits.
    #[error("price times quantity does not fit 64 bits")]
    NotionalOverflow,
    /// Attributes of the command contradict each other; the documentation of `Command` has the
    /// table.
    #[error("attributes contradict each other")]
    BadCombination,
    /// A post-only order would have taken liquidity.
    #[error("post-only order would trade")]
    WouldTrade,
    /// The capacity of the exchange for orders or price levels is exhausted.
    #[error("the book is full")]
    Full,
    /// The command is not valid in the instrument's trading phase.
    #[error("not in this trading phase")]
    WrongPhase,
    /// The order's expiry is not after the current time.
    #[error("expires in the past")]
    Expired,
}

/// The reason why the matching engine cancelled an order, or its remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CancelReason {
    /// The owner of the order cancelled it.
    Requested,
    /// A mass cancel of the owner cancelled the order.
    MassCancel,
    /// The remainder of an immediate-or-cancel order was cancelled.
    Immediate,
    /// A fill-or-kill order could not be filled in full.
    FillOrKill,
    /// The minimum quantity could not be filled.
    Minimum,
    /// A market order found no counterparty.
    NoLiquidity,
    /// Self-trade prevention cancelled the order.
    SelfTrade,
}

/// An event of the matching engine, such as a trade or a cancel. The events of a command are in the
/// order in which they happened.
///
/// In `Accepted`, `Cancelled` and `Expired`, `price` is the limit price; of a stop order that
/// waits, the stop price; of a market order, 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// A new order was accepted (FIX ExecType New). The events of its execution follow.
    Accepted {
        /// Id of the order.
        id: u64,
        /// Side of the order.
        side: Side,
        /// Limit or stop price; 0 for a market order.
        price: i64,
    },
    /// A command was rejected and changed nothing.
    Rejected {
        /// Id of the order that the command names; 0 if it names none.
        id: u64,
        /// Reason of the reject.
        reason: RejectReason,
    },
    /// Two orders traded at the resting order's price. In an auction the price is the auction's,
    /// and the buyer's order is the taker.
    Trade {
        /// Number of the trade in this engine, from 0.
        number: u64,
        /// Index of the instrument.
        instrument: u16,
        /// Id of the resting order.
        maker: u64,
        /// Id of the aggressor.
        taker: u64,
        /// Side of the aggressor.
        taker_side: Side,
        /// Price of the trade.
        price: i64,
        /// Quantity of the trade, above 0.
        quantity: u64,
        /// Open quantity of the maker after the trade, hidden quantity included; 0 if it is filled.
        maker_leaves: u64,
        /// Open quantity of the taker after the trade.
        taker_leaves: u64,
    },
    /// An order, or its remainder, was cancelled.
    Cancelled {
        /// Id of the order.
        id: u64,
        /// Side of the order.
        side: Side,
        /// Limit or stop price; 0 for a market order.
        price: i64,
        /// Quantity that was open.
        leaves: u64,
        /// Reason of the cancellation.
        reason: CancelReason,
    },
    /// A good-till-time order expired.
    Expired {
        /// Id of the order.
        id: u64,
        /// Side of the order.
        side: Side,
        /// Limit or stop price.
        price: i64,
        /// Quantity that was open.
        leaves: u64,
    },
    /// An order was replaced. The trades at its new price follow.
    Replaced {
        /// Id of the order.
        id: u64,
        /// Side of the order.
        side: Side,
        /// New limit price.
        price: i64,
        /// New open quantity.
        leaves: u64,
    },
    /// Self-trade prevention reduced an order.
    Reduced {
        /// Id of the order.
        id: u64,
        /// Open quantity that is left, above 0.
        leaves: u64,
    },
    /// A stop order was triggered (FIX ExecType Triggered or Activated by System). The events of
    /// its execution follow.
    Triggered {
        /// Id of the order.
        id: u64,
    },
    /// A call auction ended. Its trades follow.
    Uncrossed {
        /// Index of the instrument.
        instrument: u16,
        /// Price of all its trades; 0 if there is none.
        price: i64,
        /// Total quantity traded.
        volume: u64,
    },
}

/// A receiver of the matching engine's events: a buffer, a report builder, or a ring.
pub trait Events {
    /// Handles an event of the matching engine. Called while a command is applied, so it must not
    /// block.
    fn on(&mut self, event: Event);
}

impl Events for Vec<Event> {
    fn on(&mut self, event: Event) {
        self.push(event);
    }
}
