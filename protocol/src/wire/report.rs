//! Execution reports: what a strategy gets back.

use super::{Message, Order, OrderId, Side, WireError};
use crate::reject::Reject;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// What a report says of its order: FIX ExecType and OrdStatus, as far as an order here has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderStatus {
    /// Executed, as a whole or what was left of it (FIX Filled). A `delay` venue says so of every
    /// new order.
    Filled,
    /// The orchestrator's risk checks refused it; it never reached a venue.
    Rejected,
    /// What was left of it is cancelled: its strategy wanted that, its terms did, or its strategy
    /// is dead.
    Cancelled,
    /// The venue has it (FIX New).
    Accepted,
    /// The venue has executed a part of it.
    PartiallyFilled,
    /// The venue refused it: what an exchange rejects.
    Refused,
    /// It has the price and the open quantity of the report now.
    Replaced,
    /// Its time is over.
    Expired,
    /// A stop order is an order now.
    Triggered,
    /// The venue took quantity from it without a trade (FIX Restated): self-trade prevention.
    Restated,
    /// Of a cancel, a replace or a mass cancel: it was carried out.
    Done,
}

impl OrderStatus {
    /// Every status, in the order of their codes, which begin at 1.
    pub const ALL: [OrderStatus; 11] = [
        OrderStatus::Filled,
        OrderStatus::Rejected,
        OrderStatus::Cancelled,
        OrderStatus::Accepted,
        OrderStatus::PartiallyFilled,
        OrderStatus::Refused,
        OrderStatus::Replaced,
        OrderStatus::Expired,
        OrderStatus::Triggered,
        OrderStatus::Restated,
        OrderStatus::Done,
    ];

    #[inline]
    const fn code(self) -> u8 {
        self as u8 + 1
    }

    #[inline]
    const fn from_code(code: u8) -> Result<Self, WireError> {
        if code >= 1 && code as usize <= Self::ALL.len() {
            Ok(Self::ALL[code as usize - 1])
        } else {
            Err(WireError::BadStatus)
        }
    }
}

/// An execution report on its way back to the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The order that it is about.
    pub id: OrderId,
    /// The venue.
    pub venue: u16,
    /// What is traded.
    pub instrument: u16,
    /// What it says of the order.
    pub status: OrderStatus,
    /// For a rejection: the reason's code (`protocol::reject::Reject`). Of a venue: a code of its
    /// own, or 0.
    pub reason: u8,
    /// The side of the order.
    pub side: Side,
    /// Price in cents: of what was filled with this report (FIX LastPx); without a fill the
    /// order's.
    pub price: i64,
    /// The quantity that was filled with this report, in 1e-8 units (FIX LastQty).
    pub filled: u64,
    /// What is open of the order now (FIX LeavesQty); 0 with the last report.
    pub leaves: u64,
    /// What was filled of the order in all (FIX CumQty).
    pub cumulative: u64,
    /// Which report of its order this is, from 0. An order has at most [`MAX_REPORTS`].
    pub number: u8,
    /// No report of this order follows: it is closed.
    pub is_last: bool,
}

/// The most reports of one order.
pub const MAX_REPORTS: usize = 128;

/// The number of the report with which the engine closes an order whose gateway died. The engine
/// does not count a venue's reports, so this is the last number that there can be.
pub const ENGINE_REPORT: u8 = (MAX_REPORTS - 1) as u8;

/// The bit of a t5's detail that says that more reports of the order follow.
const MORE: u8 = 1 << 7;

const _: () = assert!(MAX_REPORTS == MORE as usize);

/// The bytes of a report.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ReportWords {
    id: u64,
    leaves: u64,
    price: i64,
    filled: u64,
    cumulative: u64,
    venue: u16,
    instrument: u16,
    code: u8,
    side: u8,
    reason: u8,
    number: u8,
    is_last: u8,
    reserved: [u8; 7],
}

const _: () = assert!(size_of::<ReportWords>() == size_of::<Message>());

/// The message that stands in the place of one that is none: where messages are counted one to one,
/// each has one behind it, whatever it is. No report, order or cancel.
pub const NOTHING: Message = [u64::MAX; super::MESSAGE_WORDS];

impl Report {
    /// The one report of an order that was filled whole, at the order's own price.
    pub const fn whole_fill(order: &Order) -> Self {
        Self {
            id: order.id,
            venue: order.venue,
            instrument: order.instrument,
            status: OrderStatus::Filled,
            reason: 0,
            side: order.side,
            price: order.price,
            filled: order.quantity,
            leaves: 0,
            cumulative: order.quantity,
            number: 0,
            is_last: true,
        }
    }

    /// The report of an order that never reached its venue.
    pub const fn rejected(order: &Order, reason: Reject) -> Self {
        Self {
            status: OrderStatus::Rejected,
            reason: reason.code(),
            filled: 0,
            cumulative: 0,
            ..Self::whole_fill(order)
        }
    }

    /// What the record of its t5 says beside the order: its number, and in the highest bit whether
    /// more of its order follow. Zero for the one report of an order that has no other.
    #[inline]
    pub const fn detail(&self) -> u8 {
        self.number & !MORE | if self.is_last { 0 } else { MORE }
    }

    /// Number and `is_last` of the report with this detail at its t5.
    #[inline]
    pub const fn of_detail(detail: u8) -> (u8, bool) {
        (detail & !MORE, detail & MORE == 0)
    }

    /// The message's words.
    #[inline]
    pub fn to_message(&self) -> Message {
        transmute!(ReportWords {
            id: self.id.word(),
            leaves: self.leaves,
            price: self.price,
            filled: self.filled,
            cumulative: self.cumulative,
            venue: self.venue,
            instrument: self.instrument,
            code: self.status.code(),
            side: self.side.code(),
            reason: self.reason,
            number: self.number,
            is_last: u8::from(self.is_last),
            reserved: [0; 7],
        })
    }

    /// Checks a message and makes a report of it.
    ///
    /// # Errors
    /// A code that is not one of ours.
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let words: ReportWords = transmute!(message);
        Ok(Self {
            id: OrderId::from_word(words.id),
            venue: words.venue,
            instrument: words.instrument,
            status: OrderStatus::from_code(words.code)?,
            reason: words.reason,
            side: Side::from_code(words.side)?,
            price: words.price,
            filled: words.filled,
            leaves: words.leaves,
            cumulative: words.cumulative,
            number: match words.number {
                0..MORE => words.number,
                _ => return Err(WireError::BadStatus),
            },
            is_last: match words.is_last {
                0 => false,
                1 => true,
                _ => return Err(WireError::BadStatus),
            },
        })
    }
}
