//! Recovered state of an engine, for the threads of its process.

use anyhow::{Context as _, Result};
use gateway::GatewayResumePoint;
use journal::JournalFollower;
use orchestrator::{OutputWatermarks, Recovered, Replica, Successor};
use protocol::log_scan::{LogCursor, PriorLog};
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::segments;
use protocol::stamps::{Point, StampLog};
use shm::attached::Attached;
use std::sync::{Arc, Mutex, PoisonError};

/// What was recovered, for the threads of the engine's process to be built from.
pub(super) type Recovery = Mutex<Option<Engine>>;

/// The engine before it is attached.
pub(super) struct Engine {
    pub successor: Option<Successor>,
    pub recovered: Recovered,
}

/// What was recovered; `None` where nothing was.
pub(super) fn recovery(attached: &mut Attached<'_>) -> Arc<Recovery> {
    attached.shared("engine", Recovery::default)
}

/// What was recovered of a gateway, if it takes the place of a dead one.
pub(super) fn gateway(attached: &mut Attached<'_>, index: u16) -> Option<GatewayResumePoint> {
    gateway_place(attached, index).lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The gateway, once it is built, goes on from there.
pub(super) fn keep_gateway(attached: &mut Attached<'_>, index: u16, estate: GatewayResumePoint) {
    *gateway_place(attached, index).lock().unwrap_or_else(PoisonError::into_inner) = Some(estate);
}

fn gateway_place(attached: &mut Attached<'_>, index: u16) -> Arc<Mutex<Option<GatewayResumePoint>>> {
    attached.shared(&format!("gateway-{index}"), Mutex::default)
}

/// What of the orchestrator is in its log, as it was counted.
pub(super) fn of_log(log: &PriorLog, tally: &LogCursor) -> OutputWatermarks {
    let mut estate = OutputWatermarks { log_is_partial: log.is_partial(), ..OutputWatermarks::default() };
    Point::ALL.into_iter().for_each(|point| estate.count(point, tally.totals.count(point)));
    estate
}

/// The state of a follower, if it is of use, and what it has counted in the log.
pub(super) type Kept = (Option<JournalFollower<Replica>>, LogCursor);

fn place(attached: &mut Attached<'_>) -> Arc<Mutex<Option<Kept>>> {
    attached.shared("kept-engine", Mutex::default)
}

/// The engine, once it is recovered, goes on from there.
pub(super) fn keep(attached: &mut Attached<'_>, what: Kept) {
    *place(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// What was kept for it.
pub(super) fn take(attached: &mut Attached<'_>) -> Option<Kept> {
    place(attached).lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A thread's log, to go on with.
pub(super) fn log_of(plan: &Plan, thread: &ThreadPlan, attached: &mut Attached<'_>) -> Result<StampLog> {
    let words = segments::thread(attached, &thread.name)?;
    Ok(segments::stamp_log(attached, plan, thread, &words)?)
}

/// The thread of a role.
pub(super) fn thread_of(plan: &Plan, role: Role) -> Result<&ThreadPlan> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread])
}
