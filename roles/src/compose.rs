//! Composes the roles of a thread into one agent.
//!
//! A thread runs its agent behind one dynamic call; its loop is monomorphised for the agent, the
//! clock and the idle strategy. That holds for a single role, for the orchestrator with gateways,
//! and for gateways; only a thread with another mixture of roles makes a dynamic call for each role
//! in each duty cycle.

use super::agents::{AgentGroup, AnyAgent, LoopClock, RoleAgent, is_measured};
use super::build::{BuildStrategy, StrategyBuilder, player, strategy_or_faulty, thread_agent};
use super::measured;
use super::recovered::RecoveredRoles;
use super::registry::{BuildThread, Registry, StrategyEntry, VenueEntry};
use super::role_context::{RoleContext, WhenAttached};
use super::runner::Runner;
use super::technique_ends::BoxedEnds;
use crate::faults::own::FaultAction;
use anyhow::Result;
use gateway::{DelayVenue, InFull};
use protocol::agent::Agent;
use protocol::control::Control;
use protocol::index::VenueIndex;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::status::StatusWriter;
use shm::attached::Attached;
use shm::idle;
use shm::memory::AtomicWords;
use system::clock;

/// An agent whose injected faults still lack the memory that they damage: see [`arm`](Self::arm).
pub struct UnarmedAgent<A> {
    agent: A,
    when_attached: Vec<WhenAttached>,
}

impl<A> UnarmedAgent<A> {
    /// Gives the agent's injected faults the memory of their process, and returns the agent.
    pub fn arm(self, attached: &Attached<'_>, thread: &AtomicWords) -> A {
        let Self { agent, when_attached } = self;
        when_attached.into_iter().for_each(|arm| arm(attached, StatusWriter::new(thread)));
        agent
    }
}

/// A function that runs a thread's agent until the run ends. Fails if the thread cannot start.
pub(super) type Loop = Box<dyn FnOnce(Runner<'_>, idle::IdleStrategy) -> Result<()> + Send>;

/// An agent whose duty cycles are run one by one by its caller, instead of by a thread's loop.
pub type SteppedAgent = Box<dyn Agent<clock::AnyClock>>;

/// Builds the loop of a thread from its roles; `act` executes injected faults.
pub(super) fn compose(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    recovered: &mut RecoveredRoles,
    act: FaultAction,
) -> Result<UnarmedAgent<Loop>> {
    fn looped<K: LoopClock>(composed: UnarmedAgent<Box<dyn RoleAgent<K>>>) -> UnarmedAgent<Loop> {
        let UnarmedAgent { mut agent, when_attached } = composed;
        let agent: Loop = Box::new(move |runner, idle| runner.run(&mut *agent, idle));
        UnarmedAgent { agent, when_attached }
    }
    if let Some(benchmark) = measured::attach(plan, thread, attached)? {
        let agent: Loop = Box::new(move |runner, idle| measured::run(benchmark, runner, idle));
        return Ok(UnarmedAgent { agent, when_attached: Vec::new() });
    }
    let parts = RoleContext { plan, thread, control, attached, recovered, act, when_attached: Vec::new() };
    Ok(match is_measured(plan) {
        true => looped(compose_on(parts, |entry| &entry.measured, |entry| &entry.measured)?),
        false => looped(compose_on(parts, |entry| &entry.any, |entry| &entry.any)?),
    })
}

/// Builds the agent of a thread of the plan for a caller that runs its duty cycles one by one.
pub fn compose_stepped(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    recovered: &mut RecoveredRoles,
    act: FaultAction,
) -> Result<UnarmedAgent<SteppedAgent>> {
    let parts = RoleContext { plan, thread, control, attached, recovered, act, when_attached: Vec::new() };
    let UnarmedAgent { agent, when_attached } =
        compose_on::<clock::AnyClock>(parts, |entry| &entry.any, |entry| &entry.any)?;
    Ok(UnarmedAgent { agent, when_attached })
}

fn compose_on<K: LoopClock>(
    parts: RoleContext<'_, '_>,
    build_strategy: fn(&StrategyEntry) -> &BuildStrategy<K>,
    build_thread: fn(&VenueEntry) -> &BuildThread<K>,
) -> Result<UnarmedAgent<Box<dyn RoleAgent<K>>>> {
    let registry = Registry::installed();
    let plan = parts.plan;
    let strategy = |parts: &mut RoleContext<'_, '_>, index| {
        build_strategy(registry.strategy(plan, index)?)(parts, index)
    };
    agent_of(parts, &strategy, |parts, roles| {
        let kind_of = |role: &Role| match role {
            Role::Gateway(index) => plan.trading().venue_kind(plan.trading().venue_of(*index)),
            Role::Exchange(venue) => plan.trading().venue_kind(*venue),
            _ => plan.trading().venue_kind(VenueIndex(0)),
        };
        let gateways = roles.iter().filter(|role| matches!(role, Role::Gateway(_) | Role::Exchange(_)));
        let kinds: Vec<&str> = gateways.map(kind_of).collect();
        let kind = kinds.first().copied().unwrap_or(plan.trading().venue_kind(VenueIndex(0)));
        if kinds.iter().all(|other| *other == kind) {
            return build_thread(registry.thread(plan, kind)?)(parts, roles, &strategy);
        }
        // Venues of several kinds on one thread: each role by itself, behind a dynamic call a duty
        // cycle.
        let each = |role: &Role| -> Result<Box<dyn AnyAgent<K>>> {
            Ok(build_thread(registry.thread(plan, kind_of(role))?)(parts, &[*role], &strategy)?)
        };
        let all: Result<AgentGroup<K>> = roles.iter().map(each).collect();
        Ok(Box::new(all?))
    })
}

/// Builds a thread's agent on an unregistered technique (kind of queue), for a caller that runs its
/// duty cycles one by one. With the built-in player and venue.
pub fn compose_stepped_on(
    ends: BoxedEnds,
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    recovered: &mut RecoveredRoles,
    act: FaultAction,
) -> Result<UnarmedAgent<SteppedAgent>> {
    let strategy: BuildStrategy<clock::AnyClock> =
        Box::new(move |parts, index| strategy_or_faulty(ends, parts, index, &player));
    let parts = RoleContext { plan, thread, control, attached, recovered, act, when_attached: Vec::new() };
    let venue = |_: &mut RoleContext<'_, '_>, context: &_| Ok(DelayVenue::new(InFull, context));
    let UnarmedAgent { agent, when_attached } =
        agent_of(parts, &strategy, |parts, roles| thread_agent(ends, parts, roles, &venue, &strategy))?;
    Ok(UnarmedAgent { agent, when_attached })
}

fn agent_of<'a, 's, K: LoopClock>(
    mut parts: RoleContext<'a, 's>,
    strategy: &StrategyBuilder<'_, K>,
    thread: impl FnOnce(&mut RoleContext<'a, 's>, &[Role]) -> Result<Box<dyn RoleAgent<K>>>,
) -> Result<UnarmedAgent<Box<dyn RoleAgent<K>>>> {
    let agent = match parts.thread.roles.as_slice() {
        [Role::Strategy(index)] => strategy(&mut parts, *index)?,
        roles => thread(&mut parts, roles)?,
    };
    Ok(UnarmedAgent { agent, when_attached: parts.when_attached })
}
