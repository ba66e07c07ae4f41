//! What an order or a report does to positions, limits and counts, behind the hand-over.

use super::Orchestrator;
use crate::risk::Reject;
use protocol::agent::Cycle;
use protocol::limits::Control;
use protocol::wire::{Order, OrderId, Report};
use shm::clock::Clock;
use shm::ring::Consumer;

impl<R: Consumer> Orchestrator<R> {
    /// The gateway of an order: its venue's, for the credential of its strategy.
    #[inline(always)]
    pub(crate) fn gateway(&self, order: &Order) -> usize {
        let credential = self.risk.credential(usize::from(order.id.strategy()));
        usize::from(order.venue) * self.credentials + usize::from(credential)
    }

    /// Orders that the plan still has of its strategy for its venue; `None`: it has no such limit.
    #[inline(always)]
    pub(crate) fn venue_budget(&mut self, order: &Order) -> Option<&mut u64> {
        let place = usize::from(order.id.strategy()) * self.venues + usize::from(order.venue);
        self.venue_budgets.get_mut(place)
    }

    /// An order goes to its venue, or waits for that.
    #[inline]
    pub(crate) fn opens(&mut self, order: &Order) {
        let change = self.positions.send(order);
        self.risk.changed(usize::from(order.id.strategy()), &change, 0, &self.positions);
    }

    /// Books the order that went last. Not when it goes, but when its gateway, where that shares our thread, has had its turn: before
    /// anything else looks at positions, and at the end of the duty cycle.
    #[inline(always)]
    pub(crate) fn book(&mut self) {
        if let Some(order) = self.unbooked.take() {
            self.opens(&order);
        }
    }

    /// An order that waited does not go.
    pub(crate) fn withdraws(&mut self, order: &Order, is_current: bool) {
        let change = self.positions.withdraw(order, is_current);
        self.risk.changed(usize::from(order.id.strategy()), &change, 0, &self.positions);
    }

    /// A report was returned, or nobody was there to take it.
    #[inline]
    pub(crate) fn account_for<C: Clock>(&mut self, report: &Report, is_current: bool, cycle: &mut Cycle<C>) {
        let strategy = usize::from(report.id.strategy());
        let Some(change) = self.positions.settle(report, is_current) else {
            self.faults += 1;
            return;
        };
        if let Some(closed) = change.killed {
            self.confirmed(strategy, closed, cycle);
        }
        let loser = self.risk.changed(strategy, &change, report.price, &self.positions);
        if let Some(loser) = loser {
            self.kill_by_limit(loser, Control::MaxLoss, cycle);
        }
    }

    /// Counts an order that is refused.
    #[cold]
    pub(crate) fn count_refused(&mut self, reason: Reject) {
        self.rejected += 1;
        let count = &mut self.refused[usize::from(reason.code())];
        *count += 1;
        if let Some(desk) = &self.desk {
            desk.rejections(reason.code(), *count);
        }
    }

    /// An order of a strategy was refused: too many of them turn its kill switch on. Not those that a kill switch refuses.
    #[cold]
    pub(crate) fn refused_again<C: Clock>(&mut self, id: OrderId, reason: Reject, cycle: &mut Cycle<C>) {
        let strategy = usize::from(id.strategy());
        if reason != Reject::Killed && self.risk.is_refused_too_often(strategy, crate::since_start(cycle)) {
            self.kill_by_limit(strategy, Control::MaxRejections, cycle);
        }
    }
}
