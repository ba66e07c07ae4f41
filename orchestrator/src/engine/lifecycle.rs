//! Deaths, restarts and violations of strategies, off the path of a valid order.
//!
//! | session | its orders | ends with |
//! |---|---|---|
//! | alive | accepted | a fence, or a violation |
//! | quarantined | dropped and counted | its death |
//! | dying | stamped and refused ([`Reject::Gone`]), without report | its submit ring drained |
//! | dead | none | the next incarnation |
//!
//! At its fence, the gateways get mass cancels for its orders (cancel on disconnect).

use super::{Core, Effects, LifecycleNotice, SessionState};
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::commands::OpenOrders;
use protocol::index::StrategyIndex;
use protocol::kill::{KillCause, Scope};
use protocol::record::Point;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{CancelScope, Instruction, Order, OrderId};

/// Number of avoidable rejections (unknown venue, too many open orders, an unplanned order) per
/// incarnation, above which the engine quarantines the strategy. The engine then accepts nothing
/// more from that strategy. A session enforces its limits itself, so a correct strategy has none.
pub const TOLERATED_OFFENSES: u32 = 64;

impl Core {
    pub(super) fn apply_fence(&mut self, strategy: StrategyIndex, life: Incarnation, out: &mut dyn Effects) {
        let session = &mut self.sessions[strategy];
        if session.is_begun_by(life) {
            let was_ended_by_operator = session.is_ending;
            session.begin_incarnation(life.epoch);
            if was_ended_by_operator {
                self.accept_successor(strategy, out);
            }
            out.renew(strategy);
            self.positions.renew(strategy);
        }
        // Also a restart and death since the last poll.
        let session = &mut self.sessions[strategy];
        if session.is_ended_by(life) {
            session.end_incarnation(SessionState::Dying { noticed: self.now });
            self.dying += 1;
            out.close(strategy);
            let cancel = CancelScope::for_strategy(OrderId::new(strategy.0, life.epoch, 0));
            self.send_mass_cancels(Scope::Strategy(strategy), cancel, out);
            out.recall();
            if self.risk.should_kill_on_death(strategy) {
                _ = self.kill(Scope::Strategy(strategy), KillCause::Death, None, OpenOrders::Cancel, out);
            }
        }
    }

    /// Sends a mass cancel to the gateways of a scope, but not to those that are dead without a
    /// successor for their session.
    pub(super) fn send_mass_cancels(&mut self, scope: Scope, cancel: CancelScope, out: &mut dyn Effects) {
        let message = Instruction::CancelAll(cancel).to_message();
        for gateway in self.gateways.indices() {
            if self.can_have_orders(gateway, scope) && !self.is_abandoned(gateway) {
                out.to_gateway(gateway, &message);
                self.gateways[gateway].sent.add(digest(&message));
            }
        }
    }

    pub(super) fn finish_retirement(&mut self, strategy: StrategyIndex, out: &mut dyn Effects) {
        let session = &mut self.sessions[strategy];
        if let SessionState::Dying { noticed } = session.state {
            session.state = SessionState::Dead;
            self.dying -= 1;
            out.publish_positions(strategy, self.positions.accounts_of(strategy));
            out.notify_launcher(LifecycleNotice::Retired {
                strategy: session.strategy,
                epoch: session.epoch,
                noticed,
            });
        }
    }

    /// Handles an order that is not the expected next one of a running strategy, such as a
    /// duplicate. Returns `true` if it is accepted. Its sender is quarantined only if the memory
    /// identifies it: in a shared ring the id may be forged.
    #[cold]
    pub(super) fn unexpected_order(
        &mut self,
        from: Option<StrategyIndex>,
        order: &Order,
        out: &mut dyn Effects,
    ) -> bool {
        let claimed = order.id.strategy();
        if from.is_some_and(|from| from != claimed) || !self.sessions.has(claimed) {
            self.quarantine(from, ProtocolViolation::ForeignId, out);
            return false;
        }
        let session = &mut self.sessions[claimed];
        let (epoch, sequence) = (order.id.epoch(), order.id.sequence());
        let is_dead = session.is_dying() || session.is_retired();
        // In a shared ring, orders of a dead incarnation are interleaved with others, and may
        // follow the next incarnation's first.
        let is_of_dead = from.is_none() && (epoch < session.epoch || (epoch == session.epoch && is_dead));
        let was_left = session.is_dying() && epoch == session.epoch && sequence >= session.next_sequence();
        if is_of_dead || was_left {
            // Without a budget it is from a flood: the log has no capacity for it.
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
            // Another strategy may have damaged the orders in between.
            SessionState::Alive
                if from.is_none() && epoch == session.epoch && sequence > session.next_sequence() =>
            {
                self.counts.faults += 1;
                true
            }
            SessionState::Alive | SessionState::Dying { .. } => {
                let why = match epoch == session.epoch {
                    true => ProtocolViolation::OutOfSequence,
                    false => ProtocolViolation::WrongEpoch,
                };
                self.quarantine(from, why, out);
                false
            }
        }
    }

    #[cold]
    pub(super) fn quarantine(
        &mut self,
        from: Option<StrategyIndex>,
        why: ProtocolViolation,
        out: &mut dyn Effects,
    ) {
        self.counts.faults += 1;
        let Some(session) = from.and_then(|index| self.sessions.get_mut(index)) else { return };
        if session.state != SessionState::Alive {
            return;
        }
        session.end_incarnation(SessionState::Quarantined);
        session.violation = Some(why);
        out.notify_launcher(LifecycleNotice::Quarantined {
            strategy: session.strategy,
            epoch: session.epoch,
            why,
        });
    }

    /// Counts a rejection that a correct strategy would have avoided, and quarantines the strategy
    /// after too many.
    #[cold]
    pub(super) fn record_offense(
        &mut self,
        from: Option<StrategyIndex>,
        reason: Reject,
        out: &mut dyn Effects,
    ) {
        let why = match reason {
            Reject::UnknownVenue => ProtocolViolation::UnknownVenue,
            Reject::TooManyOpen | Reject::NotPlanned => ProtocolViolation::Flood,
            _ => return,
        };
        let Some(strategy) = from else {
            self.counts.faults += 1;
            return;
        };
        self.sessions[strategy].offenses += 1;
        if self.sessions[strategy].offenses > TOLERATED_OFFENSES {
            self.quarantine(from, why, out);
        }
    }
}
