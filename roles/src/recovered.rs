//! Recovered state of an engine, from which the threads of its process are built.

use anyhow::{Context as _, Result};
use gateway::GatewayResumePoint;
use journal::JournalFollower;
use orchestrator::{OutputWatermarks, Recovered, Replica, Successor};
use protocol::log_scan::LogTotals;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::segments;
use protocol::stamps::{Point, StampLog};
use shm::attached::Attached;
use std::sync::{Arc, Mutex, PoisonError};

/// A slot for the recovered state of an engine, until its threads are built.
pub(super) type Recovery = Mutex<Option<RecoveredEngine>>;

/// The recovered state of an engine, before it is attached to its rings.
pub(super) struct RecoveredEngine {
    pub successor: Option<Successor>,
    pub recovered: Recovered,
}

/// Returns the slot in this process for the recovered state of its engine.
pub(super) fn recovery(attached: &mut Attached<'_>) -> Arc<Recovery> {
    attached.shared("engine", Recovery::default)
}

/// Returns the position at which a gateway resumes the session of a crashed one.
pub(super) fn gateway_resume_point(attached: &mut Attached<'_>, index: u16) -> Option<GatewayResumePoint> {
    gateway_slot(attached, index).lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Stores the position at which a gateway resumes.
pub(super) fn store_gateway(attached: &mut Attached<'_>, index: u16, resume_point: GatewayResumePoint) {
    *gateway_slot(attached, index).lock().unwrap_or_else(PoisonError::into_inner) = Some(resume_point);
}

fn gateway_slot(attached: &mut Attached<'_>, index: u16) -> Arc<Mutex<Option<GatewayResumePoint>>> {
    attached.shared(&format!("gateway-{index}"), Mutex::default)
}

/// Returns how many outputs the orchestrator's log proves, for comparison with the journal.
pub(super) fn watermarks_in_log(totals: &LogTotals) -> OutputWatermarks {
    let mut watermarks = OutputWatermarks::default();
    Point::ALL.into_iter().for_each(|point| watermarks.count_records(point, totals.count(point)));
    watermarks
}

/// The state of the engine's hot standby: the replica that follows its journal, and the totals of
/// its log.
pub(super) type StandbyState = (Option<JournalFollower<Replica>>, LogTotals);

fn standby_slot(attached: &mut Attached<'_>) -> Arc<Mutex<Option<StandbyState>>> {
    attached.shared("kept-engine", Mutex::default)
}

/// Stores the state of a hot standby, from which the engine is then recovered.
pub(super) fn store_standby(attached: &mut Attached<'_>, what: StandbyState) {
    *standby_slot(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// Takes the stored state of the engine's hot standby, if there is one.
pub(super) fn take_standby(attached: &mut Attached<'_>) -> Option<StandbyState> {
    standby_slot(attached).lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Opens a thread's stamp log for appending.
pub(super) fn open_log(plan: &Plan, thread: &ThreadPlan, attached: &mut Attached<'_>) -> Result<StampLog> {
    let words = segments::thread(attached, &thread.name)?;
    Ok(segments::stamp_log(plan, thread, &words))
}

/// Returns the thread of the plan that runs a role.
pub(super) fn thread_of(plan: &Plan, role: Role) -> Result<&ThreadPlan> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread])
}
