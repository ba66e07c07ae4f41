//! Decides whether a dead strategy is restarted, and restarts it.

use super::{IncidentStage, Incidents, ProcessControl};
use crate::runtime::restart_policy::RestartDecision;
use crate::runtime::stuck::Liveness;
use analysis::record::StayedDown;
use anyhow::{Context, Result};
use protocol::plan::OnDeath;
use protocol::status::{self, ThreadState};
use protocol::wire::MAX_EPOCH;
use std::time::Duration;

impl Incidents<'_> {
    /// Returns the pause before a strategy is restarted, or `None` if it stays down, with a note on
    /// the reason. Quarantined strategies and those that hung before their first duty cycle stay
    /// down. A strategy that had reported done gets no note: nothing is left to do.
    pub(super) fn decide_restart(&mut self, strategy: u16, incident: usize) -> Option<Duration> {
        let case = &mut self.strategies[usize::from(strategy)];
        let state = status::state(&self.segments.threads[case.thread]);
        if self.segments.plan.on_death != OnDeath::Restart || state == ThreadState::Done {
            return None;
        }
        let died = &mut self.list[incident];
        let cause = died.cause.clone();
        let stayed_down = if died.quarantined.is_some() {
            StayedDown { restarts: 0, why: cause }
        } else if case.has_hung_at_start {
            StayedDown { restarts: 0, why: format!("it was restarted and {cause}") }
        } else if case.epoch >= MAX_EPOCH {
            StayedDown {
                restarts: MAX_EPOCH.into(),
                why: format!("the maximum number of incarnations; the last: {cause}"),
            }
        } else {
            match case.policy.charge_death(case.end) {
                RestartDecision::RestartAfter(pause) => return Some(pause),
                RestartDecision::StayDown(restarts) => {
                    StayedDown { restarts, why: format!("none of them made progress; the last: {cause}") }
                }
            }
        };
        self.notes.push(format!("note: {}", stayed_down.describe(strategy)));
        died.stayed_down = Some(stayed_down);
        None
    }

    /// Starts the next incarnation of a dead strategy. A failed start counts as another death.
    pub(super) fn restart(
        &mut self,
        strategy: u16,
        incident: usize,
        children: &mut impl ProcessControl,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        let case = &mut self.strategies[usize::from(strategy)];
        case.epoch += 1;
        case.stage = IncidentStage::Starting(incident);
        let (epoch, process, thread) = (case.epoch, case.process, case.thread);
        self.segments.reset_strategy(strategy);
        liveness.reset_thread(thread, now);
        self.segments.control.revive(strategy, epoch);
        let Err(error) = children.restart(self.segments, process) else { return Ok(()) };
        // No process runs in this epoch: the proof of the last one's death still holds.
        let Some(death) = children.proof_of_death(process).context("cannot watch a process")? else {
            return Err(error);
        };
        let next = self.record_incident(strategy, 0, format!("cannot be started: {error:#}"), now);
        self.fence(strategy, next, &death, now);
        Ok(())
    }
}
