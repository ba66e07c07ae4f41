//! What travels through the rings: messages of seven words, which with the sequence of their slot fill one cache line,
//! and the identities inside them.
//!
//! Shared memory carries words only. An [`Order`] or a [`Report`] is made from words that were first copied out
//! of the ring and is checked before it is believed: no Rust enum is ever made from shared bytes unchecked.
//!
//! ```text
//! OrderId   63       60 59      52 51          40 39      32 31                        0
//!          │ 0        │ strategy │ epoch        │ 0        │ sequence                  │
//!          └──────────┴──────────┴──────────────┴──────────┴───────────────────────────┘
//! The zeros are room for what a stamp says beside the order: see `stamps`.
//! ```

use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

pub use shm::ring::{MESSAGE_WORDS, Message};

/// The most strategies that a run can hold: what fits the field, and what a scan can still serve.
pub const MAX_STRATEGIES: usize = 256;
/// The most venues that a run can hold.
pub const MAX_VENUES: usize = 64;
/// The last sequence that one strategy can send in one epoch (32 bits).
pub const MAX_SEQUENCE: u64 = (1 << 32) - 1;

/// The last epoch of a strategy: after so many restarts it stays down.
pub const MAX_EPOCH: u16 = (1 << 12) - 1;

/// The bits of a word that are an order's id.
const ID_BITS: u64 = (((1 << 20) - 1) << 40) | MAX_SEQUENCE;

const _: () = assert!(ID_BITS >> 60 == 0 && ID_BITS.count_ones() == 8 + 12 + 32);
const _: () = assert!(MAX_STRATEGIES == 1 << 8 && MAX_VENUES <= 1 << 8);

/// Who an order is: strategy (8 bits), epoch (12 bits, the strategy's incarnation), sequence (32 bits, from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OrderId(u64);

impl OrderId {
    /// Packs the three parts. Bits that do not fit their field are cut off.
    #[inline]
    pub const fn new(strategy: u16, epoch: u16, sequence: u64) -> Self {
        let (strategy, epoch) = (strategy as u64 & 0xFF, epoch as u64 & MAX_EPOCH as u64);
        Self((strategy << 52) | (epoch << 40) | (sequence & MAX_SEQUENCE))
    }
    /// The id in a word; the bits that are none of it are ignored.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word & ID_BITS)
    }
    /// The word form, below 2^60. Bits 32 to 39 are zero.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }
    /// The sending strategy's index.
    #[inline]
    pub const fn strategy(self) -> u16 {
        ((self.0 >> 52) & 0xFF) as u16
    }
    /// The strategy's incarnation: 0, and one more after each restart.
    #[inline]
    pub const fn epoch(self) -> u16 {
        (self.0 >> 40) as u16 & MAX_EPOCH
    }
    /// The position among the strategy's orders, from 0 without gaps.
    #[inline]
    pub const fn sequence(self) -> u64 {
        self.0 & MAX_SEQUENCE
    }
}

impl core::fmt::Display for OrderId {
    /// `strategy/sequence`, or `strategy.epoch/sequence` after a restart; what `inspect --order` takes.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.epoch() {
            0 => write!(f, "{}/{}", self.strategy(), self.sequence()),
            epoch => write!(f, "{}.{}/{}", self.strategy(), epoch, self.sequence()),
        }
    }
}

impl core::str::FromStr for OrderId {
    type Err = WireError;
    fn from_str(text: &str) -> Result<Self, WireError> {
        let parse = || {
            let (who, sequence) = text.split_once('/')?;
            let (strategy, epoch) = match who.split_once('.') {
                Some((strategy, epoch)) => (strategy, epoch.parse::<u16>().ok().filter(|e| *e <= MAX_EPOCH)?),
                None => (who, 0),
            };
            let strategy = strategy.parse::<u16>().ok().filter(|s| usize::from(*s) < MAX_STRATEGIES)?;
            let sequence = sequence.parse::<u64>().ok().filter(|s| *s <= MAX_SEQUENCE)?;
            Some(Self::new(strategy, epoch, sequence))
        };
        parse().ok_or(WireError::BadOrderId)
    }
}

/// What an order asks of its venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new order.
    New,
    /// The cancel of an earlier order of the same strategy at the same venue.
    Cancel,
}

/// The side of a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A bid.
    Buy,
    /// An offer.
    Sell,
}

/// A message that no honest peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The operation's code is not one of ours.
    #[error("unknown operation code")]
    BadOperation,
    /// The side's code is not one of ours.
    #[error("unknown side code")]
    BadSide,
    /// The report's status code is not one of ours.
    #[error("unknown report status")]
    BadStatus,
    /// A text that is no order id.
    #[error("not an order id: expected STRATEGY/SEQUENCE, for example 3/1042")]
    BadOrderId,
}

