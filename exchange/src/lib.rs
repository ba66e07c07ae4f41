#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod admit;
mod arena;
mod auction;
mod batch;
mod book;
pub mod book_file;
mod check;
pub mod command;
mod digest;
pub mod event;
mod exchange;
mod expiry;
mod index;
pub mod instrument;
mod levels;
mod lookahead;
mod matching;
mod queue;
#[cfg(feature = "serde")]
mod state;
mod stops;
mod store;
#[cfg(test)]
mod tests;
mod view;

pub use check::Inconsistency;
pub use command::{Command, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
pub use event::{CancelReason, Event, Events, RejectReason};
pub use exchange::Exchange;
pub use instrument::{Capacity, ConfigError, Instrument};
#[cfg(feature = "serde")]
pub use state::{State, StateError};
pub use view::{Level, Order};
