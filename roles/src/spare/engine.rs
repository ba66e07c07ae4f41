//! The hot standby of the engine.

use super::{Body, Sent};
use crate::build::core_of;
use crate::engine::{map, past_of_orchestrator};
use crate::estate;
use anyhow::Result;
use journal::JournalFollower;
use orchestrator::{Core, OutputWatermarks, Replica};
use protocol::log_scan::{LogCursor, PriorLog};
use protocol::plan::Plan;
use protocol::stamps::Stamps;
use protocol::trading::{return_path, session_out};
use protocol::wire::MAX_STRATEGIES;
use shm::attached::Attached;
use system::clock::Timebase;

/// The engine's spare.
pub(super) struct Spare {
    core: Option<Core>,
    stamps: Stamps,
    sessions: Sent,
    returns: Sent,
    log: PriorLog,
    tally: LogCursor,
}

impl Spare {
    pub(super) fn new(plan: &Plan, attached: &mut Attached<'_>) -> Result<Self> {
        map(plan, attached)?;
        Ok(Self {
            core: Some(core_of(plan)?),
            stamps: plan.stamps,
            sessions: Sent::new((0..plan.trading().gateways()).map(session_out), attached)?,
            returns: Sent::new((0..plan.trading().strategies).map(return_path), attached)?,
            log: past_of_orchestrator(plan, attached)?,
            tally: LogCursor::default(),
        })
    }
}

impl Body for Spare {
    type State = Replica;

    fn begin(&mut self, _: Timebase) -> Option<Replica> {
        Some(Replica::new(self.core.take()?, self.stamps))
    }

    fn keeps_something(state: &Replica) -> bool {
        state.keeps_something()
    }

    fn has_gone(&self, state: &mut Replica) {
        let (sent, returned) = (self.sessions.published(), self.returns.published());
        state.has_gone(&OutputWatermarks { sent, returned, ..estate::of_log(&self.log, &self.tally) });
    }

    fn has_all_gone(state: &mut Replica) {
        let all = vec![u64::MAX; MAX_STRATEGIES];
        let estate = OutputWatermarks { sent: all.clone(), returned: all, ..OutputWatermarks::default() };
        state.has_gone(&OutputWatermarks { returns_stamped: u64::MAX, others_logged: u64::MAX, ..estate });
    }

    fn look(&mut self) {
        self.log.scan(&mut self.tally);
    }

    fn keep(self, follower: Option<JournalFollower<Replica>>, attached: &mut Attached<'_>) {
        estate::keep(attached, (follower, self.tally));
    }
}
