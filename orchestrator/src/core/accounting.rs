//! Returns reports to strategies, and books orders and reports in positions, limits and counts.

use super::{Core, Effects, LifecycleNotice, OperatorNotice, StrategySession};
use crate::positions::Change;
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::limits::RiskControl;
use protocol::record::{Point, key_with};
use protocol::wire::{Message, Order, OrderId, PLACEHOLDER, Report};

impl Core {
    #[inline(always)]
    pub(super) fn handle_report(&mut self, gateway: Option<u16>, message: &Message, out: &mut impl Effects) {
        self.counts.reports += 1;
        // Gateways are trusted, so an invalid report is a bug: counted and skipped.
        let report = Report::from_message(*message).ok();
        let known = report.filter(|report| usize::from(report.id.strategy()) < self.sessions.len());
        let Some(report) = known else {
            self.reported.add(digest(message));
            self.counts.faults += u64::from(message != &PLACEHOLDER);
            // The sender is unknown where gateways share memory.
            if let Some(session) = gateway.and_then(|index| self.gateways.get_mut(usize::from(index))) {
                session.counts.reports += 1;
            }
            return;
        };
        // Needed after the hand-over.
        self.positions.prefetch(report.id);
        out.stamp(Point::OrchRecvCompletion, report.id, report.number);
        let strategy = usize::from(report.id.strategy());
        let is_current = self.sessions[strategy].is_current(report.id);
        self.counts.settled += u64::from(report.is_last);
        let digest = if is_current {
            self.send_back(&report, message, out)
        } else {
            self.count_orphan(strategy, out);
            digest(message)
        };
        self.reported.add(digest);
        // After the hand-over, off the report's path.
        self.settle_report(&report, is_current, out);
    }

    /// Sends a report of a venue back to its strategy. Returns its digest, which is computed after
    /// the hand-over, off the report's path.
    #[inline(always)]
    pub(super) fn send_back(&mut self, report: &Report, message: &Message, out: &mut impl Effects) -> u64 {
        out.to_strategy(report, message);
        let digest = digest(message);
        self.sessions[usize::from(report.id.strategy())].returned.add(digest);
        digest
    }

    #[cold]
    pub(super) fn count_orphan(&mut self, strategy: usize, out: &mut impl Effects) {
        self.sessions[strategy].orphaned += 1;
        self.notify_dead_counts(strategy, out);
    }

    #[inline(always)]
    fn settle_report(&mut self, report: &Report, is_current: bool, out: &mut impl Effects) {
        let strategy = usize::from(report.id.strategy());
        if let Some(session) = self.gateways.get_mut(usize::from(report.venue)) {
            session.counts.reports += 1;
            session.counts.last_report = key_with(Point::GatewayDone, report.id, report.detail());
        }
        let Some(change) = self.positions.settle(report, is_current) else {
            self.counts.faults += 1;
            return;
        };
        self.settle(strategy, &change, report.price, out);
    }

    #[inline(always)]
    pub(super) fn settle(&mut self, strategy: usize, change: &Change, price: i64, out: &mut impl Effects) {
        if change.killed_at.is_some() {
            self.confirm_killed(strategy, change, out);
        }
        if let Some(loser) = self.risk.book(strategy, change, price, &self.positions) {
            self.kill_by_limit(loser, RiskControl::MaxLoss, out);
        }
    }

    /// Adds an order that was sent to its strategy's position.
    #[inline(always)]
    pub(super) fn book_order(&mut self, order: &Order) {
        let (change, strategy) = (self.positions.send(order), usize::from(order.id.strategy()));
        self.risk.book(strategy, &change, 0, &self.positions);
        self.gateways[usize::from(order.venue)].counts.orders += 1;
    }

    #[inline(always)]
    pub(super) fn venue_budget(&mut self, order: &Order) -> Option<&mut u64> {
        let index = usize::from(order.id.strategy()) * self.gateways.len() + usize::from(order.venue);
        self.venue_budgets.get_mut(index)
    }

    #[cold]
    pub(super) fn count_rejected(&mut self, id: OrderId, reason: Reject, out: &mut impl Effects) {
        out.log_value(Point::Rejected, id, reason as u64);
        self.counts.rejected += 1;
        let count = &mut self.rejected_by_reason[usize::from(reason.code())];
        *count += 1;
        out.notify_operators(OperatorNotice::Rejections { reason: reason.code(), count: *count });
    }

    pub(super) fn notify_dead_counts(&self, strategy: usize, out: &mut impl Effects) {
        let StrategySession { strategy, refused, orphaned, .. } = self.sessions[strategy];
        out.notify_launcher(LifecycleNotice::DeadCounts { strategy, refused, orphaned });
    }
}
