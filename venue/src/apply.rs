//! Applies a session's message to the market, for a live exchange, a recovering one and a replica.

use crate::market::{ExecutionSink, InputTime, Market};
use crate::session::SessionCounts;
use protocol::wire::{Instruction, Message};

/// The message counters of an exchange's sessions.
pub(crate) trait SessionCounters {
    /// Returns the message counters of a session.
    fn session_counts(&mut self, session: usize) -> &mut SessionCounts;
    /// Counts a protocol error of a session.
    fn count_fault(&mut self);
}

/// Applies a message of a gateway's session to the market. Returns the number of orders in it: 0 or
/// 1.
#[inline]
pub(crate) fn apply_message<D: SessionCounters>(
    market: &mut Market,
    session: usize,
    message: Message,
    at: InputTime,
    out: &mut (impl ExecutionSink + AsMut<D>),
) -> u64 {
    match out.as_mut().session_counts(session).parse(message) {
        Some(Instruction::Order(order)) if market.session_of(order.id.strategy()) == session => {
            market.apply_order(&order, at, out);
            return 1;
        }
        // The strategy has another credential.
        Some(Instruction::Order(_)) => out.as_mut().count_fault(),
        Some(Instruction::CancelAll(scope)) => market.cancel_scope(scope, session, out),
        None => {}
    }
    0
}
