//! Runs the thread of a role: pins and confines it, waits at the barrier, then runs its agent in a
//! loop monomorphised for clock and idle strategy.

use super::agents::{LoopClock, RoleAgent};
use anyhow::{Context, Result};
use protocol::agent::Cycle;
use protocol::barrier::ArrivedThread;
use protocol::control::Control;
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::{self, StatusWriter};
use protocol::topology;
use shm::idle::IdleStrategy;
use shm::memory::AtomicWords;
use shm::sync::{AtomicU64, Ordering};
use system::clock::Clock;
use system::keys::{PreparedThread, WriteRights};
use system::memory;
use system::process;
use system::robust::RobustLock;
use system::sandbox::{SandboxError, SandboxProfile};

/// The plan, control segment, log, sandbox and protection keys with which the agent of one thread
/// is run.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub segment: AtomicWords,
    pub log: StampLog,
    pub control: &'a Control,
    /// The sandbox of the thread's process; `None`: not confined.
    pub sandbox: Option<&'a Confinement>,
    /// Memory that the thread may write, if it has a protection key, and the function that reports
    /// its mistake.
    pub keys: Option<ThreadKeys>,
}

/// The memory that a strategy's thread may write by its protection keys, and the function that
/// reports a violation.
pub struct ThreadKeys {
    pub rights: WriteRights,
    /// Publishes that the thread ends by a mistake; called from a signal handler on that thread.
    pub report: Box<dyn Fn(&str)>,
}

/// The sandbox of a process, which takes effect once all its threads are prepared.
pub struct Confinement {
    profile: &'static SandboxProfile,
    /// Threads that still need system calls that will be refused.
    unprepared: AtomicU64,
}

impl Confinement {
    /// Creates the sandbox of a process with `threads` threads.
    pub fn new(profile: &'static SandboxProfile, threads: usize) -> Self {
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

/// A thread behind the barrier: its first cycle, its status, and what it has while it runs.
type ReadyThread<C> = (Cycle<C>, StatusWriter, ThreadGuards);

/// What a thread has for as long as it runs.
pub(super) struct ThreadGuards {
    /// Its protection key.
    prepared: Option<PreparedThread>,
    /// The lock by which the launcher sees its death; `None`: the kernel has none.
    _lock: Option<RobustLock>,
}

impl Runner<'_> {
    /// Prepares the thread, waits at the start barrier and runs the agent, whose loop is compiled
    /// for the agent. What precedes and follows the loop is compiled once for each clock.
    pub(super) fn run<K: LoopClock>(
        self,
        agent: &mut dyn RoleAgent<K>,
        mut idle: IdleStrategy,
    ) -> Result<()> {
        let (clock, control) = (K::from_plan(self.plan), self.control);
        if let Some((mut cycle, status, guards)) = self.arrive(clock)? {
            // Once: an order costs nothing.
            let _closed = guards.prepared.as_ref().map(PreparedThread::close);
            agent.run(&mut idle, &mut cycle, &status, control);
        }
        Ok(())
    }

    /// Prepares the thread and waits at the barrier; `None`: the run was stopped before it began.
    /// The same for all agents: compiled once for each clock.
    #[inline(never)]
    pub(super) fn arrive<C: Clock>(self, clock: C) -> Result<Option<ReadyThread<C>>> {
        let Self { plan, thread, segment, log, control, sandbox, keys } = self;
        let prepared = keys.map(|keys| PreparedThread::new(keys.rights, keys.report)).transpose();
        let prepared = prepared.with_context(|| format!("the protection key of {}", thread.name))?;
        if plan.processes.len() < plan.threads.len() {
            // Several threads in this process: `top -H` shows which is which.
            process::set_thread_name(&thread.name);
        }
        // Without it the thread's death is seen by the pidfd alone.
        let lock = RobustLock::take(status::robust_lock(&segment)).ok();
        let arrived = ArrivedThread::new(plan, thread, &segment, log)
            .with_context(|| format!("thread {}", thread.name))?;
        if plan.trading().memory.lock_memory {
            // By each thread: the last one also locks the stacks of the others.
            memory::lock_all().context(
                "--lock-memory: cannot lock this process's memory: raise ulimit -l, or leave --lock-memory out",
            )?;
        }
        if let Some(confinement) = sandbox {
            confinement.prepared(plan)?;
        }
        let guards = ThreadGuards { prepared, _lock: lock };
        Ok(arrived.wait(clock, plan, control).map(|(cycle, status)| (cycle, status, guards)))
    }
}
