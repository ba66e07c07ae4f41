//! Strategies: the trait that a user implements, the session through which it trades, the schedule
//! and the player that plays it.
//!
//! A strategy sends orders and receives reports. It never sees a ring, a clock or a process: the
//! [`StrategyAgent`] around it does, and is the same whether the strategy is a thread of the engine
//! or a process of its own.
//!
//! ```
//! use strategy::{Event, NewOrder, Orders, Strategy};
//! use protocol::wire::{Report, Side};
//!
//! /// Sends one order at a time to venue 0 and waits for its report, ten times.
//! struct PingPong { left: u32, waiting: bool }
//!
//! impl Strategy for PingPong {
//!     fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
//!         if self.waiting || self.left == 0 {
//!             return 0;
//!         }
//!         let order = NewOrder { price: 41_275, quantity: 1_000, ..NewOrder::to_venue(0) };
//!         // A refusal (ring full, too many open) is not an error: try again in a later cycle.
//!         self.waiting = orders.send(order).is_ok();
//!         usize::from(self.waiting)
//!     }
//!
//!     fn on_report(&mut self, report: &Report, _orders: &mut impl Orders) {
//!         assert_eq!(report.side, Side::Buy);
//!         self.left -= 1;
//!         self.waiting = false;
//!     }
//!
//!     fn finished(&self) -> bool {
//!         self.left == 0
//!     }
//! }
//!
//! // A strategy is tested without an engine: an echo answers each order at once.
//! let log = strategy::testing::play_against_echo(PingPong { left: 10, waiting: false }, 1_000);
//! assert_eq!(log.iter().filter(|event| matches!(event, Event::Sent(_))).count(), 10);
//! assert_eq!(log.iter().filter(|event| matches!(event, Event::Reported(_))).count(), 10);
//! ```
#![forbid(unsafe_code)]

mod agent;
pub mod attach;
mod built_in;
mod context;
pub mod maker;
mod player;
pub mod schedule;
mod session;
pub mod taker;
pub mod testing;
#[cfg(test)]
mod tests;

pub use agent::{BATCH, LONGEST_DEAF, StrategyAgent};
pub use built_in::BuiltIn;
pub use context::Context;
pub use maker::Maker;
pub use player::Player;
pub use session::Session;
pub use taker::Taker;
pub use testing::Event;

pub use protocol::market::{MarketTick, Quote, TopOfBook};
use protocol::wire::{Operation, Order, OrderId, OrderTerms, Report, Side};
use thiserror::Error;

/// What a user writes. All methods run on the strategy's thread and must not block: while one runs,
/// neither orders nor reports move.
pub trait Strategy {
    /// Called in each duty cycle: sends what there is to send and returns how much that was (0 lets
    /// the thread idle).
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize;

    /// Whether [`Strategy::on_market_data`] is called. Who says `false` pays nothing for market
    /// data.
    const ON_MARKET_DATA: bool = false;

    /// Called in each duty cycle for each instrument whose touch is newer than the last one that it
    /// heard of it, before [`Strategy::on_cycle`]; never where [`Strategy::ON_MARKET_DATA`] is
    /// `false` or the run has no market data. An order that it sends because of it carries
    /// [`Tick::version`] as its trigger.
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        let _ = (tick, orders);
    }

    /// What the agent calls in each duty cycle: market data first, then [`Strategy::on_cycle`]. Not
    /// to be written anew but by a strategy that is one of several.
    #[inline(always)]
    fn on_turn(&mut self, orders: &mut impl Orders) -> usize {
        let mut work = 0;
        if Self::ON_MARKET_DATA {
            while let Some(tick) = orders.next_tick() {
                self.on_market_data(&tick, orders);
                work += 1;
            }
        }
        work + self.on_cycle(orders)
    }

    /// As [`Strategy::ON_MARKET_DATA`], of this one.
    fn wants_market_data(&self) -> bool {
        Self::ON_MARKET_DATA
    }

    /// Called for each report, in the order in which the engine returned them.
    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        let _ = (report, orders);
    }

    /// When the strategy next wants to send of its own accord, in ticks of the run's clock;
    /// `u64::MAX` if it waits for reports only. A parked thread sleeps until then.
    fn next_due(&self) -> u64 {
        u64::MAX
    }

    /// Whether it will never send again. It still receives the reports of its open orders.
    fn finished(&self) -> bool;
}

/// What a strategy can do in a cycle.
pub trait Orders {
    /// Sends an order and returns its id; from then on its reports will follow, exactly one of
    /// which is the last, unless the run is cut short. If the ring is full the order waits, keeps
    /// its first stamp, and nothing overtakes it.
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent and no id was used.
    fn send(&mut self, order: NewOrder) -> Result<OrderId, Refused>;

    /// The next touch that the strategy has not heard yet; `None`: it has heard all that this duty
    /// cycle has for it. The agent asks: see [`Strategy::on_market_data`].
    fn next_tick(&mut self) -> Option<MarketTick> {
        None
    }

    /// Orders that were sent and whose last report has not come yet.
    fn open(&self) -> u64;

    /// The time when this cycle began, in ticks of the run's clock.
    fn now(&self) -> u64;

    /// How ticks and nanoseconds since the start of the run belong together.
    fn time(&self) -> system::clock::Timebase;
}

/// Why an order could not be sent now. Trying again in a later cycle is right for `Busy` and
/// `TooManyOpen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// An earlier order still waits for room in the ring.
    #[error("an earlier order still waits for room")]
    Busy,
    /// As many orders are open as the plan allows.
    #[error("too many open orders")]
    TooManyOpen,
    /// The run is ending: no order is sent any more.
    #[error("the run is ending")]
    Ending,
    /// The strategy has sent as many orders as the plan has for it: no order is sent any more.
    #[error("all orders of the plan are sent")]
    Spent,
}

/// An order as the strategy wants it. Who sends it and its sequence are added by the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// The venue's index.
    pub venue: u16,
    /// What is traded, by its index.
    pub instrument: u16,
    /// New order, cancel, replace or mass cancel.
    pub operation: Operation,
    /// Side.
    pub side: Side,
    /// Limit price in cents.
    pub price: i64,
    /// Quantity in 1e-8 units.
    pub quantity: u64,
    /// For a cancel or a replace: the sequence of the order that it is about.
    pub target: u64,
    /// What a new order says beside that.
    pub terms: OrderTerms,
    /// The version of the market data that made the strategy send it; 0 if none did.
    pub trigger: u64,
    /// How long the venue takes, in nanoseconds.
    pub delay_ns: u64,
    /// When it was due, in ticks: what a late sender is measured against. `None`: it was not due at
    /// a certain time.
    pub due: Option<u64>,
}

impl NewOrder {
    /// A buy of nothing at no price, without delay: a start for struct update syntax.
    pub const fn to_venue(venue: u16) -> Self {
        Self {
            venue,
            instrument: 0,
            operation: Operation::New,
            side: Side::Buy,
            price: 0,
            quantity: 0,
            target: 0,
            terms: Order::new(OrderId::new(0, 0, 0), 0).terms,
            trigger: 0,
            delay_ns: 0,
            due: None,
        }
    }
}
