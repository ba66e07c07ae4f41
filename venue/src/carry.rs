//! Carrying out what came through a session: the same for an exchange at work, one that comes back,
//! and one that follows.

use crate::market::{At, ExecutionSink, Market};
use crate::session::Counts;
use protocol::wire::{Instruction, Message};

/// Where the messages of sessions are counted.
pub(crate) trait Counted {
    /// What has gone through a session.
    fn counts(&mut self, session: usize) -> &mut Counts;
    /// An error that is none of a message.
    fn fault(&mut self);
}

/// Carries out a message of a session; how many orders that was.
#[inline]
pub(crate) fn carry_out<D: Counted>(
    market: &mut Market,
    session: usize,
    message: Message,
    at: At,
    out: &mut (impl ExecutionSink + AsMut<D>),
) -> u64 {
    match out.as_mut().counts(session).read(message) {
        Some(Instruction::Order(order)) if market.session_of(order.id.strategy()) == session => {
            market.order(&order, at, out);
            return 1;
        }
        // Of a strategy that has another credential.
        Some(Instruction::Order(_)) => out.as_mut().fault(),
        Some(Instruction::CancelAll(scope)) => market.withdraw(scope, session, out),
        None => {}
    }
    0
}
