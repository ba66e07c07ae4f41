//! A thread of a role: pinned, confined, waiting at the barrier, then running its agent. The second
//! half of the way from names to monomorphised loops: clock and idle strategy.

use anyhow::{Context, Result};
use protocol::agent::{self, Agent};
use protocol::barrier::Arrived;
use protocol::control::Control;
#[cfg(not(debug_assertions))]
use protocol::plan::ClockSource;
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::topology;
use shm::idle::{self, Idle};
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};
use system::clock::{self, Clock, Tsc};
use system::process;
use system::sandbox::{Profile, SandboxError};

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
    profile: &'static Profile,
    /// Threads that still need system calls that will be refused.
    unprepared: AtomicU64,
}

impl Confinement {
    /// Of a process with so many threads.
    pub fn new(profile: &'static Profile, threads: usize) -> Self {
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
    /// Prepares the thread, waits at the barrier and runs the agent. The loop is compiled for the
    /// agent with the time stamp counter and with [`idle::Chosen::Spin`], which is what figures are
    /// taken with; for the counter with any other idle strategy; and for any other clock. Each
    /// takes the compiler as long as the whole agent, so without optimisation there is only the
    /// last one.
    pub(super) fn run<A: Agent<Tsc> + Agent<clock::Chosen>>(
        self,
        agent: &mut A,
        idle: idle::IdleStrategy,
    ) -> Result<()> {
        #[cfg(not(debug_assertions))]
        if self.plan.clock == ClockSource::Tsc {
            return match idle {
                idle::IdleStrategy::Spin(spin) => self.run_on(agent, Tsc, spin),
                idle => self.run_on(agent, Tsc, idle),
            };
        }
        self.run_any(agent, idle)
    }

    /// The same in a loop for every clock and idle strategy.
    pub(super) fn run_any(
        self,
        agent: &mut impl Agent<clock::Chosen>,
        idle: idle::IdleStrategy,
    ) -> Result<()> {
        let clock = clock::Chosen::from(self.plan.clock);
        self.run_on(agent, clock, idle)
    }

    fn run_on<C: Clock>(self, agent: &mut impl Agent<C>, clock: C, mut idle: impl Idle) -> Result<()> {
        let Self { plan, thread, segment, log, control, sandbox } = self;
        if plan.processes.len() < plan.threads.len() {
            // Several threads in this process: `top -H` shows which is which.
            process::set_thread_name(&thread.name);
        }
        let arrived =
            Arrived::new(plan, thread, &segment, log).with_context(|| format!("thread {}", thread.name))?;
        if let Some(confinement) = sandbox {
            confinement.prepared(plan)?;
        }
        if let Some((mut cycle, status)) = arrived.wait(clock, plan, control) {
            agent::run(agent, &mut idle, &mut cycle, &status, control);
        }
        Ok(())
    }
}
