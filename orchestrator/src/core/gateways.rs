//! Deaths and returns of gateways. All of it is off the path of an order.
//!
//! | gateway | orders for it | what ends the state |
//! |---|---|---|
//! | up | dispatched | its fence |
//! | closing | rejected ([`Reject::VenueDown`]); those still queued in the engine are recalled | nothing of it is left in the completion hand-off |
//! | down | rejected ([`Reject::VenueDown`]) | its next incarnation |
//!
//! When nothing of the dead gateway is left, each request that is still open there is closed with
//! [`Reject::VenueUnknown`]. The gateway may have sent it to the venue, and the venue may have
//! executed it: nobody can tell. A gateway whose successor resumes the session closes nothing: its
//! requests stay open, its inbox stays, and the reports that settle them come from the successor.

use super::{Core, Effects, Notice};
use crate::positions::{Kind, OpenOrder};
use crate::risk::Reject;
use protocol::checksum::Checksum;
use protocol::record::{Point, key_with};
use protocol::supervision::{GIVEN_UP, GatewayCounts, Incarnation};
use protocol::wire::{ENGINE_REPORT, Order, OrderId, OrderStatus, Report, Side};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GatewayState {
    /// Orders are dispatched to it.
    #[default]
    Up,
    /// Its death is certain, and its last reports are being taken.
    Closing {
        /// When the fence was seen, in ticks since the run's start.
        noticed: u64,
    },
    /// Nothing of it is left.
    Down,
}

/// The engine's side of one gateway.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GatewaySession {
    /// The incarnation.
    pub epoch: u16,
    pub state: GatewayState,
    pub counts: GatewayCounts,
    /// Orders open there.
    pub open: u64,
    /// The messages sent to this incarnation.
    pub sent: Checksum,
}

impl GatewaySession {
    /// Returns `true` if `life` is a death or a return that has not been applied.
    pub(crate) fn is_changed_by(&self, life: Incarnation) -> bool {
        match self.state {
            GatewayState::Up => life.fenced && life.epoch == self.epoch,
            GatewayState::Closing { .. } => false,
            GatewayState::Down => life.epoch > self.epoch,
        }
    }

    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.state, GatewayState::Closing { .. })
    }

    /// Counts a report that was taken from it.
    #[inline(always)]
    pub(super) fn count_report(&mut self, report: &Report) {
        self.counts.reports += 1;
        self.counts.last_report = key_with(Point::GatewayDone, report.id, report.detail());
    }
}

impl Core {
    fn is_resumable(&self, gateway: usize) -> bool {
        self.plan.resumable.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if requests that are open at a gateway outlive it.
    fn resumes(&self, gateway: usize) -> bool {
        self.is_resumable(gateway) && self.gateways[gateway].epoch != GIVEN_UP
    }

    pub(super) fn gateway_life(&mut self, gateway: usize, life: Incarnation, out: &mut impl Effects) {
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Down && life.epoch > session.epoch {
            (session.epoch, session.state) = (life.epoch, GatewayState::Up);
            out.reopen_gateway(gateway, self.is_resumable(gateway));
        }
        // Also one that was started and has died again since the last look.
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Up && life.fenced && life.epoch == session.epoch {
            session.state = GatewayState::Closing { noticed: self.now };
            self.dying += 1;
            out.recall();
        }
    }

    /// Nothing of a dead gateway is left in the completion hand-off: closes what is open there,
    /// unless its successor goes on with it.
    pub(super) fn gateway_drained(&mut self, gateway: usize, out: &mut impl Effects) {
        let GatewayState::Closing { noticed } = self.gateways[gateway].state else { return };
        self.gateways[gateway].state = GatewayState::Down;
        self.dying -= 1;
        // Its successor counts what comes from here on.
        self.gateways[gateway].sent = Checksum::default();
        if !self.resumes(gateway) {
            self.close_all_unknown(gateway, out);
            out.close_gateway(gateway);
        }
        let GatewaySession { epoch, counts, .. } = self.gateways[gateway];
        out.notify(Notice::GatewayRepaired { gateway: gateway as u16, epoch, noticed, counts });
    }

    /// Closes all requests that are open at a gateway.
    fn close_all_unknown(&mut self, gateway: usize, out: &mut impl Effects) {
        let (venue, credential) =
            ((gateway / self.plan.credentials) as u16, (gateway % self.plan.credentials) as u16);
        for strategy in 0..self.sessions.len() {
            if self.risk.credential(strategy) != credential {
                continue;
            }
            for order in self.positions.open_at(strategy, venue) {
                self.gateways[gateway].counts.unknown += 1;
                self.close_at_gateway(gateway);
                self.close_unknown(&order, out);
            }
        }
    }

    /// Closes a request whose end at its venue is unknown, and reports that to its strategy.
    fn close_unknown(&mut self, order: &OpenOrder, out: &mut impl Effects) {
        let id = order.id();
        let strategy = usize::from(id.strategy());
        self.counts.settled += 1;
        let is_current = self.sessions[strategy].is_current(id);
        let change = self.positions.close(id, is_current);
        self.settle(strategy, &change, 0, out);
        self.count_refused(id, Reject::VenueUnknown, out);
        if is_current {
            let report = unknown_report(id, order);
            self.give_back(&report, &report.to_message(), out);
        } else {
            self.orphan(strategy, out);
        }
    }

    /// Returns `true` if a gateway is dead and nobody goes on with its inbox.
    pub(super) fn is_gone(&self, gateway: usize) -> bool {
        self.is_down(gateway) && !self.resumes(gateway)
    }

    /// Returns `true` if a gateway takes no orders.
    pub(super) fn is_down(&self, gateway: usize) -> bool {
        self.gateways.get(gateway).is_some_and(|session| session.state != GatewayState::Up)
    }
}

/// The report that closes a request whose end at its venue is unknown.
fn unknown_report(id: OrderId, open: &OpenOrder) -> Report {
    let side = if let Kind::Order(side) = open.kind { side } else { Side::Buy };
    let order = Order { instrument: open.instrument, side, ..Order::new(id, open.venue) };
    let report = Report::rejected(&order, Reject::VenueUnknown);
    Report { status: OrderStatus::Expired, number: ENGINE_REPORT, ..report }
}
