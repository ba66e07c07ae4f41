//! Events: the output of a matching engine.

use crate::command::Side;
use thiserror::Error;

/// Why a command was not carried out. Nothing changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RejectReason {
    /// No such instrument.
    #[error("unknown instrument")]
    UnknownInstrument,
    /// An order of this id is in a book.
    #[error("an order of this id is open")]
    DuplicateId,
    /// No order of this id and owner is in a book: never was, or is gone.
    #[error("no such open order")]
    UnknownOrder,
    /// A price that is 0 or below, off the tick, or outside of the band.
    #[error("bad price")]
    BadPrice,
    /// A quantity that is 0, off the lot, or above the largest.
    #[error("bad quantity")]
    BadQuantity,
    /// Price times quantity does not fit.
    #[error("price times quantity does not fit 64 bits")]
    NotionalOverflow,
    /// Attributes that contradict each other; the documentation of `Command` has the table.
    #[error("attributes that do not go together")]
    BadCombination,
    /// It would have taken liquidity.
    #[error("post-only order would trade")]
    WouldTrade,
    /// No room for another order.
    #[error("the book is full")]
    Full,
    /// Not in this phase of trading.
    #[error("not in this phase")]
    WrongPhase,
    /// It expires before it arrives.
    #[error("expires in the past")]
    Expired,
}

/// Why an order, or what was left of it, left the book without a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelReason {
    /// Its owner wanted that.
    Requested,
    /// Its owner wanted all orders cancelled.
    MassCancel,
    /// Immediate or cancel: the remainder.
    Immediate,
    /// Fill or kill: it could not be filled in full.
    FillOrKill,
    /// It could not fill its minimum quantity.
    Minimum,
    /// Market: no counterparty is left.
    NoLiquidity,
    /// It would have traded with its own owner.
    SelfTrade,
}

/// One thing that happened. All events of a command come in the order in which they happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The order was taken (FIX ExecType New); what it does at once follows.
    Accepted {
        /// The order.
        id: u64,
    },
    /// A command was not carried out.
    Rejected {
        /// The order that the command named; 0 if it names none.
        id: u64,
        /// Why.
        reason: RejectReason,
    },
    /// Two orders traded, at the resting order's price; in an auction at the auction's, where the
    /// buyer counts as the taker.
    Trade {
        /// The number of the trade of this engine, from 0.
        number: u64,
        /// The instrument.
        instrument: u16,
        /// The resting order.
        maker: u64,
        /// The order that came.
        taker: u64,
        /// The taker's side.
        taker_side: Side,
        /// The price.
        price: i64,
        /// The quantity.
        quantity: u64,
        /// What is open of the maker now, hidden quantity too; 0: it is filled and gone.
        maker_leaves: u64,
        /// What is open of the taker now.
        taker_leaves: u64,
    },
    /// An order left the book, or what was left of it.
    Cancelled {
        /// The order.
        id: u64,
        /// What was open of it.
        leaves: u64,
        /// Why.
        reason: CancelReason,
    },
    /// An order's time is over.
    Expired {
        /// The order.
        id: u64,
        /// What was open of it.
        leaves: u64,
    },
    /// An order was changed. What it trades at its new price follows.
    Replaced {
        /// The order.
        id: u64,
        /// Its price now.
        price: i64,
        /// What is open of it now.
        leaves: u64,
    },
    /// Self-trade prevention took quantity from it.
    Reduced {
        /// The order.
        id: u64,
        /// What is open of it now, above 0.
        leaves: u64,
    },
    /// A stop order is an order now (FIX ExecType Triggered or Activated by System); what it does
    /// follows.
    Triggered {
        /// The order.
        id: u64,
    },
    /// An auction ended; its trades follow.
    Uncrossed {
        /// The instrument.
        instrument: u16,
        /// The price of all its trades; 0 if there is none.
        price: i64,
        /// The quantity traded.
        volume: u64,
    },
}

/// Where events go.
pub trait Events {
    /// Takes one. It must not block.
    fn on(&mut self, event: Event);
}

impl Events for Vec<Event> {
    fn on(&mut self, event: Event) {
        self.push(event);
    }
}
