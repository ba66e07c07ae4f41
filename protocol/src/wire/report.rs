//! Execution reports: the messages back to strategies.

use super::{Message, Order, OrderId, Side, WireError};
use crate::reject::Reject;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

codes! {
    BadStatus:
    /// The status of an order in a report: a subset of FIX ExecType and OrdStatus.
    OrderStatus {
        /// The order is fully executed (FIX Filled). A `delay` venue reports it for every new
        /// order.
        Filled = 1,
        /// Rejected by the orchestrator's risk checks; the order never reached a venue.
        Rejected = 2,
        /// The order's open quantity is cancelled: by the strategy, the order's terms, or the
        /// strategy's death.
        Cancelled = 3,
        /// The venue has accepted the order (FIX New).
        Accepted = 4,
        /// A part of the order's quantity is executed.
        PartiallyFilled = 5,
        /// The venue, such as an exchange, refused the order.
        Refused = 6,
        /// The order now has the price and the open quantity of the report.
        Replaced = 7,
        /// The order's time in force is over.
        Expired = 8,
        /// A stop order became active.
        Triggered = 9,
        /// The venue reduced the order's quantity without a trade (FIX Restated): self-trade
        /// prevention.
        Restated = 10,
        /// A cancel, a replace or a mass cancel was carried out.
        Done = 11,
    }
}

/// An execution report on its way back to the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The id of the order.
    pub id: OrderId,
    /// The index of the venue.
    pub venue: u16,
    /// The index of the instrument.
    pub instrument: u16,
    /// The status of the order.
    pub status: OrderStatus,
    /// The reason for a rejection ([`Reject`]'s code), or the venue's own code, or 0.
    pub reason: u8,
    /// The side of the order.
    pub side: Side,
    /// Price in cents of the fill of this report (FIX LastPx); without a fill the order's price.
    pub price: i64,
    /// Quantity filled with this report, in 1e-8 units (FIX LastQty).
    pub filled: u64,
    /// Open quantity of the order (FIX LeavesQty); 0 in the last report.
    pub leaves: u64,
    /// Total filled quantity of the order (FIX CumQty).
    pub cumulative: u64,
    /// The number of the report among those of its order, from 0 and below [`MAX_REPORTS`].
    pub number: u8,
    /// `true` for the last report of the order, which closes it.
    pub is_last: bool,
}

/// Maximum number of execution reports of one order.
pub const MAX_REPORTS: usize = 128;

/// The number of the report with which the engine closes an order of a dead gateway: the largest
/// number that an order's report can have.
pub const ENGINE_REPORT: u8 = (MAX_REPORTS - 1) as u8;

/// The bit of a t5's detail that is set if more reports of the order follow.
const MORE: u8 = 1 << 7;

const _: () = assert!(MAX_REPORTS == MORE as usize);

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

/// A message that a gateway sends in place of a report that it refuses, so that its input and
/// output rings count equally many messages.
pub const PLACEHOLDER: Message = [u64::MAX; super::MESSAGE_WORDS];

impl Report {
    /// Creates the only report on an order that was fully filled at its own price.
    pub const fn full_fill(order: &Order) -> Self {
        Self {
            id: order.id,
            venue: order.request.venue,
            instrument: order.request.instrument,
            status: OrderStatus::Filled,
            reason: 0,
            side: order.request.side,
            price: order.request.price,
            filled: order.request.quantity,
            leaves: 0,
            cumulative: order.request.quantity,
            number: 0,
            is_last: true,
        }
    }

    /// Creates a final report that rejects an order for this reason, with nothing filled.
    pub const fn rejected(order: &Order, reason: Reject) -> Self {
        Self {
            status: OrderStatus::Rejected,
            reason: reason.code(),
            filled: 0,
            cumulative: 0,
            ..Self::full_fill(order)
        }
    }

    /// Returns the detail byte of the report's stamp t5: its number, with the highest bit set if
    /// more reports follow.
    #[inline]
    pub const fn stamp_detail(&self) -> u8 {
        self.number & !MORE | if self.is_last { 0 } else { MORE }
    }

    /// Decodes the detail byte of a stamp t5: the report's number, and whether it is the order's
    /// last.
    #[inline]
    pub const fn parse_stamp_detail(detail: u8) -> (u8, bool) {
        (detail & !MORE, detail & MORE == 0)
    }

    /// Encodes the report as a message.
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

    /// Decodes and validates a report from a message.
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
