//! Exchanges fences, repairs and operators' commands with the launcher.

use super::Orchestrator;
use crate::core::{GatewayState, Input, SessionState, StrategySession};
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::control::Control;
use protocol::desk::{CommandChannel, Entry};
use protocol::supervision::{BlockedClaim, GatewayRepair, ProtocolViolation, RepairsWriter};
use shm::ring::{BlockedSlot, Consumer};
use system::clock::Clock;

/// How often the submit hand-off is inspected for damage and for slots that nobody writes, in
/// nanoseconds: often enough for every deadline, also where the engine's thread sleeps; too seldom
/// to cost anything.
const INSPECTION_NS: u64 = 250_000;

/// What the launcher says about strategies: fences.
pub struct Supervision {
    control: Control,
    /// The generation of fences that was last read.
    seen: u64,
    /// When to inspect the submit hand-off again, in ticks.
    next_inspection: u64,
    is_damaged: bool,
}

impl Supervision {
    /// Reads fences from the control segment.
    pub fn new(control: Control) -> Self {
        // Not the generation of now: a fence that is up already must be seen.
        Self { control, seen: 0, next_inspection: 0, is_damaged: false }
    }

    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.control.generation() != self.seen
    }

    #[inline(always)]
    pub(crate) const fn must_inspect(&self, now: u64) -> bool {
        now >= self.next_inspection
    }
}

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    /// Reads every fence, if one may have changed.
    #[cold]
    pub(crate) fn poll_fences<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(supervision) = self.supervision.as_mut().filter(|supervision| supervision.has_news()) else {
            return;
        };
        supervision.seen = supervision.control.generation();
        let control = supervision.control.clone();
        for strategy in 0..self.core.sessions.len() as u16 {
            let (life, session) = (control.life(strategy), &self.core.sessions[usize::from(strategy)]);
            let is_changed = session.is_begun_by(life) || session.is_ended_by(life);
            if is_changed && !self.take(Input::Lifecycle { strategy, life }, |_| (), cycle) {
                return;
            }
        }
        for gateway in 0..self.core.gateways.len() as u16 {
            let life = control.gateway_life(gateway);
            let is_changed = self.core.gateways[usize::from(gateway)].is_changed_by(life);
            if is_changed && !self.take(Input::GatewayLife { gateway, life }, |_| (), cycle) {
                return;
            }
        }
    }

    #[cold]
    pub(crate) fn poll_retirements<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        // First: what was queued of the dead must be recalled before anything says that nothing is
        // left of them.
        self.recall_pending(cycle);
        for strategy in 0..self.core.sessions.len() {
            if self.core.sessions[strategy].is_dying()
                && self.submit.retire(strategy)
                && !self.take(Input::Retired { strategy: strategy as u16 }, |_| (), cycle)
            {
                return;
            }
        }
        for gateway in 0..self.core.gateways.len() {
            let is_drained = self.core.gateways[gateway].is_closing() && self.drains(gateway, cycle);
            let input = Input::GatewayDrained { gateway: gateway as u16 };
            if is_drained && !self.take(input, |_| (), cycle) {
                return;
            }
        }
    }

    /// Takes what a dead gateway has left in the completion hand-off. Returns `true` if nothing of
    /// it is left. Where gateways share a ring, its reports stand between the others': all that are
    /// there are taken.
    fn drains<C: Clock>(&mut self, gateway: usize, cycle: &mut Cycle<C>) -> bool {
        if !self.completion.retire(gateway) {
            return false;
        }
        // Looked at before the ring is found empty: a place that another gateway has claimed may
        // hide what stands after it.
        let is_whole = self.completion.blocked().is_none();
        while self.poll_completion(cycle) > 0 {}
        is_whole && self.failed.is_none()
    }

    #[cold]
    pub(crate) fn poll_commands<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        while let Some(Entry { number, command, .. }) =
            self.outputs.desk.as_mut().and_then(CommandChannel::take)
        {
            if !self.take(Input::Command { number, command }, |_| (), cycle) {
                return;
            }
        }
    }

    /// Inspects the submit hand-off for what stops everybody: damage, and a slot that is claimed
    /// and not written.
    #[cold]
    pub(crate) fn inspect_submit<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(supervision) = &mut self.supervision else { return };
        supervision.next_inspection = cycle.now.saturating_add(cycle.time.ticks(INSPECTION_NS));
        if !supervision.is_damaged && self.submit.check().is_err() {
            supervision.is_damaged = true;
            self.take(Input::Violation { from: None, why: ProtocolViolation::RingDamaged }, |_| (), cycle);
            if let Some(repairs) = &self.outputs.repairs {
                repairs.damaged(ProtocolViolation::RingDamaged);
            }
        }
        // Since when is as of the first look: a producer may be about to write the slot, or to take
        // its announcement back.
        let found = self.submit.blocked().map(|BlockedSlot { position: place, announcer }| {
            let announcer = announcer.map(|producer| producer as u16);
            let known = self.outputs.standstill.filter(|at| (at.place, at.announcer) == (place, announcer));
            known.unwrap_or(BlockedClaim { place, announcer, since_ticks: cycle.now })
        });
        if found != self.outputs.standstill {
            self.outputs.standstill = found;
            if let Some(repairs) = &self.outputs.repairs {
                repairs.stands_still(found);
            }
        }
    }

    /// Is supervised by the launcher from here on.
    #[must_use]
    pub fn supervised(mut self, supervision: Supervision, repairs: RepairsWriter) -> Self {
        self.supervision = Some(supervision);
        self.outputs.repairs = Some(repairs);
        self
    }

    /// As [`Orchestrator::supervised`], in the place of an engine that has crashed: publishes what
    /// that one may have had no time to publish.
    #[must_use]
    pub fn supervised_again(self, supervision: Supervision, repairs: RepairsWriter, now: u64) -> Self {
        for session in &self.core.sessions {
            let StrategySession { strategy, epoch, state, refused, orphaned, why, .. } = *session;
            match (state, why) {
                (SessionState::Dead, _) if !repairs.was_repaired(strategy, epoch) => {
                    repairs.repaired(strategy, epoch, now, now);
                }
                (SessionState::Quarantined, Some(why)) if !repairs.was_quarantined(strategy, epoch) => {
                    repairs.quarantine(strategy, epoch, why, now);
                }
                _ => {}
            }
            repairs.count(strategy, refused, orphaned);
        }
        for (gateway, session) in (0..).zip(&self.core.gateways) {
            if session.state == GatewayState::Down {
                // Only of gateways that do not come back: their inboxes end with them.
                let counts = session.counts;
                let repair =
                    GatewayRepair { noticed_ticks: now, repaired_ticks: now, counts, ..Default::default() };
                repairs.gateway_repaired(gateway, session.epoch, &repair);
            }
        }
        self.supervised(supervision, repairs)
    }
}
