//! The role of a venue: an exchange that takes instructions from its gateways' sessions, matches,
//! and answers.
//!
//! ```text
//!  gateway (credential 0) ─ session-out ─┐                      ┌─ session-in ─▶ gateway (credential 0)
//!  gateway (credential 1) ─ session-out ─┼─▶ matching engine ──▶┼─ session-in ─▶ gateway (credential 1)
//! ```
//!
//! Sessions are served in turn, a few instructions each, so that none starves. Instructions of one
//! session are carried out in their order. When the run drains, trading is over: what still rests
//! expires.
#![forbid(unsafe_code)]

mod agent;
mod answers;
mod audit;
mod carry;
mod commands;
mod market;
mod market_board;
mod open;
mod recovery;
mod request;
mod script;
mod session;
mod shadow;
#[cfg(test)]
mod snapshots;

pub use agent::{Close, ExchangeAgent};
pub use answers::{Cause, TOO_MANY_REPORTS, Trade, cancellation, refusal};
pub use audit::Audit;
pub use market::{At, ExecutionSink, Market, MarketSetup, open_with};
pub use market_board::{MarketBoard, Written};
pub use recovery::OutputWatermarks;
pub use request::{OPENING_BOOK_OWNER, RESTING};
pub use script::ReplaySequencer;
pub use session::SessionEnd;
pub use shadow::ExchangeReplica;
