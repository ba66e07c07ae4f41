//! Deaths, restarts and violations of strategies. All of it is off the path of an honest order.
//!
//! | session | what happens to its orders | what ends the state |
//! |---|---|---|
//! | alive | accepted | a fence, or a violation |
//! | quarantined | dropped and counted | its death |
//! | dying | refused ([`Reject::Gone`]): each has its stamps, nobody gets the report | nothing of it is left in the submit hand-off |
//! | dead | there are none | the next incarnation |
//!
//! The gateways are told to cancel a dead strategy's orders when its fence is seen (FIX: cancel on disconnect).

use super::{Core, Effects, Moment, Notice, SessionState};
use crate::risk::Reject;
use protocol::checksum::{Checksum, digest};
use protocol::kill::{Cause, Scope};
use protocol::record::Point;
use protocol::supervision::{Incarnation, Misconduct};
use protocol::wire::{CancelScope, Instruction, Order, OrderId};

/// Rejected orders that an honest mistake explains; one more, and the strategy is quarantined. A strategy's session keeps to its
/// limit of open orders by itself, so an honest one has none at all.
pub const TOLERATED_OFFENCES: u32 = 64;

/// What to do with an order that is not its session's next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Accept it all the same.
    Take,
    /// Ignore it.
    Drop,
}

impl Core {
    /// Applies a change of a strategy's fence.
    pub(super) fn lifecycle(&mut self, index: usize, life: Incarnation, at: Moment, out: &mut impl Effects) {
        let session = &mut self.sessions[index];
        if session.is_retired() && life.epoch > session.epoch {
            session.open(life.epoch);
            out.reopen(index);
            self.checksums.to_strategy[index] = Checksum::default();
            self.positions.reopen(index);
        }
        // Also one that was started and has died again since the last look.
        let session = &mut self.sessions[index];
        if session.is_served() && life.fenced && life.epoch == session.epoch {
            session.close(SessionState::Dying { noticed: at.ticks });
            self.dying += 1;
            out.close(index);
            let scope = CancelScope::of(OrderId::new(index as u16, life.epoch, 0));
            (0..self.gateways()).for_each(|gateway| self.cancel_at(gateway, scope, out));
            out.recall();
            if self.risk.kills_on_death(index) && !self.risk.is_killed(index) {
                self.kill(Scope::Strategy(index as u16), Cause::Death, None, at, out);
            }
        }
    }

    /// Tells a gateway to cancel the orders of a scope, unless it is dead.
    pub(super) fn cancel_at(&mut self, gateway: usize, scope: CancelScope, out: &mut impl Effects) {
        if self.is_down(gateway) {
            return;
        }
        let message = Instruction::CancelAll(scope).to_message();
        out.to_gateway(gateway, &message);
        self.checksums.to_gateway[gateway].add(digest(&message));
    }

    /// Nothing of a dying strategy is left in the submit hand-off.
    pub(super) fn retired(&mut self, index: usize, out: &mut impl Effects) {
        let session = &mut self.sessions[index];
        if let SessionState::Dying { noticed } = session.state {
            session.state = SessionState::Dead;
            self.dying -= 1;
            out.notify(Notice::Retired { strategy: session.strategy, epoch: session.epoch, noticed });
        }
    }

    /// Judges an order that is not the next one of a living strategy. What may be done depends on whether the memory that it came
    /// through names its sender: where several strategies write, the id may be forged, so nobody is quarantined for it.
    #[cold]
    pub(super) fn unexpected_order(
        &mut self,
        from: Option<usize>,
        order: &Order,
        out: &mut impl Effects,
    ) -> Decision {
        let claimed = usize::from(order.id.strategy());
        if from.is_some_and(|from| from != claimed) || claimed >= self.sessions.len() {
            self.violation(from, Misconduct::ForeignId, out);
            return Decision::Drop;
        }
        let session = &mut self.sessions[claimed];
        let (epoch, sequence) = (order.id.epoch(), order.id.sequence());
        // In a ring that several strategies write, orders of a dead incarnation are between the others' and come out in their
        // turn, perhaps when the next incarnation trades already.
        let is_of_dead = epoch < session.epoch
            || (epoch == session.epoch
                && matches!(session.state, SessionState::Dying { .. } | SessionState::Dead));
        match session.state {
            SessionState::Dying { .. } if epoch == session.epoch && sequence >= session.next() => {
                self.refuse(order.id, out);
                Decision::Drop
            }
            _ if from.is_none() && is_of_dead => {
                self.refuse(order.id, out);
                Decision::Drop
            }
            SessionState::Quarantined | SessionState::Dead => {
                self.counts.faults += 1;
                Decision::Drop
            }
            // Another strategy's damage to a shared ring may have swallowed the orders in between.
            SessionState::Alive if from.is_none() && epoch == session.epoch && sequence > session.next() => {
                self.counts.faults += 1;
                Decision::Take
            }
            SessionState::Alive | SessionState::Dying { .. } => {
                let has_wrong_epoch = epoch != session.epoch;
                let why = if has_wrong_epoch { Misconduct::WrongEpoch } else { Misconduct::OutOfSequence };
                self.violation(from, why, out);
                Decision::Drop
            }
        }
    }

    /// Refuses an order of a dead incarnation: it has its stamps, and nobody gets a report.
    fn refuse(&mut self, id: OrderId, out: &mut impl Effects) {
        let strategy = usize::from(id.strategy());
        if self.sessions[strategy].budget == 0 {
            // Left by a flood: the log has no room for it.
            self.counts.faults += 1;
            return;
        }
        self.sessions[strategy].budget -= 1;
        self.sessions[strategy].skip(id);
        self.notify_dead_counts(strategy, out);
        out.stamp(Point::OrchRecvSubmit, id, 0);
        out.log_value(Point::Rejected, id, Reject::Gone as u64);
        self.count_refused(Reject::Gone, out);
    }

    /// Records what no honest strategy does, and quarantines the strategy if it is known.
    #[cold]
    pub(super) fn violation(&mut self, from: Option<usize>, why: Misconduct, out: &mut impl Effects) {
        self.counts.faults += 1;
        let Some(session) = from.and_then(|index| self.sessions.get_mut(index)) else { return };
        if session.state != SessionState::Alive {
            return;
        }
        session.close(SessionState::Quarantined);
        session.why = Some(why);
        out.notify(Notice::Quarantined { strategy: session.strategy, epoch: session.epoch, why });
    }

    /// Counts a rejected order that an honest strategy never sends. Where several strategies write the same memory, the strategy
    /// that the order names may be innocent: there it is only counted.
    #[cold]
    pub(super) fn offence(&mut self, from: Option<usize>, reason: Reject, out: &mut impl Effects) {
        let why = match reason {
            Reject::UnknownVenue => Misconduct::UnknownVenue,
            Reject::TooManyOpen | Reject::NotPlanned => Misconduct::Flood,
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
