//! The engine's side of fences, repairs and operators' commands.

use crate::engine::{Core, GatewayState, Input, SessionState, StrategySession};
use crate::fences::Supervision;
use crate::outputs::Outputs;
use crate::shell::Orchestrator;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::commands::{CommandChannel, CommandEntry};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::supervision::{BlockedClaim, GatewayRepair, ProtocolViolation, RepairsWriter};
use shm::ring::{BlockedSlot, Consumer};
use system::clock::Clock;

/// Interval of inspections of the submit hand-off for damage and unwritten claims, in nanoseconds:
/// short enough for every deadline, long enough to cost nothing.
const INSPECTION_NS: u64 = 250_000;

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    #[cold]
    pub(crate) fn poll_fences<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(supervision) = self.supervision.as_mut().filter(|supervision| supervision.has_news()) else {
            return;
        };
        supervision.seen = supervision.control.generation();
        let control = supervision.control.clone();
        for strategy in self.outputs.strategies.indices() {
            let input = self.core.lifecycle_input(strategy, control.incarnation(strategy));
            if input.is_some_and(|input| !self.record_and_apply_off_path(input, |_| (), cycle)) {
                return;
            }
        }
        for gateway in self.outputs.gateways.indices() {
            let input = self.core.gateway_life_input(gateway, control.gateway_incarnation(gateway));
            if input.is_some_and(|input| !self.record_and_apply_off_path(input, |_| (), cycle)) {
                return;
            }
        }
    }

    #[cold]
    pub(crate) fn poll_retirements<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        // First: queued orders of crashed peers must be recalled before their retirement ends.
        self.recall_pending(cycle);
        for strategy in self.outputs.strategies.indices() {
            if self.core.is_dying(strategy)
                && self.hand_offs.submit.retire(strategy.as_usize())
                && !self.record_and_apply_off_path(Input::Retired { strategy }, |_| (), cycle)
            {
                return;
            }
        }
        for gateway in self.outputs.gateways.indices() {
            let is_drained = self.core.is_closing(gateway) && self.try_drain_gateway(gateway, cycle);
            let input = Input::GatewayDrained { gateway };
            if is_drained && !self.record_and_apply_off_path(input, |_| (), cycle) {
                return;
            }
        }
    }

    /// Drains a dead gateway's reports; from a shared ring all reports. Returns `true` if none is
    /// left.
    fn try_drain_gateway<C: Clock>(&mut self, gateway: GatewayIndex, cycle: &mut Cycle<C>) -> bool {
        if !self.hand_offs.completion.retire(gateway.as_usize()) {
            return false;
        }
        // Checked before the ring is found empty: another gateway's claimed slot may hide later
        // messages.
        let is_whole = self.hand_offs.completion.blocked().is_none();
        self.drain_completion(cycle);
        is_whole && self.failed.is_none()
    }

    #[cold]
    pub(crate) fn poll_commands<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        while let Some(CommandEntry { number, command, .. }) =
            self.outputs.commands.as_mut().and_then(CommandChannel::next_command)
        {
            if !self.record_and_apply_off_path(Input::Command { number, command }, |_| (), cycle) {
                return;
            }
        }
    }

    #[cold]
    pub(crate) fn inspect_submit<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(supervision) = &mut self.supervision else { return };
        supervision.next_inspection = cycle.now.saturating_add(cycle.time.ticks(INSPECTION_NS));
        if !supervision.is_damaged && self.hand_offs.submit.check().is_err() {
            supervision.is_damaged = true;
            self.record_and_apply_off_path(
                Input::Violation { from: None, why: ProtocolViolation::RingDamaged },
                |_| (),
                cycle,
            );
            if let Some(repairs) = &self.outputs.repairs {
                repairs.set_damaged(ProtocolViolation::RingDamaged);
            }
        }
        // Timed from the first inspection: a producer may be about to write or to withdraw.
        let found = self.hand_offs.submit.blocked().map(|BlockedSlot { position: place, announcer }| {
            let announcer = announcer.map(|producer| StrategyIndex(producer as u16));
            let reported_before =
                self.outputs.blocked_claim.filter(|at| (at.slot, at.announcer) == (place, announcer));
            reported_before.unwrap_or(BlockedClaim { slot: place, announcer, since_ticks: cycle.now })
        });
        if found != self.outputs.blocked_claim {
            self.outputs.blocked_claim = found;
            if let Some(repairs) = &self.outputs.repairs {
                repairs.set_blocked(found);
            }
        }
    }

    /// Connects the engine to the launcher's supervision, and reports to the launcher the repairs
    /// that a crashed predecessor may not have reported. `now` is in ticks.
    #[must_use]
    pub fn supervised(mut self, supervision: Supervision, repairs: RepairsWriter, now: u64) -> Self {
        publish_repairs(&self.core, &self.outputs, &repairs, now);
        self.supervision = Some(supervision);
        self.outputs.repairs = Some(repairs);
        self
    }
}

/// Publishes the repairs that a crashed engine may not have published. `now` is in ticks.
fn publish_repairs(core: &Core, outputs: &Outputs, repairs: &RepairsWriter, now: u64) {
    for session in &core.sessions {
        let StrategySession { strategy, epoch, state, refused, orphaned, violation: why, .. } = *session;
        match (state, why) {
            (SessionState::Dead, _) if !repairs.was_repaired(strategy, epoch) => {
                outputs.publish_positions(strategy, core.positions.accounts_of(strategy));
                repairs.set_repaired(strategy, epoch, now, now);
            }
            (SessionState::Quarantined, Some(why)) if !repairs.was_quarantined(strategy, epoch) => {
                repairs.quarantine(strategy, epoch, why, now);
            }
            _ => {}
        }
        repairs.set_counts(strategy, refused, orphaned);
    }
    for (gateway, session) in core.gateways.enumerate() {
        if session.state == GatewayState::Down {
            // Only gateways that do not restart: their inboxes end with them.
            let counts = session.counts;
            let repair =
                GatewayRepair { noticed_ticks: now, repaired_ticks: now, counts, ..Default::default() };
            repairs.set_gateway_repaired(gateway, session.epoch, &repair);
        }
    }
}
