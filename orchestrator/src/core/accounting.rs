//! Reports on their way home, and what orders and reports do to positions, limits and counts.

use super::{Core, Effects, Notice, StrategySession};
use crate::positions::Change;
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::limits::RiskControl;
use protocol::record::Point;
use protocol::wire::{Message, Order, OrderId, PLACEHOLDER, Report};

impl Core {
    #[inline(always)]
    pub(super) fn report(&mut self, gateway: Option<u16>, message: &Message, out: &mut impl Effects) {
        self.counts.reports += 1;
        // Gateways are trusted, so anything else is a bug and not a hostile peer: counted and
        // skipped.
        let report = Report::from_message(*message).ok();
        let known = report.filter(|report| usize::from(report.id.strategy()) < self.sessions.len());
        let Some(report) = known else {
            self.reported.add(digest(message));
            self.counts.faults += u64::from(message != &PLACEHOLDER);
            // Of gateways that share memory nobody can tell which one sent it.
            if let Some(session) = gateway.and_then(|index| self.gateways.get_mut(usize::from(index))) {
                session.counts.reports += 1;
            }
            return;
        };
        // Needed after the hand-over, in the cache by then.
        self.positions.prefetch(report.id);
        out.stamp(Point::OrchRecvCompletion, report.id, report.number);
        let strategy = usize::from(report.id.strategy());
        let is_current = self.sessions[strategy].is_current(report.id);
        self.counts.settled += u64::from(report.is_last);
        let digest = if is_current {
            self.give_back(&report, message, out)
        } else {
            self.orphan(strategy, out);
            digest(message)
        };
        self.reported.add(digest);
        // After the hand-over, off the report's path.
        self.account_for(&report, is_current, out);
    }

    /// Returns a report to its strategy. Returns its digest, which is computed after the hand-over,
    /// off the report's path.
    #[inline(always)]
    pub(super) fn give_back(&mut self, report: &Report, message: &Message, out: &mut impl Effects) -> u64 {
        out.to_strategy(report, message);
        let digest = digest(message);
        self.sessions[usize::from(report.id.strategy())].returned.add(digest);
        digest
    }

    /// Counts a report whose strategy's incarnation is gone.
    #[cold]
    pub(super) fn orphan(&mut self, strategy: usize, out: &mut impl Effects) {
        self.sessions[strategy].orphaned += 1;
        self.notify_dead_counts(strategy, out);
    }

    #[inline(always)]
    fn account_for(&mut self, report: &Report, is_current: bool, out: &mut impl Effects) {
        // In the live engine it is booked already: reports are taken first in a duty cycle.
        self.book();
        let strategy = usize::from(report.id.strategy());
        let gateway = self.gateway_of(strategy, report.venue);
        if let Some(session) = self.gateways.get_mut(gateway) {
            session.count_report(report);
        }
        if report.is_last {
            self.close_at_gateway(gateway);
        }
        let Some(change) = self.positions.settle(report, is_current) else {
            self.counts.faults += 1;
            return;
        };
        self.settle(strategy, &change, report.price, out);
    }

    /// Confirms and books the effect of a report, or of a request that was closed without one.
    #[inline(always)]
    pub(super) fn settle(&mut self, strategy: usize, change: &Change, price: i64, out: &mut impl Effects) {
        if let Some(venue) = change.killed_at {
            self.confirm_killed(strategy, (venue, change.instrument), out);
        }
        if let Some(loser) = self.risk.book(strategy, change, price, &self.positions) {
            self.kill_by_limit(loser, RiskControl::MaxLoss, out);
        }
    }

    /// Books the order that was sent last: not when it is sent, but after the turn of its gateway,
    /// which may share the engine's thread. Called before anything else reads positions, and at the
    /// end of the duty cycle.
    #[inline(always)]
    pub(crate) fn book(&mut self) {
        if let Some(order) = self.unbooked.take() {
            let (change, strategy) = (self.positions.send(&order), usize::from(order.id.strategy()));
            self.risk.book(strategy, &change, 0, &self.positions);
            let gateway = self.gateway_of(strategy, order.venue);
            self.gateways[gateway].open += 1;
            self.gateways[gateway].counts.orders += 1;
        }
    }

    pub(super) fn close_at_gateway(&mut self, gateway: usize) {
        if let Some(session) = self.gateways.get_mut(gateway) {
            session.open = session.open.saturating_sub(1);
        }
    }

    /// Returns the index of the gateway of a strategy's orders for a venue: there is one for each
    /// credential.
    #[inline(always)]
    pub(crate) fn gateway_of(&self, strategy: usize, venue: u16) -> usize {
        usize::from(venue) * self.plan.credentials + usize::from(self.risk.credential(strategy))
    }

    /// Returns the orders left in the plan for an order's strategy and venue; `None` without such a
    /// limit.
    #[inline(always)]
    pub(super) fn venue_budget(&mut self, order: &Order) -> Option<&mut u64> {
        let index = usize::from(order.id.strategy()) * self.plan.venues + usize::from(order.venue);
        self.venue_budgets.get_mut(index)
    }

    /// Counts and logs a rejected order.
    #[cold]
    pub(super) fn count_refused(&mut self, id: OrderId, reason: Reject, out: &mut impl Effects) {
        out.log_value(Point::Rejected, id, reason as u64);
        self.counts.rejected += 1;
        let count = &mut self.refused[usize::from(reason.code())];
        *count += 1;
        out.notify(Notice::Rejections { reason: reason.code(), count: *count });
    }

    pub(super) fn notify_dead_counts(&self, strategy: usize, out: &mut impl Effects) {
        let StrategySession { strategy, refused, orphaned, .. } = self.sessions[strategy];
        out.notify(Notice::DeadCounts { strategy, refused, orphaned });
    }
}
