//! One process of a run: finds its part in the plan, composes its agents, and runs each on its thread.
//!
//! A child is told its name and the run's id; everything else it derives from the plan in the control segment.

use crate::faults::sabotage::{self, Act, Doomed, Sabotage, Sabotaged};
use crate::runtime::orphan;
use crate::runtime::setup;
use anyhow::{Context, Result, anyhow, bail};
use gateway::{Gateway, Venue};
use orchestrator::risk::Limits;
use orchestrator::work::Work;
use orchestrator::{Inbox, Orchestrator, ReturnPath, Supervision};
use protocol::agent::{self, Agent, Cycle};
use protocol::control::{Control, RunState};
use protocol::plan::{ClockSource, Idle, Isolation, Plan, ProcessPlan, Role, ThreadPlan};
use protocol::segments::{self, completion_link, submit_link};
use protocol::stamps::{Point, StampLog, count_point};
use protocol::status::{Field, State, StatusWriter};
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use shm::attached::Attached;
use shm::bell::Bell;
use shm::clock::{Clock, Monotonic, Timebase, Tsc};
use shm::idle::{Backoff, Idle as IdleStrategy, Park, Spin, Yield};
use shm::memory::Words;
use shm::os::{memory, pin, process, sandbox};
use shm::ring::{Link, Producer};
use shm::with_link;
use strategy::{Player, Session, StrategyAgent};

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
    let mut attached = segments::attach(&plan, Some(me));
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

/// A thread's agent, ready to run. One value for each shape of thread that a plan can have.
pub enum Composed<T: Link> {
    /// One strategy.
    Strategy(Box<StrategyAgent<Player, T::Producer>>),
    /// One that the plan has a fault for.
    Sabotaged(Box<SabotagedPlayer<T::Producer>>),
    /// The orchestrator alone.
    Orchestrator(Box<Orchestrator<T::Consumer>>),
    /// One gateway.
    Gateway(Box<Gateway<T::Producer>>),
    /// The orchestrator and the gateways.
    Engine(Box<Engine<T>>),
}

/// A player that strikes itself.
pub type SabotagedPlayer<P> = Sabotaged<StrategyAgent<Player, Doomed<P>>, P>;

impl<T: Link> Composed<T> {
    /// The agent behind one dynamic call a turn: for who steps agents one by one instead of giving each a thread.
    pub fn boxed<C: Clock>(self) -> Box<dyn Agent<C>> {
        match self {
            Composed::Strategy(agent) => agent,
            Composed::Sabotaged(agent) => agent,
            Composed::Orchestrator(agent) => agent,
            Composed::Gateway(agent) => agent,
            Composed::Engine(agent) => agent,
        }
    }

    /// Tells an agent that strikes itself what its process can write, once all of it is attached, and where its thread's
    /// status is.
    pub fn arm(&mut self, attached: &Attached<'_>, thread: &Words) {
        if let Composed::Sabotaged(agent) = self {
            agent.arm(attached.writable(), StatusWriter::new(thread));
        }
    }
}

