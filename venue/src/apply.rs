//! Applies a gateway's message to the market, for a live exchange, a recovering one and a replica.

use crate::market::{ExecutionSink, InputTime, Market};
use crate::session::SessionCounts;
use protocol::wire::{Instruction, Message};

/// Applies a message of the session and counts it. Returns the number of orders in it: 0 or 1.
#[inline]
pub(crate) fn apply_message(
    market: &mut Market,
    message: Message,
    at: InputTime,
    out: &mut (impl ExecutionSink + AsMut<SessionCounts>),
) -> u64 {
    match out.as_mut().parse(message) {
        Some(Instruction::Order(order)) => {
            market.apply_order(&order, at, out);
            return 1;
        }
        Some(Instruction::CancelAll(scope)) => market.cancel_scope(scope, out),
        None => {}
    }
    0
}
