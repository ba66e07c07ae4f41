//! Handles orders: identity, limits, dispatch, rejection and recall.

use super::{Core, Effects, GatewayState};
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::record::Point;
use protocol::supervision::ProtocolViolation;
use protocol::wire::{Message, Operation, Order, OrderId, Report};

impl Core {
    /// Handles one order of a strategy: checks it and dispatches or rejects it. Its sender is the
    /// owner of the memory that it came through; only in a shared ring is the id trusted.
    #[inline(always)]
    pub(super) fn handle_order(
        &mut self,
        from: Option<StrategyIndex>,
        message: &Message,
        out: &mut (impl Effects + ?Sized),
    ) {
        let Ok(order) = Order::from_message(*message) else {
            self.quarantine(from, ProtocolViolation::Garbage, out.off_path());
            return;
        };
        let strategy = order.id.strategy();
        let is_next = from.unwrap_or(strategy) == strategy
            && self.sessions.get(strategy).is_some_and(|session| session.is_next(order.id));
        if !is_next && !self.unexpected_order(from, &order, out.off_path()) {
            return;
        }
        self.book_last_order();
        let session = &mut self.sessions[strategy];
        if session.budget == 0 {
            self.quarantine(from, ProtocolViolation::Flood, out.off_path());
            return;
        }
        session.budget -= 1;
        session.advance(order.id);
        out.stamp(Point::OrchRecvSubmit, order.id, 0);
        if let Some(control) = self.risk.count_message(strategy, self.now) {
            self.kill_by_limit(strategy, control, out.off_path());
        }
        let gateway = self.gateway_of(strategy, order.request.venue);
        if let Err(reason) = self.check(&order, gateway) {
            self.sessions[strategy].taken.add(digest(message));
            self.reject(from, &order, reason, out);
            return;
        }
        out.work();
        let digest = self.send(&order, gateway, message, out);
        self.sessions[strategy].taken.add(digest);
    }

    #[inline(always)]
    fn check(&mut self, order: &Order, gateway: GatewayIndex) -> Result<(), Reject> {
        // This finds out whether there is such a gateway.
        self.risk.check(order, &self.positions, self.now)?;
        if self.gateways[gateway].state != GatewayState::Up {
            return Err(Reject::VenueDown);
        }
        if !self.venue_budgets.is_empty()
            && let Some(left) = self.venue_budget(order)
        {
            *left = left.checked_sub(1).ok_or(Reject::NotPlanned)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn send(
        &mut self,
        order: &Order,
        gateway: GatewayIndex,
        message: &Message,
        out: &mut (impl Effects + ?Sized),
    ) -> u64 {
        // The detail distinguishes new orders, which a kill switch stops, from requests that may
        // pass one.
        out.stamp(Point::OrchDispatch, order.id, u8::from(order.request.operation != Operation::New));
        self.counts.dispatched += 1;
        out.to_gateway(gateway, message);
        let digest = digest(message);
        self.gateways[gateway].sent.add(digest);
        self.unbooked = Some(*order);
        digest
    }

    pub(super) fn handle_recalled(&mut self, message: &Message, out: &mut dyn Effects) {
        let Ok(order) = Order::from_message(*message) else { return };
        let strategy = order.id.strategy();
        let gateway = self.gateway_of(strategy, order.request.venue);
        self.gateways[gateway].sent.remove(digest(message));
        self.counts.dispatched -= 1;
        let counts = &mut self.gateways[gateway].counts;
        counts.orders = counts.orders.saturating_sub(1);
        let is_current = self.sessions[strategy].is_current(order.id);
        let change = self.positions.close(order.id, is_current);
        self.settle(strategy, &change, 0, out);
        if is_current {
            let reason = if self.is_down(gateway) { Reject::VenueDown } else { Reject::Killed };
            self.reject(None, &order, reason, out);
        } else {
            self.refuse(order.id, out);
        }
    }

    #[cold]
    fn reject(
        &mut self,
        from: Option<StrategyIndex>,
        order: &Order,
        why: Reject,
        out: &mut (impl Effects + ?Sized),
    ) {
        self.count_rejected(order.id, why, out);
        let report = Report::rejected(order, why);
        self.send_back(&report, &report.to_message(), out);
        self.count_rejection(from, order, why, out.off_path());
    }

    /// Counts a rejection against the order's sender, once its report is sent.
    #[cold]
    fn count_rejection(
        &mut self,
        from: Option<StrategyIndex>,
        order: &Order,
        why: Reject,
        out: &mut dyn Effects,
    ) {
        self.record_offense(from, why, out);
        let strategy = order.id.strategy();
        // A kill switch or a venue that is down is not the strategy's fault.
        if !matches!(why, Reject::Killed | Reject::VenueDown)
            && let Some(control) = self.risk.count_rejection(strategy, self.now)
        {
            self.kill_by_limit(strategy, control, out);
        }
    }

    #[cold]
    pub(super) fn refuse(&mut self, id: OrderId, out: &mut dyn Effects) {
        let strategy = id.strategy();
        self.sessions[strategy].refused += 1;
        self.notify_dead_counts(strategy, out);
        self.count_rejected(id, Reject::Gone, out);
    }
}
