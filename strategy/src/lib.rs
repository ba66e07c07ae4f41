//! Strategies: the trait that a user implements, the session through which it trades, the schedule,
//! and built-in strategies.
//!
//! A strategy sends orders and receives reports. It never sees a ring, a clock or a process: the
//! [`StrategyAgent`] around it does, and is the same whether the strategy is a thread of the engine
//! or a process of its own.
//!
//! `docs/src/adding/strategy.md` is a guide, `contrib/examples/own-strategy/src/quoter.rs` a
//! strategy with its test.
#![forbid(unsafe_code)]

mod agent;
pub mod attach;
mod built_in;
mod context;
mod crosser;
mod maker;
mod player;
pub mod schedule;
mod session;
mod taker;
pub mod testing;
#[cfg(test)]
mod tests;
mod working_set;

pub use agent::{BATCH, StrategyAgent};
pub use built_in::BuiltIn;
pub use context::Context;
pub use crosser::Crosser;
pub use maker::Maker;
pub use player::Player;
pub use session::Session;
pub use taker::Taker;
pub use testing::Event;
pub use working_set::WorkingSet;

pub use protocol::market::{MarketTick, Quote, TopOfBook};
pub use protocol::positions::InheritedPosition;
pub use protocol::wire::OrderRequest;
use protocol::wire::{OrderId, Report};
use thiserror::Error;

/// A trading strategy: sends orders and reacts to reports and market data. All methods run on the
/// strategy's thread and must not block: while one runs, neither orders nor reports move.
pub trait Strategy {
    /// Sends the strategy's orders; called in each duty cycle. Returns the number sent (0 lets the
    /// thread idle).
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize;

    /// `true` if the strategy receives market data; with `false` market data costs nothing.
    const ON_MARKET_DATA: bool = false;

    /// Handles a newer top of book of an instrument; called in each duty cycle before
    /// [`Strategy::on_cycle`]. It is called for each instrument whose top of book is newer than the
    /// last one delivered; never if [`Strategy::ON_MARKET_DATA`] is `false` or the run has no
    /// market data. An order sent in reaction carries [`MarketTick::version`] as its trigger.
    fn on_market_data(&mut self, tick: &MarketTick, orders: &mut impl Orders) {
        let _ = (tick, orders);
    }

    /// Delivers market data and then calls [`Strategy::on_cycle`]; called by the agent in each duty
    /// cycle. Only a strategy that wraps others overrides it.
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

    /// Returns `true` if the strategy wants market data: the value of [`Strategy::ON_MARKET_DATA`].
    fn wants_market_data(&self) -> bool {
        Self::ON_MARKET_DATA
    }

    /// Handles a report from the engine; called in the order in which reports were returned.
    fn on_report(&mut self, report: &Report, orders: &mut impl Orders) {
        let _ = (report, orders);
    }

    /// Returns the tick at which the strategy next wants to send by itself; `u64::MAX` if it waits
    /// for reports only. A parked thread sleeps until then.
    fn next_due(&self) -> u64 {
        u64::MAX
    }

    /// Returns `true` if the strategy will never send again. It still receives the reports of its
    /// open orders.
    fn finished(&self) -> bool;
}

/// The operations, such as sending an order, that a strategy can perform in a duty cycle.
pub trait Orders {
    /// Sends an order and returns its id; reports follow. Exactly one of them is the last, unless
    /// the run is cut short. If the ring is full the order waits, keeps its first stamp, and
    /// nothing overtakes it.
    ///
    /// # Errors
    /// [`Refused`]: nothing was sent and no id was used.
    #[inline]
    fn send(&mut self, order: OrderRequest) -> Result<OrderId, Refused> {
        self.send_due(order, None)
    }

    /// Sends an order as [`Orders::send`] does, with the intended send time in ticks against which
    /// its lateness is measured; `None`: no intended time.
    ///
    /// # Errors
    /// As [`Orders::send`].
    fn send_due(&mut self, order: OrderRequest, due: Option<u64>) -> Result<OrderId, Refused>;

    /// Returns the next top of book that was not delivered yet; `None` if there is none in this
    /// duty cycle. Called by the agent: see [`Strategy::on_market_data`].
    fn next_tick(&mut self) -> Option<MarketTick> {
        None
    }

    /// Returns the number of the strategy's orders whose last report has not come yet.
    fn open(&self) -> u64;

    /// Returns the tick at which this duty cycle began.
    fn now(&self) -> u64;

    /// Returns the converter between ticks and nanoseconds since the start of the run.
    fn time(&self) -> system::clock::Timebase;
}

/// The reason why a strategy's order could not be sent now. Retry in a later cycle after `Busy` and
/// `TooManyOpen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// An earlier order is still queued for the ring.
    #[error("an earlier order still waits for room")]
    Busy,
    /// The plan's limit of open orders is reached.
    #[error("too many open orders")]
    TooManyOpen,
    /// The run is ending: no more orders are sent.
    #[error("the run is ending")]
    Ending,
    /// The strategy has sent all orders of its plan.
    #[error("all orders of the plan are sent")]
    Spent,
}
