//! The exchange as a venue of a run: takes instructions from its gateway's session, matches them
//! and reports.
//!
//! ```text
//!  gateway ─ session-out ─▶ matching engine ─ session-in ─▶ gateway
//! ```
//!
//! Instructions are applied in order. When the run drains, trading ends: resting orders expire.
#![forbid(unsafe_code)]

mod agent;
mod apply;
mod audit;
mod journal_entry;
mod market;
mod market_board;
mod open_orders;
mod recovery;
mod replica;
mod reports;
mod request;
mod sequencer;
mod session;

pub use agent::{ExchangeAgent, TradeTape};
pub use audit::Audit;
pub use market::{MarketSetup, open_with};
pub use market_board::MarketBoard;
pub use recovery::OutputWatermarks;
pub use replica::ExchangeReplica;
pub use reports::Trade;
pub use request::{OPENING_BOOK_OWNER, RESTING};
pub use sequencer::ReplaySequencer;
pub use session::SessionEnd;
