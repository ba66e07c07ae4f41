//! Slots of a process in which a recovery leaves state for the roles that are built afterwards.

use anyhow::{Context as _, Result};
use gateway::GatewayResumePoint;
use journal::JournalFollower;
use orchestrator::{OutputWatermarks, Recovered, Successor};
use protocol::log_scan::LogTotals;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::segments;
use protocol::stamps::{Point, StampLog};
use shm::attached::Attached;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A slot of this process, empty until a recovery stores a value in it.
pub(super) struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T: Send + 'static> Slot<T> {
    fn new(attached: &mut Attached<'_>, name: &str) -> Self {
        Self(attached.shared(name, Mutex::default))
    }

    fn value(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn store(&self, value: T) {
        *self.value() = Some(value);
    }

    pub(super) fn take(&self) -> Option<T> {
        self.value().take()
    }
}

/// The slot of the recovered engine, before it is attached to its rings.
pub(super) fn engine(attached: &mut Attached<'_>) -> Slot<(Successor, Recovered)> {
    Slot::new(attached, "engine")
}

/// The slot of the position at which a gateway resumes the session of a crashed one.
pub(super) fn gateway(attached: &mut Attached<'_>, index: u16) -> Slot<GatewayResumePoint> {
    Slot::new(attached, &format!("gateway-{index}"))
}

/// Returns the position at which a gateway resumes, if it has a predecessor.
pub(super) fn gateway_resume_point(attached: &mut Attached<'_>, index: u16) -> Option<GatewayResumePoint> {
    gateway(attached, index).value().clone()
}

/// The state of a hot standby: the replica that follows the journal, and the totals of the log.
pub(super) type StandbyState<S> = (Option<JournalFollower<S>>, LogTotals);

/// The slot of the state of a role's hot standby.
pub(super) fn standby<S: Send + 'static>(attached: &mut Attached<'_>, role: Role) -> Slot<StandbyState<S>> {
    Slot::new(attached, &format!("kept-{role}"))
}

/// Returns how many outputs the orchestrator's log proves, for comparison with the journal.
pub(super) fn watermarks_in_log(totals: &LogTotals) -> OutputWatermarks {
    let mut watermarks = OutputWatermarks::default();
    Point::ALL.into_iter().for_each(|point| watermarks.count_records(point, totals.count(point)));
    watermarks
}

/// Opens a thread's stamp log for appending.
pub(super) fn open_log(plan: &Plan, thread: &ThreadPlan, attached: &mut Attached<'_>) -> Result<StampLog> {
    let words = segments::thread(attached, &thread.name)?;
    Ok(segments::stamp_log(plan, thread, &words))
}

pub(super) fn thread_of(plan: &Plan, role: Role) -> Result<&ThreadPlan> {
    let thread = plan.thread_of(role).with_context(|| format!("{role} has no thread"))?;
    Ok(&plan.threads[thread])
}
