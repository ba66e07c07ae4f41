//! The exchange as a venue of a run: takes instructions from its gateways' sessions, matches them
//! and reports.
//!
//! ```text
//!  gateway 0 ─ session-out ─┐                      ┌─ session-in ─▶ gateway 0   (credential 0)
//!  gateway 1 ─ session-out ─┼─▶ matching engine ──▶┼─ session-in ─▶ gateway 1   (credential 1)
//! ```
//!
//! Sessions are served in turn, a few instructions each, so that none starves. Instructions of one
//! session are applied in order. When the run drains, trading ends: resting orders expire.
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
pub use journal_entry::JournalEntry;
pub use market::{MarketSetup, open_with};
pub use market_board::MarketBoard;
pub use recovery::OutputWatermarks;
pub use replica::ExchangeReplica;
pub use reports::Trade;
pub use request::{OPENING_BOOK_OWNER, RESTING};
pub use sequencer::ReplaySequencer;
pub use session::SessionEnd;
