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
use shm::idle::{Backoff, Chosen, Idle as IdleStrategy, Park, Spin, Yield};
use shm::memory::Words;
use shm::os::sandbox::{Profile, SandboxError};
use shm::os::{pin, priority, process};
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
    /// Prepares the thread, waits at the barrier and runs the agent. The loop is compiled for the agent with the time stamp counter
    /// and with [`Spin`], which is what figures are taken with; for the counter with any other idle strategy; and for the system's
    /// clock. Each takes the compiler as long as the whole agent.
    pub(super) fn run<A>(mut self, agent: &mut A) -> Result<()>
    where
        A: Agent<Tsc> + Agent<Monotonic>,
    {
        let idle = match (self.thread.idle, self.bell.take()) {
            (Idle::Spin, _) => Chosen::Spin(Spin::default()),
            (Idle::Yield, _) => Chosen::Yield(Yield),
            (Idle::Backoff, _) => Chosen::Backoff(Backoff::default()),
            (Idle::Park, Some(bell)) => Chosen::Park(Park::new(bell)),
            (Idle::Park, None) => bail!("thread {} parks and has no bell", self.thread.name),
        };
        match (self.plan.clock, idle) {
            (ClockSource::Tsc, Chosen::Spin(spin)) => self.run_on(agent, Tsc, spin),
            (ClockSource::Tsc, idle) => self.run_on(agent, Tsc, idle),
            (ClockSource::Monotonic, idle) => self.run_on(agent, Monotonic, idle),
        }
    }

    fn run_on<C: Clock>(
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
            pin::move_to(core).with_context(|| format!("thread {}", self.thread.name))?;
            status.set(Field::CorePlusOne, u64::from(core) + 1);
        }
        if let Some(fifo) = self.plan.priority {
            let refused = || format!("thread {}: it may not have priority fifo:{fifo}", self.thread.name);
            priority::set_fifo(fifo).with_context(refused)?;
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
