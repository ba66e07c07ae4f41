//! The hot standby of the engine.

use super::{PublishedCounts, StandbyBody};
use crate::build::{new_core, send_queues};
use crate::engine::{map_segments, orchestrator_log};
use crate::recovered::{FollowedJournal, StandbyState, watermarks_in_log};
use anyhow::Result;
use journal::Reader;
use orchestrator::{Core, OutputWatermarks, Replica};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::log_scan::LogTotals;
use protocol::plan::Plan;
use protocol::sender::SendQueue;
use protocol::stamps::Stamps;
use protocol::trading::{return_path, session_out};
use shm::attached::Attached;
use shm::memory::ReadOnlyWords;
use system::clock::Timebase;

pub(super) struct EngineStandby {
    core: Option<Core>,
    stamps: Stamps,
    sessions: PublishedCounts,
    returns: PublishedCounts,
    log: ReadOnlyWords,
    totals: LogTotals,
    queues: Vec<SendQueue>,
}

impl EngineStandby {
    pub(super) fn new(plan: &Plan, attached: &mut Attached<'_>) -> Result<Self> {
        map_segments(plan, attached)?;
        Ok(Self {
            core: Some(new_core(plan)?),
            stamps: plan.stamps,
            sessions: PublishedCounts::new(
                GatewayIndex::first(plan.trading().gateways()).map(session_out),
                attached,
            )?,
            returns: PublishedCounts::new(
                StrategyIndex::first(plan.trading().strategies).map(return_path),
                attached,
            )?,
            log: orchestrator_log(plan, attached)?,
            totals: LogTotals::default(),
            queues: send_queues(plan),
        })
    }
}

impl StandbyBody for EngineStandby {
    type State = Replica;

    fn initial_state(&mut self, _: Timebase) -> Option<Replica> {
        Some(Replica::new(self.core.take()?, self.stamps))
    }

    fn has_unconfirmed(state: &Replica) -> bool {
        state.has_unconfirmed()
    }

    fn confirm(&self, state: &mut Replica) {
        let (sent, returned) = (self.sessions.published().into(), self.returns.published().into());
        state.confirm(&OutputWatermarks { sent, returned, ..watermarks_in_log(&self.totals) });
    }

    fn poll_log(&mut self) {
        self.totals.scan(&self.log);
    }

    fn hand_over(self, replica: Option<(Replica, Reader)>) -> StandbyState {
        StandbyState::Engine(Box::new(FollowedJournal { replica, totals: self.totals, queues: self.queues }))
    }
}
