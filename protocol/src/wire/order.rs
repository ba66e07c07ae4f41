//! Orders: the messages of strategies.

use super::terms::{OrderCondition, OrderTerms, OrderType, SelfTrade, TimeInForce};
use super::{Message, OrderId, WireError};
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// The operation that an order requests: new, cancel, replace or mass cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new order.
    New,
    /// The cancel of an earlier order of the same strategy at the same venue.
    Cancel,
    /// A new price and open quantity for an earlier order, which keeps the earlier order's id; one
    /// report.
    Replace,
    /// The cancel of all orders of the same strategy at the same venue in one instrument.
    MassCancel,
}

codes! {
    BadSide:
    /// The side of an order: buy or sell.
    #[derive(Serialize, Deserialize)]
    Side {
        /// The order buys: a bid.
        Buy = 0,
        /// The order sells: an offer.
        Sell = 1,
    }
}

impl Side {
    /// Returns the opposite side of an order: sell for buy, buy for sell.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }
}

/// The fields of an order that a strategy chooses, such as venue, instrument, operation, side,
/// price and quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderRequest {
    /// The index of the venue, below the plan's number of venues (checked by the orchestrator).
    pub venue: u16,
    /// The index of the instrument, below the plan's number (checked by the orchestrator).
    pub instrument: u16,
    /// The operation that the order requests, such as new or cancel.
    pub operation: Operation,
    /// The side of the order: buy or sell.
    pub side: Side,
    /// The delay at a `delay` venue in nanoseconds, sampled with the schedule.
    pub delay_ns: u64,
    /// Limit price in cents; the new price for a replace; 0 for a market order or a cancel.
    pub price: i64,
    /// Quantity in 1e-8 units; the new open quantity for a replace; 0 for a cancel.
    pub quantity: u64,
    /// The sequence of the order that a cancel or a replace targets (same strategy). Else 0.
    pub target: u64,
    /// The further terms of a new order; the default for other operations.
    pub terms: OrderTerms,
    /// The version of the market data that triggered the order; 0 if none did.
    pub trigger: u64,
}

/// An order request on its way from a strategy to a venue: the order's id and the fields that the
/// strategy chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The order's id, whose strategy the engine checks against the ring that the order came
    /// through.
    pub id: OrderId,
    /// The fields that the strategy chose.
    pub request: OrderRequest,
}

/// The memory layout of an order. Words that an operation does not use are zero.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct OrderWords {
    pub id: u64,
    pub delay_ns: u64,
    pub price: i64,
    pub quantity: u64,
    /// The target of a cancel or a replace; the condition of a new order.
    pub target: u64,
    pub trigger: u64,
    pub venue: u16,
    pub instrument: u16,
    pub code: u8,
    /// The side; for a mass cancel instruction the fields of its scope.
    pub side: u8,
    /// Bits 0–3 the type, 4–7 the time in force.
    pub kind: u8,
    /// Bits 0–2 the self-trade prevention, 3 post only, 4–7 the condition.
    pub rules: u8,
}

const _: () = assert!(size_of::<OrderWords>() == size_of::<Message>());

const POST_ONLY: u8 = 1 << 3;

impl OrderRequest {
    /// Creates a request for a new buy order with quantity 0 in instrument 0 of a venue, a base for
    /// struct update syntax.
    pub const fn to_venue(venue: u16) -> Self {
        Self {
            venue,
            instrument: 0,
            operation: Operation::New,
            side: Side::Buy,
            delay_ns: 0,
            price: 0,
            quantity: 0,
            target: 0,
            terms: OrderTerms {
                order_type: OrderType::Limit,
                time_in_force: TimeInForce::GoodTillCancel,
                post_only: false,
                self_trade: SelfTrade::Allow,
                condition: OrderCondition::None,
            },
            trigger: 0,
        }
    }

    /// Returns an order with this id and the fields of the request.
    #[inline(always)]
    pub const fn with_id(self, id: OrderId) -> Order {
        Order { id, request: self }
    }
}

impl Order {
    /// Creates an order with this id: a new buy order with quantity 0 in instrument 0, for the
    /// venue with this index.
    pub const fn new(id: OrderId, venue: u16) -> Self {
        OrderRequest::to_venue(venue).with_id(id)
    }

    /// Encodes the order as a ring message: with its terms but without `target` for a new order,
    /// with `target` but without terms for other operations.
    #[inline]
    pub fn to_message(&self) -> Message {
        let Self { id, request } = self;
        let OrderTerms { order_type, time_in_force, post_only, self_trade, condition } = request.terms;
        let words = OrderWords {
            id: id.word(),
            delay_ns: request.delay_ns,
            price: request.price,
            quantity: request.quantity,
            target: request.target,
            trigger: request.trigger,
            venue: request.venue,
            instrument: request.instrument,
            code: match request.operation {
                Operation::New => 1,
                Operation::Cancel => 2,
                Operation::Replace => 4,
                Operation::MassCancel => 5,
            },
            side: request.side.code(),
            kind: 0,
            rules: 0,
        };
        transmute!(match request.operation {
            Operation::New => OrderWords {
                target: condition.word(),
                kind: order_type.code() | time_in_force.code() << 4,
                rules: self_trade.code() | if post_only { POST_ONLY } else { 0 } | condition.code() << 4,
                ..words
            },
            _ => words,
        })
    }

    /// Decodes an order from a ring message and validates its codes; the orchestrator checks venue,
    /// instrument and id.
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let words: OrderWords = transmute!(message);
        let operation = match words.code {
            1 => Operation::New,
            2 => Operation::Cancel,
            4 => Operation::Replace,
            5 => Operation::MassCancel,
            _ => return Err(WireError::BadOperation),
        };
        let (target, terms) = match operation {
            Operation::New => (0, words.terms()?),
            _ if words.kind | words.rules != 0 => return Err(WireError::BadTerms),
            _ => (words.target, OrderTerms::default()),
        };
        let request = OrderRequest {
            venue: words.venue,
            instrument: words.instrument,
            operation,
            side: Side::from_code(words.side)?,
            delay_ns: words.delay_ns,
            price: words.price,
            quantity: words.quantity,
            target,
            terms,
            trigger: words.trigger,
        };
        Ok(request.with_id(OrderId::from_word(words.id)))
    }
}

impl OrderWords {
    #[inline]
    fn terms(&self) -> Result<OrderTerms, WireError> {
        // The common case, a plain limit order, costs one comparison.
        if (self.kind | self.rules) == 0 && self.target == 0 {
            return Ok(OrderTerms::default());
        }
        Ok(OrderTerms {
            order_type: OrderType::from_code(self.kind & 0xF)?,
            time_in_force: TimeInForce::from_code(self.kind >> 4)?,
            post_only: self.rules & POST_ONLY != 0,
            self_trade: SelfTrade::from_code(self.rules & (POST_ONLY - 1))?,
            condition: OrderCondition::from_code(self.rules >> 4, self.target)?,
        })
    }
}
