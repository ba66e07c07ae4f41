//! Deaths, restarts and violations of strategies. All of it is off the path of an honest order.
//!
//! | session | what happens to its orders | what ends the state |
//! |---|---|---|
//! | alive | accepted | a fence, or a violation |
//! | quarantined | dropped and counted | its death |
//! | dying | refused ([`Reject::Gone`]): each has its stamps, nobody gets the report | nothing of it is left in the submit hand-off |
//! | dead | there are none | the next incarnation |
//!
//! The gateways are told to cancel a dead strategy's orders when its fence is seen (FIX: cancel on
//! disconnect).

use super::{Core, Effects, Notice, SessionState};
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::kill::{KillCause, Scope};
use protocol::record::Point;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{CancelScope, Instruction, Order, OrderId};

/// Rejected orders that an honest mistake explains; one more, and the strategy is quarantined. A
/// strategy's session keeps to its limit of open orders by itself, so an honest one has none at
/// all.
pub const TOLERATED_OFFENCES: u32 = 64;

impl Core {
    pub(super) fn lifecycle(&mut self, index: usize, life: Incarnation, out: &mut impl Effects) {
        let session = &mut self.sessions[index];
        if session.is_begun_by(life) {
            session.open(life.epoch);
            out.reopen(index);
            self.positions.reopen(index);
        }
        // Also one that was started and has died again since the last look.
        let session = &mut self.sessions[index];
        if session.is_ended_by(life) {
            session.close(SessionState::Dying { noticed: self.now });
            self.dying += 1;
            out.close(index);
            let scope = CancelScope::for_strategy(OrderId::new(index as u16, life.epoch, 0));
            (0..self.gateways.len()).for_each(|gateway| self.cancel_at(gateway, scope, out));
            out.recall();
            if self.risk.kills_on_death(index) {
                _ = self.kill(Scope::Strategy(index as u16), KillCause::Death, None, out);
            }
        }
    }

    /// Tells a gateway to cancel the orders of a scope, unless it is dead; its successor, if that
    /// resumes its session.
    pub(super) fn cancel_at(&mut self, gateway: usize, scope: CancelScope, out: &mut impl Effects) {
        if self.is_gone(gateway) {
            return;
        }
        let message = Instruction::CancelAll(scope).to_message();
        out.to_gateway(gateway, &message);
        self.gateways[gateway].sent.add(digest(&message));
    }

    /// Ends a retirement: nothing of the strategy is left in the submit hand-off.
    pub(super) fn retired(&mut self, index: usize, out: &mut impl Effects) {
        let session = &mut self.sessions[index];
        if let SessionState::Dying { noticed } = session.state {
            session.state = SessionState::Dead;
            self.dying -= 1;
            out.notify(Notice::Retired { strategy: session.strategy, epoch: session.epoch, noticed });
        }
    }

    /// Judges an order that is not the next one of a living strategy. Returns `true` if it is
    /// accepted all the same. Nobody is quarantined unless the memory that it came through names
    /// its sender: where several strategies write, the id may be forged.
    #[cold]
    pub(super) fn unexpected_order(
        &mut self,
        from: Option<usize>,
        order: &Order,
        out: &mut impl Effects,
    ) -> bool {
        let claimed = usize::from(order.id.strategy());
        if from.is_some_and(|from| from != claimed) || claimed >= self.sessions.len() {
            self.violation(from, ProtocolViolation::ForeignId, out);
            return false;
        }
        let session = &mut self.sessions[claimed];
        let (epoch, sequence) = (order.id.epoch(), order.id.sequence());
        let is_dead = session.is_dying() || session.is_retired();
        // In a ring that several strategies write, orders of a dead incarnation are among the
        // others' and come out in their turn, perhaps after the next incarnation's first.
        let is_of_dead = from.is_none() && (epoch < session.epoch || (epoch == session.epoch && is_dead));
        let was_left = session.is_dying() && epoch == session.epoch && sequence >= session.next();
        if is_of_dead || was_left {
            // Without a budget it was left by a flood: the log has no room for it.
            let Some(budget) = session.budget.checked_sub(1) else {
                self.counts.faults += 1;
                return false;
            };
            session.budget = budget;
            session.skip(order.id);
            out.stamp(Point::OrchRecvSubmit, order.id, 0);
            self.refuse(order.id, out);
            return false;
        }
        match session.state {
            SessionState::Quarantined | SessionState::Dead => {
                self.counts.faults += 1;
                false
            }
            // Another strategy's damage to a shared ring may have swallowed the orders in between.
            SessionState::Alive if from.is_none() && epoch == session.epoch && sequence > session.next() => {
                self.counts.faults += 1;
                true
            }
            SessionState::Alive | SessionState::Dying { .. } => {
                let has_wrong_epoch = epoch != session.epoch;
                let why = if has_wrong_epoch {
                    ProtocolViolation::WrongEpoch
                } else {
                    ProtocolViolation::OutOfSequence
                };
                self.violation(from, why, out);
                false
            }
        }
    }

    /// Counts what no honest strategy does, and quarantines the strategy if it is known.
    #[cold]
    pub(super) fn violation(&mut self, from: Option<usize>, why: ProtocolViolation, out: &mut impl Effects) {
        self.counts.faults += 1;
        let Some(session) = from.and_then(|index| self.sessions.get_mut(index)) else { return };
        if session.state != SessionState::Alive {
            return;
        }
        session.close(SessionState::Quarantined);
        session.why = Some(why);
        out.notify(Notice::Quarantined { strategy: session.strategy, epoch: session.epoch, why });
    }

    /// Counts a rejected order that an honest strategy never sends, and quarantines its sender for
    /// too many. Without a known sender it is only counted.
    #[cold]
    pub(super) fn offence(&mut self, from: Option<usize>, reason: Reject, out: &mut impl Effects) {
        let why = match reason {
            Reject::UnknownVenue => ProtocolViolation::UnknownVenue,
            Reject::TooManyOpen | Reject::NotPlanned => ProtocolViolation::Flood,
            _ => return,
        };
        let Some(strategy) = from else {
            self.counts.faults += 1;
            return;
        };
        self.sessions[strategy].offences += 1;
        if self.sessions[strategy].offences > TOLERATED_OFFENCES {
            self.violation(from, why, out);
        }
    }
}
