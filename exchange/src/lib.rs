//! A matching engine: an order book for each instrument, price-time priority, integers only.
//!
//! Commands go in, events come out; the same commands give the same events, byte for byte. Nothing
//! here reads a clock, draws a number or allocates after [`Exchange::new`]. What each command does
//! is written at [`Command`].
//!
//! ```
//! use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, Side};
//!
//! let mut exchange: Exchange = Exchange::new(&[Instrument::default()], Capacity::orders(1_000)).unwrap();
//! let mut events = Vec::new();
//! let offer = NewOrder { id: 1, side: Side::Sell, price: 101, quantity: 5, ..NewOrder::default() };
//! exchange.apply(Command::New(offer), &mut events);
//! exchange.apply(Command::New(NewOrder { id: 2, side: Side::Buy, quantity: 3, ..offer }), &mut events);
//!
//! assert!(matches!(events[2], Event::Trade { maker: 1, taker: 2, price: 101, quantity: 3, .. }));
//! let (bid, best_offer) = exchange.best(0);
//! assert_eq!((bid, best_offer.unwrap().quantity), (None, 2));
//! exchange.check().unwrap();
//! ```
#![forbid(unsafe_code)]

mod admit;
mod arena;
mod auction;
mod batch;
mod book;
pub mod book_file;
#[cfg(test)]
mod cases;
mod check;
pub mod command;
mod digest;
pub mod event;
mod exchange;
mod expiry;
mod index;
pub mod instrument;
pub mod levels;
mod lookahead;
mod matching;
mod queue;
#[cfg(test)]
mod recorded;
#[cfg(feature = "serde")]
mod state;
mod stops;
mod store;
mod view;

pub use check::Broken;
pub use command::{Command, NewOrder, OrderType, SelfTrade, Side, TimeInForce};
pub use event::{CancelReason, Event, Events, RejectReason};
pub use exchange::Exchange;
pub use instrument::{Capacity, ConfigError, Instrument};
#[cfg(feature = "serde")]
pub use state::{State, StateError};
pub use view::{Level, Order};
