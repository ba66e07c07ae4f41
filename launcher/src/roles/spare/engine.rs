//! What the spare of the engine has.

use super::{Body, Sent};
use crate::roles::build::{ends, orchestrator_parts};
use crate::roles::engine::{map, past_of_orchestrator};
use crate::roles::estate;
use anyhow::Result;
use journal::Follower;
use orchestrator::{Estate, Mute, Orchestrator, Shadow};
use protocol::plan::Plan;
use protocol::stamps::Stamps;
use protocol::tally::{Past, Tally};
use protocol::trading::{return_path, session_out};
use protocol::wire::MAX_STRATEGIES;
use shm::attached::Attached;
use shm::clock::Timebase;

/// The engine's spare.
pub(super) struct Spare {
    orchestrator: Option<Orchestrator<Mute>>,
    stamps: Stamps,
    sessions: Sent,
    returns: Sent,
    log: Past,
    tally: Tally,
}

impl Spare {
    pub(super) fn new(plan: &Plan, attached: &mut Attached<'_>) -> Result<Self> {
        map(plan, attached)?;
        let ends = ends(plan, false, attached)?;
        Ok(Self {
            orchestrator: Some(orchestrator_parts(plan, ends, attached)?),
            stamps: plan.stamps,
            sessions: Sent::new((0..plan.trading().gateways()).map(session_out), attached)?,
            returns: Sent::new((0..plan.trading().strategies).map(return_path), attached)?,
            log: past_of_orchestrator(plan, attached)?,
            tally: Tally::default(),
        })
    }
}

impl Body for Spare {
    type State = Shadow;

    fn begin(&mut self, time: Timebase) -> Option<Shadow> {
        Some(Shadow::new(self.orchestrator.take()?, time, self.stamps).0)
    }

    fn keeps_something(state: &Shadow) -> bool {
        state.keeps_something()
    }

    fn has_gone(&self, state: &mut Shadow) {
        let (sent, returned) = (self.sessions.published(), self.returns.published());
        state.has_gone(&Estate { sent, returned, ..estate::of_log(&self.log, &self.tally) });
    }

    fn has_all_gone(state: &mut Shadow) {
        let all = vec![u64::MAX; MAX_STRATEGIES];
        let estate = Estate { sent: all.clone(), returned: all, ..Estate::default() };
        state.has_gone(&Estate { returns_stamped: u64::MAX, others_logged: u64::MAX, ..estate });
    }

    fn look(&mut self) {
        self.log.look(&mut self.tally);
    }

    fn keep(self, follower: Option<Follower<Shadow>>, attached: &mut Attached<'_>) {
        estate::keep(attached, (follower, self.tally));
    }
}
