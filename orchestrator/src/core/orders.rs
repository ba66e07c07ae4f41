//! Orders on their way out: identity, limits, dispatch; and what a rejection does.

use super::{Core, Effects, Moment};
use crate::risk::Reject;
use protocol::checksum::digest;
use protocol::record::Point;
use protocol::supervision::Misconduct;
use protocol::wire::{Message, Operation, Order, OrderId, Report};

impl Core {
    /// Takes one order. Its sender is whose memory it came through; only where several strategies write that is the id
    /// believed.
    #[inline(always)]
    pub(super) fn order(
        &mut self,
        from: Option<usize>,
        message: &Message,
        at: Moment,
        out: &mut impl Effects,
    ) {
        self.book();
        let Ok(order) = Order::from_message(*message) else {
            self.violation(from, Misconduct::Garbage, out);
            return;
        };
        let strategy = usize::from(order.id.strategy());
        let is_next = from.unwrap_or(strategy) == strategy
            && self.sessions.get(strategy).is_some_and(|session| session.is_next(order.id));
        if !is_next && !self.unexpected_order(from, &order, out) {
            return;
        }
        let session = &mut self.sessions[strategy];
        if session.budget == 0 {
            self.violation(from, Misconduct::Flood, out);
            return;
        }
        session.budget -= 1;
        session.advance(order.id);
        self.sender_is_authenticated = from.is_some();
        out.stamp(Point::OrchRecvSubmit, order.id, 0);
        if let Some(control) = self.risk.count_message(strategy, at.since_start) {
            self.kill_by_limit(strategy, control, out);
        }
        if let Err(reason) = self.check(&order, at) {
            self.sessions[strategy].taken.add(digest(message));
            self.reject(from, &order, reason, at, out);
            return;
        }
        out.work();
        let digest = self.send(&order, message, out);
        self.sessions[strategy].taken.add(digest);
    }

    /// Checks an order against every control, and takes it from the plan's budgets if it passes.
    #[inline(always)]
    fn check(&mut self, order: &Order, at: Moment) -> Result<(), Reject> {
        self.risk.check(order, &self.positions, at.since_start)?;
        if self.restricts_gateways {
            self.check_gateway(order)?;
        }
        match self.venue_budget(order) {
            Some(0) => Err(Reject::NotPlanned),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Checks an order against the state of its gateway, and against the limit of open orders there.
    fn check_gateway(&self, order: &Order) -> Result<(), Reject> {
        let gateway = self.gateway_of(order);
        let is_open = |limit| self.gateway_orders[gateway] >= limit;
        if self.is_down(gateway) {
            Err(Reject::VenueDown)
        } else if order.operation == Operation::New && self.gateway_limit.is_some_and(is_open) {
            Err(Reject::VenueBusy)
        } else {
            Ok(())
        }
    }

    /// Stamps an order and sends it to its gateway. Returns its digest, which is computed after the push, off the order's path.
    #[inline(always)]
    fn send(&mut self, order: &Order, message: &Message, out: &mut impl Effects) -> u64 {
        // The detail tells a new order, which a kill switch stops, from anything else, which may pass one.
        out.stamp(Point::OrchDispatch, order.id, u8::from(order.operation != Operation::New));
        self.counts.dispatched += 1;
        let gateway = self.gateway_of(order);
        out.to_gateway(gateway, message);
        let digest = digest(message);
        self.checksums.to_gateway[gateway].add(digest);
        self.unbooked = Some(*order);
        digest
    }

    /// Takes back an order that was queued for its gateway: it never reached the venue.
    pub(super) fn recalled(&mut self, message: &Message, at: Moment, out: &mut impl Effects) {
        let Ok(order) = Order::from_message(*message) else { return };
        let strategy = usize::from(order.id.strategy());
        let gateway = self.gateway_of(&order);
        self.checksums.to_gateway[gateway].remove(digest(message));
        self.counts.dispatched -= 1;
        self.close_at_gateway(gateway);
        let counts = &mut self.gateways[gateway].counts;
        counts.orders = counts.orders.saturating_sub(1);
        let is_current = self.sessions[strategy].is_current(order.id);
        let change = self.positions.close(order.id, is_current);
        self.risk.book(strategy, &change, 0, &self.positions);
        if let Some(closed) = change.killed {
            self.confirmed(strategy, closed, out);
        }
        if is_current {
            let reason = if self.is_down(gateway) { Reject::VenueDown } else { Reject::Killed };
            self.reject(None, &order, reason, at, out);
        } else {
            self.refuse(order.id, out);
        }
    }

    /// Rejects an order and reports that to its strategy.
    #[cold]
    pub(super) fn reject(
        &mut self,
        from: Option<usize>,
        order: &Order,
        reason: Reject,
        at: Moment,
        out: &mut impl Effects,
    ) {
        self.count_refused(reason, out);
        out.log_value(Point::Rejected, order.id, reason as u64);
        let report = Report::rejected(order, reason);
        self.give_back(&report, &report.to_message(), out);
        self.offence(from, reason, out);
        let strategy = usize::from(order.id.strategy());
        // Not those that are none of the strategy's doing: by a kill switch, or because a venue is down.
        if !matches!(reason, Reject::Killed | Reject::VenueDown)
            && let Some(control) = self.risk.count_rejection(strategy, at.since_start)
        {
            self.kill_by_limit(strategy, control, out);
        }
    }

    /// Refuses an order of a dead incarnation: nobody gets a report.
    #[cold]
    pub(super) fn refuse(&mut self, id: OrderId, out: &mut impl Effects) {
        let strategy = usize::from(id.strategy());
        self.sessions[strategy].refused += 1;
        self.notify_dead_counts(strategy, out);
        out.log_value(Point::Rejected, id, Reject::Gone as u64);
        self.count_refused(Reject::Gone, out);
    }
}
