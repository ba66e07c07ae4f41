//! A thread of a role: pinned, confined, waiting at the barrier, then running its agent. The second half of the way from names to
//! monomorphised loops: clock and idle strategy.

use anyhow::{Context, Result, bail};
use protocol::agent::{self, Agent, Cycle};
use protocol::control::{Control, RunState};
use protocol::plan::{ClockSource, Idle, Plan, ThreadPlan};
use protocol::stamps::StampLog;
use protocol::status::{Field, State, StatusWriter};
use protocol::topology;
use shm::bell::Bell;
use shm::clock::{Clock, Monotonic, Timebase, Tsc};
use shm::idle::{Backoff, Idle as IdleStrategy, Park, Spin, Yield};
use shm::memory::Words;
use shm::os::{pin, process, sandbox};

/// What a thread needs beside its agent.
pub struct Runner<'a> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub segment: Words,
    pub bell: Option<Bell>,
    pub control: &'a Control,
    /// The thread's roles are confined: it gives up what it does not need to trade.
    pub sandboxed: bool,
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
        let log = StampLog::new(&self.segment);
        if self.sandboxed {
            // The last thing before the barrier: nothing of the strategy's own has run yet.
            let through_kernel =
                topology::segments(self.plan).iter().any(|segment| segment.spec.place.is_kernel());
            sandbox::restrict_syscalls(through_kernel)?;
        }
        status.set_state(State::Ready);
        let state = self.control.wait_for_go();
        if state == RunState::Stop {
            status.set_state(State::Done);
            return Ok(());
        }
        let time = Timebase { start_ticks: self.control.start_ticks(), ns_per_tick: self.plan.ns_per_tick };
        let mut cycle = Cycle { clock, now: 0, time, draining: state == RunState::Drain, log };
        agent::run(agent, &mut idle, &mut cycle, &status, self.control);
        Ok(())
    }
}
