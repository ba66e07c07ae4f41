//! The start barrier: threads set their core, priority and idle strategy, and wait for the
//! launcher.

use crate::agent::Cycle;
use crate::control::{Control, RunState};
use crate::plan::{Idle, Plan, ThreadPlan};
use crate::segments;
use crate::stamps::StampLog;
use crate::status::{StatusField, StatusWriter, ThreadState};
use shm::attached::Attached;
use shm::idle::{Backoff, IdleStrategy, Park, Spin, Yield};
use shm::memory::{AtomicWords, RegionError};
use std::io;
use std::thread;
use std::time::Duration;
use system::clock::{Clock, Timebase};
use system::pin::{self, PinError};
use system::{priority, process};
use thiserror::Error;

/// Time for which a thread sleeps once it is on its core.
const AFTER_MOVE: Duration = Duration::from_micros(50);

/// Creates the idle strategy that the plan sets for a thread: spin, yield, back off, or park on the
/// thread's doorbell.
pub fn idle_strategy(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
) -> Result<IdleStrategy, RegionError> {
    Ok(match thread.idle {
        Idle::Spin => IdleStrategy::Spin(Spin::default()),
        Idle::Yield => IdleStrategy::Yield(Yield),
        Idle::Backoff => IdleStrategy::Backoff(Backoff::default()),
        Idle::Park => IdleStrategy::Park(Park::new(segments::listener(attached, plan, thread)?)),
    })
}

/// A reason why a thread cannot reach the start barrier of a run.
#[derive(Debug, Error)]
pub enum ArriveError {
    /// The thread cannot be pinned to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The thread cannot get its priority.
    #[error("it may not have priority fifo:{0}: {1}")]
    Priority(u8, #[source] io::Error),
}

/// A thread that waits at the start barrier, pinned and with its identity published.
pub struct ArrivedThread {
    status: StatusWriter,
    log: StampLog,
}

impl ArrivedThread {
    /// Pins the calling thread and sets its priority as planned, and publishes its roles, process
    /// id and thread id.
    pub fn new(
        plan: &Plan,
        thread: &ThreadPlan,
        segment: &AtomicWords,
        log: StampLog,
    ) -> Result<Self, ArriveError> {
        let status = StatusWriter::new(segment);
        process::set_timer_slack(plan.timer_slack_ns());
        if let Some(core) = thread.core {
            pin::pin_beyond_mask(core)?;
            // A thread that was moved to a core may wait there for a tick of the scheduler. One
            // that wakes up there rarely does.
            thread::sleep(AFTER_MOVE);
            status.set(StatusField::CorePlusOne, u64::from(core) + 1);
        }
        if let Some(fifo) = plan.priority {
            priority::set_fifo(fifo).map_err(|error| ArriveError::Priority(fifo, error))?;
        }
        status.announce(&thread.roles);
        status.set(StatusField::Pid, std::process::id().into());
        status.set(StatusField::Tid, process::thread_id().into());
        Ok(Self { status, log })
    }

    /// Publishes that the thread is ready, and waits for the start barrier; returns `None` if the
    /// run is stopped first.
    pub fn wait<C: Clock>(
        self,
        clock: C,
        plan: &Plan,
        control: &Control,
    ) -> Option<(Cycle<C>, StatusWriter)> {
        let Self { status, log } = self;
        status.set_state(ThreadState::Ready);
        let state = control.wait_for_go();
        if state == RunState::Stop {
            status.set_state(ThreadState::Done);
            return None;
        }
        let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
        Some((Cycle { clock, now: 0, time, draining: state == RunState::Drain, log }, status))
    }
}
