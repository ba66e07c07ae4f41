//! The recovered state of a process's roles, which are built from it, and what a hot standby
//! contributes to it.

use super::run_tape::RunTape;
use anyhow::{Context as _, Result};
use gateway::GatewayResumePoint;
use journal::Reader;
use orchestrator::{OutputWatermarks, Recovered, Replica, Successor};
use protocol::index::{GatewayIndex, VenueIndex};
use protocol::log_scan::LogTotals;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::segments;
use protocol::sender::SendQueue;
use protocol::stamps::{Point, StampLog};
use shm::attached::Attached;
use std::collections::BTreeMap;
use venue::{ExchangeAgent, ExchangeReplica};

/// The recovered states of a process's roles: empty for roles without a journal or a predecessor.
/// Each role takes its part when it is built.
#[derive(Default)]
pub struct RecoveredRoles {
    /// The recovered engine, if it has a journal.
    pub engine: Option<RecoveredEngine>,
    /// The positions at which gateways resume the sessions of crashed ones, by gateway.
    pub gateways: BTreeMap<GatewayIndex, GatewayResumePoint>,
    /// The exchanges with a journal, by venue.
    pub(super) exchanges: BTreeMap<VenueIndex, ExchangeAgent<RunTape>>,
}

/// A recovered engine, before it is attached to its queues of orders and reports.
pub struct RecoveredEngine {
    pub(super) successor: Successor,
    /// The results of the engine's recovery besides the engine itself.
    pub found: Recovered,
    /// Time of the recovery, in ticks.
    pub(super) now: u64,
}

/// The state that a hot standby passes to the roles of its process when it is promoted.
pub enum StandbyState {
    /// State that an engine's standby has followed.
    Engine(Box<FollowedJournal<Replica>>),
    /// State that an exchange's standby has followed.
    Exchange(Box<FollowedJournal<ExchangeReplica>>),
}

/// A journal with the state that a hot standby has computed from it so far.
pub struct FollowedJournal<S> {
    /// The replica and the reader of the next records; `None`: nothing was followed.
    pub replica: Option<(S, Reader)>,
    /// The totals of the stamp log.
    pub(super) totals: LogTotals,
    /// The memory of the sending ends: most of what a successor has to touch.
    pub(super) queues: Vec<SendQueue>,
}

impl<S> FollowedJournal<S> {
    /// Returns what a process has that was no standby.
    pub(super) const fn none(totals: LogTotals, queues: Vec<SendQueue>) -> Self {
        Self { replica: None, totals, queues }
    }
}

/// Returns how many outputs the orchestrator's log proves, for comparison with the journal.
pub(super) fn watermarks_in_log(totals: &LogTotals) -> OutputWatermarks {
    let mut watermarks = OutputWatermarks::default();
    Point::ALL.into_iter().for_each(|point| watermarks.count_records(point, totals.count(point)));
    watermarks
}

/// Opens a thread's stamp log for appending.
pub(super) fn open_log(plan: &Plan, thread: &ThreadPlan, attached: &mut Attached<'_>) -> Result<StampLog> {
    let words = segments::attach_thread(attached, &thread.name)?;
    Ok(segments::stamp_log(plan, thread, &words))
}

pub(super) fn thread_of(plan: &Plan, role: Role) -> Result<&ThreadPlan> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread])
}
