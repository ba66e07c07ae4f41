//! Agents with loops of their own, and agents behind a dynamic call. A thread of an unusual mixture
//! of roles makes a dynamic call for each role and duty cycle; every other thread makes one.

use protocol::agent::{self, Agent, Cycle};
use protocol::control::Control;
#[cfg(not(debug_assertions))]
use protocol::plan::ClockSource;
use protocol::plan::Plan;
use protocol::status::StatusWriter;
use shm::idle::IdleStrategy;
#[cfg(not(debug_assertions))]
use system::clock::Tsc;
use system::clock::{self, Clock};

/// The clock of the agents' measured loops: the CPU's time stamp counter.
#[cfg(not(debug_assertions))]
pub type MeasuredClock = Tsc;
/// The clock of the agents' loops in debug builds, which measure nothing: a real or a simulated
/// one, chosen at run time.
#[cfg(debug_assertions)]
pub type MeasuredClock = clock::AnyClock;

/// Returns `true` if a plan's threads run loops that are compiled for their technique and clock.
pub(super) fn is_measured(plan: &Plan) -> bool {
    #[cfg(not(debug_assertions))]
    return plan.clock == ClockSource::Tsc;
    #[cfg(debug_assertions)]
    {
        let _ = plan;
        false
    }
}

/// A type of clock for which the loops of agents are compiled; its method `run` runs an agent's
/// loop on the calling thread.
pub trait LoopClock: Clock + 'static {
    /// Returns the clock of a plan.
    fn from_plan(plan: &Plan) -> Self;

    /// Runs an agent on the calling thread, which is past the barrier, until the run ends.
    fn run<A: Agent<Self>>(
        agent: &mut A,
        idle: &mut IdleStrategy,
        cycle: &mut Cycle<Self>,
        status: &StatusWriter,
        control: &Control,
    );
}

/// Two loops for each agent: one with [`IdleStrategy::Spin`], with which figures are taken,
/// and one for all other idle strategies.
#[cfg(not(debug_assertions))]
impl LoopClock for Tsc {
    fn from_plan(_: &Plan) -> Self {
        Self
    }

    fn run<A: Agent<Self>>(
        agent: &mut A,
        idle: &mut IdleStrategy,
        cycle: &mut Cycle<Self>,
        status: &StatusWriter,
        control: &Control,
    ) {
        match idle {
            // A copy of its own, so that the loop does not write through the reference.
            IdleStrategy::Spin(spin) => agent::run(agent, &mut { *spin }, cycle, status, control),
            idle => agent::run(agent, idle, cycle, status, control),
        }
    }
}

/// One loop for each agent, on whichever clock the plan names.
impl LoopClock for clock::AnyClock {
    fn from_plan(plan: &Plan) -> Self {
        Self::from(plan.clock)
    }

    fn run<A: Agent<Self>>(
        agent: &mut A,
        idle: &mut IdleStrategy,
        cycle: &mut Cycle<Self>,
        status: &StatusWriter,
        control: &Control,
    ) {
        agent::run(agent, idle, cycle, status, control);
    }
}

/// An agent of any type that can be moved to another thread, called through one dynamic call per
/// duty cycle.
pub trait AnyAgent<K: Clock>: Agent<K> + Send {}

impl<K: Clock, A: Agent<K> + Send> AnyAgent<K> for A {}

/// An agent that runs a role of the plan, such as a strategy, together with a loop that is compiled
/// for its type.
pub trait RoleAgent<K: Clock>: AnyAgent<K> {
    /// Runs the agent on the calling thread, which is past the barrier, until the run ends.
    fn run(
        &mut self,
        idle: &mut IdleStrategy,
        cycle: &mut Cycle<K>,
        status: &StatusWriter,
        control: &Control,
    );
}

impl<K: LoopClock, A: Agent<K> + Send> RoleAgent<K> for A {
    fn run(
        &mut self,
        idle: &mut IdleStrategy,
        cycle: &mut Cycle<K>,
        status: &StatusWriter,
        control: &Control,
    ) {
        K::run(self, idle, cycle, status, control);
    }
}

/// The agents of the roles on a thread, each behind a dynamic call.
pub(super) type AgentGroup<K> = Vec<Box<dyn AnyAgent<K>>>;
