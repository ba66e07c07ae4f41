//! Deaths and restarts of gateways, off the path of an order.
//!
//! | gateway | orders for it | ends with |
//! |---|---|---|
//! | up | dispatched | its fence |
//! | closing | rejected ([`Reject::VenueDown`]), queued ones recalled | its reports drained |
//! | down | rejected ([`Reject::VenueDown`]) | its next incarnation |
//!
//! Once drained, each request that is still open there is closed with [`Reject::VenueUnknown`]: the
//! venue may have executed it. If a successor resumes the session, requests and inbox stay, and
//! their reports come from the successor.

use super::{Core, Effects, LifecycleNotice};
use crate::positions::{Kind, OpenOrder};
use crate::risk::Reject;
use protocol::checksum::Checksum;
use protocol::index::GatewayIndex;
use protocol::supervision::{GIVEN_UP, GatewayCounts, Incarnation};
use protocol::wire::{ENGINE_REPORT, OrderRequest, OrderStatus, Report, Side};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GatewayState {
    #[default]
    Up,
    Closing {
        noticed: u64,
    },
    Down,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GatewaySession {
    pub epoch: u16,
    pub state: GatewayState,
    pub counts: GatewayCounts,
    pub sent: Checksum,
}

impl GatewaySession {
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
    fn is_resumable(&self, gateway: GatewayIndex) -> bool {
        self.resumable.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if open requests outlive the gateway.
    fn has_resuming_successor(&self, gateway: GatewayIndex) -> bool {
        self.is_resumable(gateway) && self.gateways[gateway].epoch != GIVEN_UP
    }

    pub(super) fn apply_gateway_fence(
        &mut self,
        gateway: GatewayIndex,
        life: Incarnation,
        out: &mut dyn Effects,
    ) {
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Down && life.epoch > session.epoch {
            (session.epoch, session.state) = (life.epoch, GatewayState::Up);
            out.renew_gateway(gateway, self.is_resumable(gateway));
        }
        // Also a restart and death since the last poll.
        let session = &mut self.gateways[gateway];
        if session.state == GatewayState::Up && life.fenced && life.epoch == session.epoch {
            session.state = GatewayState::Closing { noticed: self.now };
            self.dying += 1;
            out.recall();
        }
    }

    pub(super) fn finish_gateway_retirement(&mut self, gateway: GatewayIndex, out: &mut dyn Effects) {
        let GatewayState::Closing { noticed } = self.gateways[gateway].state else { return };
        self.gateways[gateway].state = GatewayState::Down;
        self.dying -= 1;
        // A successor counts later messages.
        self.gateways[gateway].sent = Checksum::default();
        if !self.has_resuming_successor(gateway) {
            self.close_all_unknown(gateway, out);
            out.close_gateway(gateway);
        }
        let GatewaySession { epoch, counts, .. } = self.gateways[gateway];
        out.notify_launcher(LifecycleNotice::GatewayRepaired { gateway, epoch, noticed, counts });
    }

    fn close_all_unknown(&mut self, gateway: GatewayIndex, out: &mut dyn Effects) {
        let (venue, credential) = (gateway.0 / self.credentials, gateway.0 % self.credentials);
        let strategies = self.sessions.indices().skip(credential.into());
        for strategy in strategies.step_by(self.credentials.into()) {
            for order in self.positions.open_at(strategy, venue) {
                self.gateways[gateway].counts.unknown += 1;
                self.close_unknown(&order, out);
            }
        }
    }

    fn close_unknown(&mut self, order: &OpenOrder, out: &mut dyn Effects) {
        let id = order.id();
        let strategy = id.strategy();
        self.counts.settled += 1;
        let is_current = self.sessions[strategy].is_current(id);
        let change = self.positions.close(id, is_current);
        self.settle(strategy, &change, 0, out);
        self.count_rejected(id, Reject::VenueUnknown, out);
        if is_current {
            let side = if let Kind::Order(side) = order.kind { side } else { Side::Buy };
            let request =
                OrderRequest { instrument: order.instrument, side, ..OrderRequest::to_venue(order.venue) }
                    .with_id(id);
            let report = Report::rejected(&request, Reject::VenueUnknown);
            let report = Report { status: OrderStatus::Expired, number: ENGINE_REPORT, ..report };
            self.send_back(&report, &report.to_message(), out);
        } else {
            self.count_orphan(strategy, out);
        }
    }

    /// Returns `true` if a gateway is dead and no successor resumes its session.
    pub(super) fn is_abandoned(&self, gateway: GatewayIndex) -> bool {
        self.is_down(gateway) && !self.has_resuming_successor(gateway)
    }

    pub(super) fn is_down(&self, gateway: GatewayIndex) -> bool {
        self.gateways.get(gateway).is_some_and(|session| session.state != GatewayState::Up)
    }
}
