//! Whether a dead strategy is started again, and how.

use super::{Children, IncidentStage, Incidents};
use crate::runtime::restarts::RestartDecision;
use crate::runtime::stuck::Liveness;
use analysis::record::StayedDown;
use anyhow::{Context, Result};
use protocol::plan::OnDeath;
use protocol::status::{self, ThreadState};
use protocol::wire::MAX_EPOCH;
use std::time::Duration;

impl Incidents<'_> {
    /// The pause after which a strategy is started again; `None`: it stays down, and it is noted
    /// why. Whoever misbehaved does, and who hung before its first duty cycle. Of one that said
    /// that it was done nothing is noted: there is nothing left to do.
    pub(super) fn decide(&mut self, strategy: u16, incident: usize) -> Option<Duration> {
        let case = &mut self.cases[usize::from(strategy)];
        let state = status::state(&self.segments.threads[case.thread]);
        if self.segments.plan.on_death != OnDeath::Restart || state == ThreadState::Done {
            return None;
        }
        let died = &mut self.list[incident];
        let cause = died.cause.clone();
        let stayed_down = if died.quarantined.is_some() {
            StayedDown { restarts: 0, why: cause }
        } else if case.has_hung_at_start {
            StayedDown { restarts: 0, why: format!("it was started again and {cause}") }
        } else if case.epoch >= MAX_EPOCH {
            StayedDown {
                restarts: MAX_EPOCH.into(),
                why: format!("a run has no room for more; the last: {cause}"),
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

    /// Starts a strategy in its next epoch. A start that fails is a death of its own.
    pub(super) fn restart(
        &mut self,
        strategy: u16,
        incident: usize,
        children: &mut impl Children,
        liveness: &mut Liveness,
        now: u64,
    ) -> Result<()> {
        let case = &mut self.cases[usize::from(strategy)];
        case.epoch += 1;
        case.stage = IncidentStage::Starting(incident);
        let (epoch, process, thread) = (case.epoch, case.process, case.thread);
        self.segments.renew(strategy);
        liveness.restarted(thread, now);
        self.segments.control.revive(strategy, epoch);
        let Err(error) = children.restart(self.segments, process) else { return Ok(()) };
        // Nobody runs in this epoch: what is known of the last one's process is all that there is
        // to know.
        let Some(death) = children.death(process).context("cannot watch a process")? else {
            return Err(error);
        };
        let next = self.begin(strategy, 0, format!("cannot be started: {error:#}"), now);
        self.fence(strategy, next, &death, now);
        Ok(())
    }
}
