//! Agents with loops of their own, and agents behind a dynamic call. A thread of an unusual mixture
//! of roles makes a dynamic call for each role and duty cycle; every other thread makes one.

use super::runner::Runner;
use anyhow::Result;
use protocol::agent::Agent;
#[cfg(not(debug_assertions))]
use protocol::plan::ClockSource;
use protocol::plan::Plan;
use shm::idle;
#[cfg(not(debug_assertions))]
use system::clock::Tsc;
use system::clock::{self, Clock};

/// The clock of the measured loops: the CPU's time stamp counter.
#[cfg(not(debug_assertions))]
pub type MeasuredClock = Tsc;
/// The clock of the measured loops in debug builds, which measure nothing: any clock.
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

/// A clock for which the loops of agents are compiled.
pub trait LoopClock: Clock + 'static {
    /// Runs an agent on the calling thread with this clock, until the run ends.
    fn run<A: Agent<Self>>(agent: &mut A, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()>;
}

/// Two loops for each agent: one with [`idle::IdleStrategy::Spin`], with which figures are taken,
/// and one for all other idle strategies.
#[cfg(not(debug_assertions))]
impl LoopClock for Tsc {
    fn run<A: Agent<Self>>(agent: &mut A, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        match idle {
            idle::IdleStrategy::Spin(spin) => runner.run(agent, Self, spin),
            idle => runner.run(agent, Self, idle),
        }
    }
}

/// One loop for each agent, on whichever clock the plan names.
impl LoopClock for clock::AnyClock {
    fn run<A: Agent<Self>>(agent: &mut A, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        let clock = Self::from(runner.plan.clock);
        runner.run(agent, clock, idle)
    }
}

/// An agent whose duty cycle is one dynamic call, compiled once for each clock.
pub trait AnyAgent<K: Clock>: Agent<K> + Send {}

impl<K: Clock, A: Agent<K> + Send> AnyAgent<K> for A {}

/// An agent of a role, together with a loop that is compiled for its type.
pub trait RoleAgent<K: Clock>: AnyAgent<K> {
    /// Runs the agent on the calling thread until the run ends.
    fn run(self: Box<Self>, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()>;
}

impl<K: LoopClock, A: Agent<K> + Send> RoleAgent<K> for A {
    fn run(mut self: Box<Self>, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        K::run(&mut *self, runner, idle)
    }
}

/// The agents of the roles on a thread, each behind a dynamic call.
pub(super) type AgentGroup<K> = Vec<Box<dyn AnyAgent<K>>>;
