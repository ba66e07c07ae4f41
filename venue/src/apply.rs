//! Applies a gateway's message to the market, for a live exchange, a recovering one and a replica.

use crate::market::{ExecutionSink, InputTime, Market};
use crate::session::SessionCounts;
use protocol::wire::{Instruction, Message};

/// The message counters of an exchange's sessions.
pub(crate) trait SessionCounters {
    /// Returns the counters of a session.
    fn session_counts(&mut self, session: usize) -> &mut SessionCounts;
}

/// Applies a session's message and counts it. Returns the number of orders in it: 0 or 1.
#[inline]
pub(crate) fn apply_message(
    market: &mut Market,
    session: usize,
    message: Message,
    at: InputTime,
    out: &mut (impl ExecutionSink + SessionCounters),
) -> u64 {
    match out.session_counts(session).parse(message) {
        Some(Instruction::Order(order)) if market.session_of(order.id) == session => {
            market.apply_order(&order, at, out);
            return 1;
        }
        // The strategy has another credential.
        Some(Instruction::Order(_)) => out.session_counts(session).faults += 1,
        Some(Instruction::CancelAll(scope)) => market.cancel_scope(scope, session, out),
        None => {}
    }
    0
}
