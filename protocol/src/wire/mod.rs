//! Messages of the rings: seven words, which share a cache line with their sequence.
//!
//! Shared memory carries words only. An [`Order`] or a [`Report`] is made from words that were
//! first copied out of the ring and is checked before it is believed: no Rust enum is ever made
//! from shared bytes unchecked.

mod id;
mod instruction;
mod order;
mod report;
mod terms;

pub(crate) use id::ID_WIDTH;
pub use id::{MAX_EPOCH, MAX_SEQUENCE, OrderId};
pub use instruction::{CancelScope, Instruction};
pub use order::{Operation, Order, Side};
pub use report::{ENGINE_REPORT, MAX_REPORTS, NOTHING, OrderStatus, Report};
pub use shm::ring::{MESSAGE_WORDS, Message};
pub use terms::{Condition, OrderType, SelfTrade, Terms, TimeInForce};

use thiserror::Error;

/// The most strategies that a run can hold: what fits the field, and what a scan can still serve.
pub const MAX_STRATEGIES: usize = 256;
/// The most venues that a run can hold.
pub const MAX_VENUES: usize = 64;
/// The most gateways and exchanges that a run can hold: a gateway for each venue and credential.
pub const MAX_GATEWAYS: usize = 64;

/// A message that no honest peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The operation's code is not one of ours.
    #[error("unknown operation code")]
    BadOperation,
    /// The side's code is not one of ours.
    #[error("unknown side code")]
    BadSide,
    /// The code of an order's type, its time in force, its self-trade prevention or its condition
    /// is not one of ours.
    #[error("unknown code in the terms of an order")]
    BadTerms,
    /// The report's status code is not one of ours.
    #[error("unknown report status")]
    BadStatus,
    /// A text that is no order id.
    #[error("not an order id: expected STRATEGY/SEQUENCE, for example 3/1042")]
    BadOrderId,
}

#[cfg(all(test, not(loom)))]
mod tests;
