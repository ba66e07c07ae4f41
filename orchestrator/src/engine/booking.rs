//! Books orders and reports in positions, limits and counts.

use super::{Core, Effects, LifecycleNotice, OperatorNotice, StrategySession};
use crate::positions::Change;
use crate::risk::Reject;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::limits::RiskControl;
use protocol::record::Point;
use protocol::wire::{Order, OrderId};

impl Core {
    #[cold]
    pub(super) fn count_orphan(&mut self, strategy: StrategyIndex, out: &mut dyn Effects) {
        self.sessions[strategy].orphaned += 1;
        self.notify_dead_counts(strategy, out);
    }

    #[inline(always)]
    pub(super) fn settle(
        &mut self,
        strategy: StrategyIndex,
        change: &Change,
        price: i64,
        out: &mut dyn Effects,
    ) {
        if change.killed_at.is_some() {
            self.confirm_killed(strategy, change, out);
        }
        if let Some(loser) = self.risk.book(strategy, change, price, &self.positions) {
            self.kill_by_limit(loser, RiskControl::MaxLoss, out);
        }
    }

    /// Adds the last order sent to its strategy's position, unless it is booked. Booked at once, it
    /// delays its gateway by some 40 ns. Called before the next input reads positions, and by the
    /// shell after a duty cycle: a gateway that shares the thread has run by then.
    #[inline(always)]
    pub(crate) fn book_last_order(&mut self) {
        if let Some(order) = self.unbooked.take() {
            let (change, strategy) = (self.positions.send(&order), order.id.strategy());
            self.risk.book(strategy, &change, 0, &self.positions);
            let gateway = self.gateway_of(strategy, order.request.venue);
            self.gateways[gateway].counts.orders += 1;
        }
    }

    /// Returns the gateway for a strategy's orders to a venue: that of its credential.
    #[inline(always)]
    pub(crate) fn gateway_of(&self, strategy: StrategyIndex, venue: u16) -> GatewayIndex {
        // A report's venue may be any number.
        GatewayIndex(venue.wrapping_mul(self.credentials).wrapping_add(self.risk.credential(strategy)))
    }

    #[inline(always)]
    pub(super) fn venue_budget(&mut self, order: &Order) -> Option<&mut u64> {
        let row = order.id.strategy().as_usize() * self.risk.venues();
        self.venue_budgets.get_mut(row + usize::from(order.request.venue))
    }

    #[cold]
    pub(super) fn count_rejected(&mut self, id: OrderId, reason: Reject, out: &mut (impl Effects + ?Sized)) {
        out.log_value(Point::Rejected, id, reason as u64);
        self.counts.rejected += 1;
        let count = &mut self.rejected_by_reason[usize::from(reason.code())];
        *count += 1;
        out.notify_operators(OperatorNotice::Rejections { reason: reason.code(), count: *count });
    }

    pub(super) fn notify_dead_counts(&self, strategy: StrategyIndex, out: &mut dyn Effects) {
        let StrategySession { strategy, refused, orphaned, .. } = self.sessions[strategy];
        out.notify_launcher(LifecycleNotice::DeadCounts { strategy, refused, orphaned });
    }
}
