//! Deaths and returns of gateways. All of it is off the path of an order.
//!
//! | gateway | orders for it | what ends the state |
//! |---|---|---|
//! | up | dispatched | its fence |
//! | closing | rejected ([`Reject::VenueDown`]); those still queued in the engine are recalled | nothing of it is left in the completion hand-off |
//! | down | rejected ([`Reject::VenueDown`]) | its next incarnation |
//!
//! When nothing of the dead gateway is left, each request that is still open there is closed with [`Reject::VenueUnknown`]. The gateway
//! may have sent it to the venue, and the venue may have executed it: nobody can tell.

use super::{Core, Effects, Notice};
use crate::positions::{Kind, OpenOrder};
use crate::risk::Reject;
use protocol::checksum::Checksum;
use protocol::supervision::Incarnation;
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
    /// Orders that were open there when an incarnation died.
    pub unknown: u64,
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
}

impl Core {
    pub(super) fn gateway_life(&mut self, gateway: usize, life: Incarnation, out: &mut impl Effects) {
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Down && life.epoch > session.epoch {
            (session.epoch, session.state) = (life.epoch, GatewayState::Up);
            session.sent = Checksum::default();
            out.reopen_gateway(gateway);
        }
        // Also one that was started and has died again since the last look.
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Up && life.fenced && life.epoch == session.epoch {
            session.state = GatewayState::Closing { noticed: self.now };
            self.dying += 1;
            out.recall();
        }
    }

    /// Nothing of a dead gateway is left in the completion hand-off: closes what is open there.
    pub(super) fn gateway_drained(&mut self, gateway: usize, out: &mut impl Effects) {
        let GatewayState::Closing { noticed } = self.gateways[gateway].state else { return };
        self.gateways[gateway].state = GatewayState::Down;
        self.dying -= 1;
        let (venue, credential) =
            ((gateway / self.plan.credentials) as u16, (gateway % self.plan.credentials) as u16);
        for strategy in 0..self.sessions.len() {
            if self.risk.credential(strategy) != credential {
                continue;
            }
            for order in self.positions.open_at(strategy, venue) {
                self.gateways[gateway].unknown += 1;
                self.close_at_gateway(gateway);
                self.close_unknown(&order, out);
            }
        }
        out.close_gateway(gateway);
        let GatewaySession { epoch, unknown, .. } = self.gateways[gateway];
        out.notify(Notice::GatewayRepaired { gateway: gateway as u16, epoch, noticed, unknown });
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
