//! One process of a run: finds its part in the plan, composes its agents, and runs each on its thread.
//!
//! A child is told its name and the run's id; everything else it derives from the plan in the control segment.

pub use super::agents::{Composed, compose};
pub use super::build::strategy;
use crate::faults::sabotage;
use crate::runtime::{orphan, setup};
use anyhow::{Context, Result, anyhow, bail};
use protocol::agent::{self, Agent, Cycle};
use protocol::control::{Control, RunState};
use protocol::plan::{ClockSource, Idle, Isolation, Plan, ProcessPlan, ThreadPlan};
use protocol::role::Trust;
use protocol::segments;
use protocol::stamps::StampLog;
use protocol::status::{Field, State, StatusWriter};
use protocol::topology;
use shm::attached::Attached;
use shm::bell::Bell;
use shm::clock::{Clock, Monotonic, Timebase, Tsc};
use shm::idle::{Backoff, Idle as IdleStrategy, Park, Spin, Yield};
use shm::memory::Words;
use shm::os::{memory, pin, process, sandbox};
use shm::ring::Link;
use shm::with_link;

/// Runs the process of that name of that run, until the run ends.
///
/// # Errors
/// What kept it from starting; the launcher is told through the status block as well.
pub fn run(name: &str, run: &str) -> Result<()> {
    let (control, plan) = setup::open_control(run)?;
    let me = plan.processes.iter().find(|process| process.name == name);
    let me = me.ok_or_else(|| anyhow!("run {} has no process {name}", plan.run))?;
    orphan::watch(&plan, &control).context("cannot watch the launcher")?;
    process::set_thread_name(name);
    exit_on_panic();
    // The technique table: from a name to monomorphised loops.
    let mut attached = segments::attach_with(&plan, Some(me), &control);
    let result = with_link!(plan.technique, T => run_process::<T>(&plan, me, &control, &mut attached));
    if let Err(error) = &result {
        report_failure(&plan, me, error, &mut attached);
    } else if control.is_abandoned() {
        bail!(orphan::message(&plan));
    }
    result
}

/// A panic on any thread ends the process: half an engine is no engine. The launcher sees the exit code and shows what
/// was printed.
fn exit_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::exit(101);
    }));
}

/// Tells the launcher why through every status block of ours that is there.
fn report_failure(plan: &Plan, me: &ProcessPlan, error: &anyhow::Error, attached: &mut Attached<'_>) {
    for thread in &me.threads {
        if let Ok(segment) = segments::thread(attached, &plan.threads[*thread as usize].name) {
            StatusWriter::new(&segment).fail(&format!("{error:#}"));
        }
    }
}

fn run_process<T: Link>(
    plan: &Plan,
    me: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<()> {
    let mut threads = Vec::new();
    // The engine's threads come last in a plan and are composed first: consumers before producers.
    for &index in me.threads.iter().rev() {
        let thread = &plan.threads[index as usize];
        let bell = match thread.idle {
            Idle::Park => Some(segments::bell(attached, plan, thread.roles[0])?),
            Idle::Spin | Idle::Yield | Idle::Backoff => None,
        };
        threads.push((
            thread,
            compose::<T>(plan, thread, control, attached, sabotage::act)?,
            segments::thread(attached, &thread.name)?,
            bell,
        ));
    }
    for (_, agent, segment, _) in &mut threads {
        agent.arm(attached, segment);
    }
    let is_confined = plan.roles_of(me).all(|role| role.record().trust == Trust::Confined);
    if is_confined {
        let room = memory::STRATEGY_ROOM * threads.len() as u64;
        memory::limit(room).context("cannot limit this process's memory")?;
    }
    let sandboxed = plan.isolation == Isolation::Sandbox && is_confined;
    if sandboxed {
        sandbox::restrict_thread(plan.weaker_sandbox)?;
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .into_iter()
            .map(|(thread, agent, segment, bell)| {
                scope.spawn(move || agent.run(Runner { plan, thread, segment, bell, control, sandboxed }))
            })
            .collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

/// What a thread needs beside its agent.
pub struct Runner<'a> {
    plan: &'a Plan,
    thread: &'a ThreadPlan,
    segment: Words,
    bell: Option<Bell>,
    control: &'a Control,
    /// The thread's roles are confined: it gives up what it does not need to trade.
    sandboxed: bool,
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
