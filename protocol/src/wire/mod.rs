//! Messages of the rings: seven words, which with their sequence fill a cache line. An [`Order`] or
//! a [`Report`] is decoded from words that were first copied out of the ring, and is validated.

/// Makes an enum with codes, and the error of a code that is unknown.
macro_rules! codes {
    ($error:ident: $(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $code:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant = $code,)+ }

        impl $name {
            /// All values of the enum, in ascending order of the numeric codes that represent them
            /// in messages.
            pub const ALL: [Self; [$($code),+].len()] = [$(Self::$variant),+];

            #[inline]
            pub(super) const fn code(self) -> u8 {
                self as u8
            }

            #[inline]
            pub(super) const fn from_code(code: u8) -> Result<Self, WireError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(WireError::$error),
                }
            }
        }
    };
}

mod id;
mod instruction;
mod order;
mod report;
mod terms;

pub(crate) use id::ID_WIDTH;
pub use id::{MAX_EPOCH, MAX_SEQUENCE, OrderId};
pub use instruction::{CancelScope, Instruction};
pub use order::{Operation, Order, OrderRequest, Side};
pub use report::{ENGINE_REPORT, MAX_REPORTS, OrderStatus, PLACEHOLDER, Report};
pub use shm::ring::{MESSAGE_WORDS, Message};
pub use terms::{OrderCondition, OrderTerms, OrderType, SelfTrade, TimeInForce};

use thiserror::Error;

/// Maximum number of strategies of a run, limited by the order id's field.
pub const MAX_STRATEGIES: usize = 256;
/// Maximum number of venues of a run, and the maximum of its gateways and exchanges counted
/// together.
pub const MAX_VENUES: usize = 64;

/// The error that a message on a ring is invalid, as no correct peer sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The code of the operation is unknown.
    #[error("unknown operation code")]
    BadOperation,
    /// The code of the side is unknown.
    #[error("unknown side code")]
    BadSide,
    /// The code of an order's type, time in force, self-trade prevention or condition is unknown.
    #[error("unknown code in the terms of an order")]
    BadTerms,
    /// The status code of a report is unknown.
    #[error("unknown report status")]
    BadStatus,
    /// The text is not an order id.
    #[error("not an order id: expected STRATEGY/SEQUENCE, for example 3/1042")]
    BadOrderId,
}

#[cfg(all(test, not(loom)))]
mod tests;
