//! A thread of a run on its way to its first duty cycle: how it will idle, where it runs, and the
//! barrier.

use crate::agent::Cycle;
use crate::control::{Control, RunState};
use crate::plan::{Idle, Plan, ThreadPlan};
use crate::segments;
use crate::stamps::StampLog;
use crate::status::{Field, StatusWriter, ThreadState};
use shm::attached::Attached;
use shm::idle::{Backoff, IdleStrategy, Park, Spin, Yield};
use shm::memory::{AtomicWords, RegionError};
use std::io;
use system::clock::{Clock, Timebase};
use system::pin::{self, PinError};
use system::{priority, process};
use thiserror::Error;

/// What a thread of the plan does when there is nothing to do; one that parks does so on its own
/// bell.
///
/// # Errors
/// A bell that is missing or not what it should be.
///
/// # Panics
/// If the plan has no such thread.
pub fn idle(
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

/// Why a thread does not come to the barrier.
#[derive(Debug, Error)]
pub enum ArriveError {
    /// It cannot have its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// It cannot have its priority.
    #[error("it may not have priority fifo:{0}: {1}")]
    Priority(u8, #[source] io::Error),
}

/// A thread that has taken its core and said who it is.
pub struct Arrived {
    status: StatusWriter,
    log: StampLog,
}

impl Arrived {
    /// Pins the calling thread to its core of the plan, if it has one, gives it the run's priority,
    /// if there is one, and says in its segment who it is. It will write that log
    /// ([`segments::stamp_log`]).
    ///
    /// # Errors
    /// A core or a priority that it cannot have.
    pub fn new(
        plan: &Plan,
        thread: &ThreadPlan,
        segment: &AtomicWords,
        log: StampLog,
    ) -> Result<Self, ArriveError> {
        let status = StatusWriter::new(segment);
        process::precise_timers();
        if let Some(core) = thread.core {
            pin::move_to(core)?;
            status.set(Field::CorePlusOne, u64::from(core) + 1);
        }
        if let Some(fifo) = plan.priority {
            priority::set_fifo(fifo).map_err(|error| ArriveError::Priority(fifo, error))?;
        }
        status.announce(&thread.roles);
        status.set(Field::Pid, std::process::id().into());
        status.set(Field::Tid, process::thread_id().into());
        Ok(Self { status, log })
    }

    /// Says that the thread is ready and sleeps until the barrier opens: then it may begin. `None`:
    /// the run was stopped before, and the thread is done.
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