/// An order on its way from a strategy to a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Who it is. The engine believes the strategy part only after comparing it with the ring it came through.
    pub id: OrderId,
    /// The venue it goes to, below the plan's number of venues (checked by the orchestrator).
    pub venue: u16,
    /// What it asks for.
    pub operation: Operation,
    /// Its side.
    pub side: Side,
    /// How long the venue takes for it, in nanoseconds (pre-sampled: part of the schedule).
    pub delay_ns: u64,
    /// Limit price in cents; 0 for a market order or a cancel.
    pub price: i64,
    /// Quantity in 1e-8 units; 0 for a cancel.
    pub quantity: u64,
    /// For a cancel: the sequence of the order that it cancels (same strategy). Else 0.
    pub target: u64,
}

/// What a report says of its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStatus {
    /// The venue has executed it, as a whole or what was left of it, or has carried out the cancel.
    Done,
    /// The orchestrator's risk checks refused it; it never reached a venue.
    Rejected,
    /// The venue has cancelled what was left of it: its strategy wanted that, or is dead.
    Cancelled,
    /// The venue has it.
    Accepted,
    /// The venue has executed a part of it.
    PartiallyFilled,
    /// The venue refused it: what an exchange rejects.
    Refused,
}

impl OrderStatus {
    /// Every status, in the order of their codes, which begin at 1.
    pub const ALL: [OrderStatus; 6] = [
        OrderStatus::Done,
        OrderStatus::Rejected,
        OrderStatus::Cancelled,
        OrderStatus::Accepted,
        OrderStatus::PartiallyFilled,
        OrderStatus::Refused,
    ];

    #[inline]
    const fn code(self) -> u8 {
        self as u8 + 1
    }

    #[inline]
    const fn from_code(code: u8) -> Result<Self, WireError> {
        match code {
            1 => Ok(OrderStatus::Done),
            2 => Ok(OrderStatus::Rejected),
            3 => Ok(OrderStatus::Cancelled),
            4 => Ok(OrderStatus::Accepted),
            5 => Ok(OrderStatus::PartiallyFilled),
            6 => Ok(OrderStatus::Refused),
            _ => Err(WireError::BadStatus),
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
    /// What it says of the order.
    pub status: OrderStatus,
    /// For a rejection: the reason's code (`orchestrator::risk::Reject`). Of a venue: a code of its own, or 0.
    pub reason: u8,
    /// The side of the order.
    pub side: Side,
    /// Price in cents.
    pub price: i64,
    /// The quantity that was filled with this report, in 1e-8 units.
    pub filled: u64,
    /// Which report of its order this is, from 0. An order has at most [`MAX_REPORTS`].
    pub number: u8,
    /// No report of this order follows: it is closed.
    pub is_last: bool,
}

/// The most reports of one order.
pub const MAX_REPORTS: usize = 128;

/// The bit of a t5's detail that says that more reports of the order follow.
const MORE: u8 = 1 << 7;

const _: () = assert!(MAX_REPORTS == MORE as usize);

/// The bytes of both messages. Words that a kind does not use are zero.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Wire {
    id: u64,
    delay_ns: u64,
    price: i64,
    quantity: u64,
    target: u64,
    venue: u16,
    code: u8,
    side: u8,
    reason: u8,
    number: u8,
    is_last: u8,
    reserved: [u8; 9],
}

const _: () = assert!(size_of::<Wire>() == size_of::<Message>());

impl Side {
    #[inline]
    const fn code(self) -> u8 {
        match self {
            Side::Buy => 0,
            Side::Sell => 1,
        }
    }
    #[inline]
    const fn from_code(code: u8) -> Result<Self, WireError> {
        match code {
            0 => Ok(Side::Buy),
            1 => Ok(Side::Sell),
            _ => Err(WireError::BadSide),
        }
    }
}

impl Order {
    /// The message's words.
    #[inline]
    pub fn to_message(&self) -> Message {
        transmute!(Wire {
            id: self.id.word(),
            delay_ns: self.delay_ns,
            price: self.price,
            quantity: self.quantity,
            target: self.target,
            venue: self.venue,
            code: match self.operation {
                Operation::New => 1,
                Operation::Cancel => 2,
            },
            side: self.side.code(),
            reason: 0,
            number: 0,
            is_last: 0,
            reserved: [0; 9],
        })
    }

    /// Checks a message and makes an order of it.
    ///
    /// # Errors
    /// A code that is not one of ours. Venue and id are for the orchestrator to check.
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let wire: Wire = transmute!(message);
        Ok(Self {
            id: OrderId::from_word(wire.id),
            venue: wire.venue,
            operation: match wire.code {
                1 => Operation::New,
                2 => Operation::Cancel,
                _ => return Err(WireError::BadOperation),
            },
            side: Side::from_code(wire.side)?,
            delay_ns: wire.delay_ns,
            price: wire.price,
            quantity: wire.quantity,
            target: wire.target,
        })
    }
}