/// Orchestrator and gateways on one thread.
pub type Engine<T> = (Orchestrator<<T as Link>::Consumer>, Vec<Gateway<<T as Link>::Producer>>);

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
    let strategies_only = threads.iter().all(|(thread, ..)| is_strategy(thread));
    if strategies_only {
        memory::limit(memory::STRATEGY_ROOM).context("cannot limit this process's memory")?;
    }
    let sandboxed = plan.isolation == Isolation::Sandbox && strategies_only;
    if sandboxed {
        sandbox::restrict_thread(plan.weaker_sandbox)?;
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .into_iter()
            .map(|(thread, agent, segment, bell)| {
                scope.spawn(move || {
                    let runner = Runner { plan, thread, segment, bell, control, sandboxed };
                    match agent {
                        Composed::Strategy(mut agent) => runner.run(&mut *agent),
                        Composed::Sabotaged(mut agent) => runner.run(&mut *agent),
                        Composed::Orchestrator(mut agent) => runner.run(&mut *agent),
                        Composed::Gateway(mut agent) => runner.run(&mut *agent),
                        Composed::Engine(mut agent) => runner.run(&mut *agent),
                    }
                })
            })
            .collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

fn is_strategy(thread: &ThreadPlan) -> bool {
    thread.roles.iter().all(|role| matches!(role, Role::Strategy(_)))
}

/// Builds the agent of a thread from its roles; `act` is how faults are carried out.
///
/// # Errors
/// A segment that is missing or not what it should be; roles that cannot share a thread.
pub fn compose<T: Link>(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed<T>> {
    match thread.roles.as_slice() {
        [Role::Strategy(index)] => {
            let epoch = control.life(*index).epoch;
            let submit = attached.producer::<T>(&submit_link(plan), (*index).into())?;
            let Some(sabotage) = Sabotage::of(plan, *index, epoch) else {
                return Ok(Composed::Strategy(Box::new(strategy(plan, *index, epoch, submit, attached)?)));
            };
            let submit = sabotage.doom(submit, act);
            let agent = strategy(plan, *index, epoch, submit.clone(), attached)?;
            Ok(Composed::Sabotaged(Box::new(sabotage.sabotage(agent, submit))))
        }
        [Role::Orchestrator] => {
            Ok(Composed::Orchestrator(Box::new(orchestrator::<T>(plan, thread, control, attached)?)))
        }
        [Role::Gateway(index)] => {
            Ok(Composed::Gateway(Box::new(gateway::<T>(plan, thread, *index, attached)?)))
        }
        [Role::Orchestrator, gateways @ ..] => {
            let orchestrator = orchestrator::<T>(plan, thread, control, attached)?;
            let gateways = gateways.iter().map(|role| match role {
                Role::Gateway(index) => gateway::<T>(plan, thread, *index, attached),
                role => bail!("thread {}: {role} cannot share the engine's thread", thread.name),
            });
            Ok(Composed::Engine(Box::new((orchestrator, gateways.collect::<Result<_>>()?))))
        }
        roles => bail!("thread {}: no agent is composed of {} roles like these", thread.name, roles.len()),
    }
}

/// The bell to ring after sending to a role, if its thread parks. Agents that share `from`'s thread need none: each has
/// its turn before the thread idles.
fn bell_of(plan: &Plan, from: &ThreadPlan, role: Role, attached: &mut Attached<'_>) -> Result<Option<Bell>> {
    let parks = |thread: &ThreadPlan| thread.idle == Idle::Park && thread.name != from.name;
    match plan.thread_of(role).map(|index| &plan.threads[index]) {
        Some(thread) if parks(thread) => Ok(Some(segments::bell(attached, plan, role)?)),
        _ => Ok(None),
    }
}

/// Builds a strategy that submits through that producer.
///
/// # Errors
/// As [`compose`].
pub fn strategy<P: Producer>(
    plan: &Plan,
    index: u16,
    epoch: u16,
    submit: P,
    attached: &mut Attached<'_>,
) -> Result<StrategyAgent<Player, P>> {
    let role = Role::Strategy(index);
    let thread = &plan.threads[plan.thread_of(role).context("every strategy has a thread")?];
    let (schedule, entries) = segments::schedule(attached, index)?;
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    let returns = attached.receiver(&format!("return-{index}"))?;
    let session = Session::new(index, plan.max_open.into(), submit, bell, returns).in_epoch(epoch);
    let mut player = Player::new(schedule, entries, plan.pacing);
    if epoch > 0 {
        player = player.resume(count_point(&segments::log(attached, &thread.name)?, Point::StrategySend));
    }
    Ok(StrategyAgent::new(player, session))
}

fn orchestrator<T: Link>(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Orchestrator<T::Consumer>> {
    let submit = attached.consumer::<T>(&submit_link(plan))?;
    let completion = attached.consumer::<T>(&completion_link(plan))?;
    let mut inboxes = Vec::new();
    for venue in 0..plan.venues {
        let ring = attached.sender(&format!("inbox-{venue}"))?;
        inboxes.push(Inbox::new(ring, bell_of(plan, thread, Role::Gateway(venue), attached)?));
    }
    let mut returns = Vec::new();
    for index in 0..plan.strategies {
        let ring = attached.sender(&format!("return-{index}"))?;
        let bell = bell_of(plan, thread, Role::Strategy(index), attached)?;
        returns.push(ReturnPath::new(ring, bell, plan.max_open as usize));
    }
    let limits = Limits::open_orders(plan.max_open.into());
    let repairs = RepairsWriter::new(&attached.region(REPAIRS, supervision::KIND)?.words());
    let orchestrator =
        Orchestrator::new(submit, completion, inboxes, returns, limits, Work::new(plan.work.rounds));
    let orchestrator = orchestrator.expecting(&plan.orders).expecting_at_venues(&plan.venue_orders);
    Ok(orchestrator.supervised(Supervision::new(control.clone(), repairs)))
}

fn gateway<T: Link>(
    plan: &Plan,
    thread: &ThreadPlan,
    index: u16,
    attached: &mut Attached<'_>,
) -> Result<Gateway<T::Producer>> {
    let inbox = attached.receiver(&format!("inbox-{index}"))?;
    let completion = attached.producer::<T>(&completion_link(plan), index.into())?;
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    Ok(Gateway::new(index, inbox, completion, bell, Venue, plan.max_held as usize))
}

/// What a thread needs beside its agent.
struct Runner<'a> {
    plan: &'a Plan,
    thread: &'a ThreadPlan,
    segment: Words,
    bell: Option<Bell>,
    control: &'a Control,
    /// The thread is a strategy's and gives up what it does not need to trade.
    sandboxed: bool,
}

impl Runner<'_> {
    /// Prepares the thread, waits at the barrier and runs the agent: the second half of the table, from the names of
    /// clock and idle strategy to monomorphised loops.
    fn run<A>(self, agent: &mut A) -> Result<()>
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
            let through_kernel = setup::specs(self.plan).iter().any(|spec| spec.place.is_kernel());
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
