//! A thread of a role: pinned, confined, waiting at the barrier, then running its agent. The second half of the way from names to
//! monomorphised loops: clock and idle strategy.

use anyhow::{Context, Result, bail};
use protocol::agent::{self, Agent, Cycle};
use protocol::control::{Control, RunState};
use protocol::plan::{ClockSource, Idle, Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::{Field, StatusWriter, ThreadState};
use protocol::topology;
use shm::bell::Bell;
use shm::clock::{Clock, Monotonic, Timebase, Tsc};
use shm::idle::{Backoff, Idle as IdleStrategy, Park, Spin, Yield};
use shm::memory::Words;
use shm::os::sandbox::{Profile, SandboxError};
use shm::os::{pin, process};
use shm::sync::{AtomicU64, Ordering};

/// What a thread needs beside its agent.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub segment: Words,
    pub bell: Option<Bell>,
    pub control: &'a Control,
    /// What the thread's process gives up; `None`: nothing.
    pub sandbox: Option<&'a Confinement>,
}

/// What a process gives up once all its threads are prepared.
pub struct Confinement {
    profile: &'static Profile,
    /// Threads that still need system calls that will be refused.
    unprepared: AtomicU64,
}

impl Confinement {
    /// Of a process with so many threads.
    pub fn new(profile: &'static Profile, threads: usize) -> Self {
        Self { profile, unprepared: AtomicU64::new(threads as u64) }
    }

    /// The calling thread is prepared. The last one closes the door behind all of them, before the barrier opens, which waits for
    /// it: nothing of the roles' own has run yet.
    fn prepared(&self, plan: &Plan) -> Result<(), SandboxError> {
        // AcqRel: the last one comes after all others.
        if self.unprepared.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        let through_kernel = topology::segments(plan).iter().any(|segment| segment.spec.place.is_kernel());
        self.profile.restrict_calls(through_kernel)
    }
}

impl Runner<'_> {
    /// Prepares the thread, waits at the barrier and runs the agent: the second half of the table, from the names of
    /// clock and idle strategy to monomorphised loops.
    pub(super) fn run<A>(self, agent: &mut A) -> Result<()>
    where
        A: Agent<Tsc> + Agent<Monotonic>,
    {
        match self.plan.clock {
            ClockSource::Tsc => self.run_on(agent, Tsc),
            ClockSource::Monotonic => self.run_on(agent, Monotonic),
        }
    }

    fn run_on<C: Clock>(mut self, agent: &mut impl Agent<C>, clock: C) -> Result<()> {
        match (self.thread.idle, self.bell.take()) {
            (Idle::Spin, _) => self.run_idle(agent, clock, Spin),
            (Idle::Yield, _) => self.run_idle(agent, clock, Yield),
            (Idle::Backoff, _) => self.run_idle(agent, clock, Backoff::default()),
            (Idle::Park, Some(bell)) => self.run_idle(agent, clock, Park::new(bell)),
            (Idle::Park, None) => bail!("thread {} parks and has no bell", self.thread.name),
        }
    }

    fn run_idle<C: Clock>(
        self,
        agent: &mut impl Agent<C>,
        clock: C,
        mut idle: impl IdleStrategy,
    ) -> Result<()> {
        let status = StatusWriter::new(&self.segment);
        if self.plan.processes.len() < self.plan.threads.len() {
            // Several threads in this process: `top -H` shows which is which.
            process::set_thread_name(&self.thread.name);
        }
        process::precise_timers();
        if let Some(core) = self.thread.core {
            pin::pin_to(core).with_context(|| format!("thread {}", self.thread.name))?;
            status.set(Field::CorePlusOne, u64::from(core) + 1);
        }
        status.announce(&self.thread.roles);
        status.set(Field::Pid, std::process::id().into());
        status.set(Field::Tid, process::thread_id().into());
        let log = StampLog::new(&self.segment).taking(self.plan.stamps);
        if let Some(confinement) = self.sandbox {
            confinement.prepared(self.plan)?;
        }
        status.set_state(ThreadState::Ready);
        let state = self.control.wait_for_go();
        if state == RunState::Stop {
            status.set_state(ThreadState::Done);
            return Ok(());
        }
        let time = Timebase { start_ticks: self.control.start_ticks(), ns_per_tick: self.plan.ns_per_tick };
        let mut cycle = Cycle { clock, now: 0, time, draining: state == RunState::Drain, log };
        agent::run(agent, &mut idle, &mut cycle, &status, self.control);
        Ok(())
    }
}