/// What the orchestrator sends to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A strategy's order.
    Order(Order),
    /// Cancel on disconnect: every open order of the id's strategy up to the id's epoch. No strategy can send it: as an
    /// order it is an unknown operation.
    CancelAll(OrderId),
}

/// The operation code of [`Instruction::CancelAll`].
const CANCEL_ALL: u8 = 3;

impl Instruction {
    /// The message's words.
    pub fn to_message(&self) -> Message {
        match self {
            Instruction::Order(order) => order.to_message(),
            Instruction::CancelAll(id) => {
                transmute!(Wire { id: id.word(), code: CANCEL_ALL, ..Wire::default() })
            }
        }
    }

    /// Checks a message and makes an instruction of it.
    ///
    /// # Errors
    /// As [`Order::from_message`].
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let wire: Wire = transmute!(message);
        if wire.code == CANCEL_ALL {
            return Ok(Instruction::CancelAll(OrderId::from_word(wire.id)));
        }
        Order::from_message(message).map(Instruction::Order)
    }
}

impl Report {
    /// What the record of its t5 says beside the order: its number, and in the highest bit whether more of its order follow. Zero
    /// for the one report of an order that has no other.
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
        transmute!(Wire {
            id: self.id.word(),
            delay_ns: 0,
            price: self.price,
            quantity: self.filled,
            target: 0,
            venue: self.venue,
            code: self.status.code(),
            side: self.side.code(),
            reason: self.reason,
            number: self.number,
            is_last: u8::from(self.is_last),
            reserved: [0; 9],
        })
    }

    /// Checks a message and makes a report of it.
    ///
    /// # Errors
    /// A code that is not one of ours.
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let wire: Wire = transmute!(message);
        Ok(Self {
            id: OrderId::from_word(wire.id),
            venue: wire.venue,
            status: OrderStatus::from_code(wire.code)?,
            reason: wire.reason,
            side: Side::from_code(wire.side)?,
            price: wire.price,
            filled: wire.quantity,
            number: match wire.number {
                0..MORE => wire.number,
                _ => return Err(WireError::BadStatus),
            },
            is_last: match wire.is_last {
                0 => false,
                1 => true,
                _ => return Err(WireError::BadStatus),
            },
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn orders_survive_the_wire(
            strategy in 0u16..256, epoch in 0..=MAX_EPOCH, sequence in 0..=MAX_SEQUENCE, venue: u16, delay_ns: u64,
            price: i64, quantity: u64, target: u64, cancel: bool, sell: bool,
        ) {
            let order = Order {
                id: OrderId::new(strategy, epoch, sequence), venue, delay_ns, price, quantity, target,
                operation: if cancel { Operation::Cancel } else { Operation::New },
                side: if sell { Side::Sell } else { Side::Buy },
            };
            prop_assert_eq!(Order::from_message(order.to_message()), Ok(order));
            prop_assert_eq!(order.id.to_string().parse::<OrderId>(), Ok(order.id));
            prop_assert_eq!(Instruction::from_message(order.to_message()), Ok(Instruction::Order(order)));
        }

        #[test]
        fn no_order_cancels_all(word in 0u64..1 << 60) {
            let all = Instruction::CancelAll(OrderId::from_word(word));
            prop_assert_eq!(Instruction::from_message(all.to_message()), Ok(all));
            prop_assert_eq!(Order::from_message(all.to_message()), Err(WireError::BadOperation));
        }

        #[test]
        fn arbitrary_words_never_panic(message: [u64; MESSAGE_WORDS]) {
            let _ = Order::from_message(message);
            let _ = Report::from_message(message);
        }

        #[test]
        fn reports_survive_the_wire(
            word in 0u64..1 << 60, venue: u16, reason: u8, price: i64, filled: u64, number in 0u8..128, is_last: bool,
            status in 0usize..6,
        ) {
            let report = Report {
                id: OrderId::from_word(word), venue, status: OrderStatus::ALL[status], reason, side: Side::Sell, price, filled,
                number, is_last,
            };
            prop_assert_eq!(Report::from_message(report.to_message()), Ok(report));
            prop_assert_eq!(Report::of_detail(report.detail()), (number, is_last));
        }
    }

    #[test]
    fn nonsense_is_no_order_id() {
        for text in ["", "3", "3/", "/4", "999/1", "1.9999/0", "1/99999999999999999", "a/b"] {
            assert_eq!(text.parse::<OrderId>(), Err(WireError::BadOrderId), "{text}");
        }
    }
}
