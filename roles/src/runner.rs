//! Runs the thread of a role: pins and confines it, waits at the barrier, then runs its agent in a
//! loop monomorphised for clock and idle strategy.

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

/// The environment in which a thread runs its agent.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub segment: AtomicWords,
    pub log: StampLog,
    pub control: &'a Control,
    /// The sandbox of the thread's process; `None`: not confined.
    pub sandbox: Option<&'a Confinement>,
}

/// The confinement of a process, which takes effect once all its threads are prepared.
pub struct Confinement {
    profile: &'static Profile,
    /// Threads that still need system calls that will be refused.
    unprepared: AtomicU64,
}

impl Confinement {
    /// Creates the confinement of a process with `threads` threads.
    pub fn new(profile: &'static Profile, threads: usize) -> Self {
        Self { profile, unprepared: AtomicU64::new(threads as u64) }
    }

    /// Marks the calling thread as prepared. The last one restricts the system calls of the
    /// process, before the barrier opens: no agent has run yet.
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
        idle: idle::Chosen,
    ) -> Result<()> {
        #[cfg(not(debug_assertions))]
        if self.plan.clock == ClockSource::Tsc {
            return match idle {
                idle::Chosen::Spin(spin) => self.run_on(agent, Tsc, spin),
                idle => self.run_on(agent, Tsc, idle),
            };
        }
        self.run_any(agent, idle)
    }

    /// Runs the agent in a loop that works with every clock and idle strategy.
    pub(super) fn run_any(self, agent: &mut impl Agent<clock::Chosen>, idle: idle::Chosen) -> Result<()> {
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
