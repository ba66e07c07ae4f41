//! A thread of a role: pinned, confined, waiting at the barrier, then running its agent. The second
//! half of the way from names to monomorphised loops: clock and idle strategy.

use anyhow::{Context, Result};
use protocol::agent::{self, Agent, Cycle};
use protocol::barrier::ArrivedThread;
use protocol::control::Control;
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use protocol::topology;
use shm::idle::Idle;
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};
use system::clock::Clock;
use system::process;
use system::sandbox::{SandboxError, SandboxProfile};

/// What a thread needs beside its agent.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub segment: AtomicWords,
    pub log: StampLog,
    pub control: &'a Control,
    /// What the thread's process gives up; `None`: nothing.
    pub sandbox: Option<&'a Confinement>,
}

/// What a process gives up once all its threads are prepared.
pub struct Confinement {
    profile: &'static SandboxProfile,
    /// Threads that still need system calls that will be refused.
    unprepared: AtomicU64,
}

impl Confinement {
    /// Of a process with so many threads.
    pub fn new(profile: &'static SandboxProfile, threads: usize) -> Self {
        Self { profile, unprepared: AtomicU64::new(threads as u64) }
    }

    /// The calling thread is prepared. The last one closes the door behind all of them, before the
    /// barrier opens, which waits for it: nothing of the roles' own has run yet.
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
    /// Prepares the thread, waits at the barrier and runs the agent: a loop of its own for each
    /// agent, clock and idle strategy.
    pub(super) fn run<C: Clock>(
        self,
        agent: &mut impl Agent<C>,
        clock: C,
        mut idle: impl Idle,
    ) -> Result<()> {
        let control = self.control;
        if let Some((mut cycle, status)) = self.arrive(clock)? {
            agent::run(agent, &mut idle, &mut cycle, &status, control);
        }
        Ok(())
    }

    /// Prepares the thread and waits at the barrier; `None`: the run was stopped before it began.
    /// The same for all agents: compiled once for each clock.
    #[inline(never)]
    fn arrive<C: Clock>(self, clock: C) -> Result<Option<(Cycle<C>, StatusWriter)>> {
        let Self { plan, thread, segment, log, control, sandbox } = self;
        if plan.processes.len() < plan.threads.len() {
            // Several threads in this process: `top -H` shows which is which.
            process::set_thread_name(&thread.name);
        }
        let arrived = ArrivedThread::new(plan, thread, &segment, log)
            .with_context(|| format!("thread {}", thread.name))?;
        if let Some(confinement) = sandbox {
            confinement.prepared(plan)?;
        }
        Ok(arrived.wait(clock, plan, control))
    }
}
