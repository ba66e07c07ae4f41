//! A matching engine: an order book for each instrument, price-time priority, integers only.
//!
//! Commands go in, events come out; the same commands give the same events, byte for byte. Nothing here reads a clock, draws a
//! number or allocates after [the start](Command).
#![forbid(unsafe_code)]

pub mod command;
pub mod event;
pub mod instrument;

pub use command::{Command, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
pub use event::{CancelReason, Event, Events, RejectReason};
pub use instrument::{Capacity, ConfigError, Instrument};
