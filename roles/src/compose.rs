//! Composes the roles of a thread into one agent.
//!
//! A thread runs its agent behind one dynamic call; its loop is monomorphised for the agent, the
//! clock and the idle strategy. That holds for a single role, for the orchestrator with gateways,
//! and for gateways; only a thread with another mixture of roles makes a dynamic call for each role
//! in each duty cycle.

use super::agents::{AgentGroup, AnyAgent, RoleAgent};
use super::build::{BuildStrategy, StrategyBuilder, player, strategy_or_faulty, thread_agent};
use super::registry::Registry;
use super::role_context::{RoleContext, WhenAttached};
use super::runner::Runner;
use super::technique_ends::BoxedEnds;
use crate::faults::own::FaultAction;
use anyhow::Result;
use gateway::{DelayVenue, InFull};
use protocol::agent::Agent;
use protocol::control::Control;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::status::StatusWriter;
use shm::attached::Attached;
use shm::idle;
use shm::memory::AtomicWords;
use system::clock;

/// A thread's agent, ready to run.
pub struct ComposedAgent {
    agent: Box<dyn RoleAgent>,
    when_attached: Vec<WhenAttached>,
}

impl ComposedAgent {
    /// Passes faulty agents the memory that their process can write, once all is attached, and
    /// their thread's status.
    pub fn arm(&mut self, attached: &Attached<'_>, thread: &AtomicWords) {
        self.when_attached.drain(..).for_each(|arm| arm(attached.writable(), StatusWriter::new(thread)));
    }

    /// Runs the agent on the calling thread until the run ends.
    ///
    /// # Errors
    /// Why the thread cannot start.
    pub(super) fn run(self, runner: Runner<'_>, idle: idle::Chosen) -> Result<()> {
        self.agent.run(runner, idle)
    }

    /// Returns the agent behind one dynamic call per duty cycle, for callers that step agents
    /// without threads.
    pub fn boxed(self) -> Box<dyn Agent<clock::Chosen>> {
        self.agent
    }
}

/// Builds the agent of a thread from its roles; `act` performs injected faults.
///
/// # Errors
/// A segment is missing or invalid.
pub fn compose(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: FaultAction,
) -> Result<ComposedAgent> {
    let registry = Registry::installed();
    let strategy = |parts: &mut RoleContext<'_, '_>, index| registry.strategy(plan, index)?(parts, index);
    let parts = RoleContext { plan, thread, control, attached, act, when_attached: Vec::new() };
    agent_of(parts, &strategy, |parts, roles| {
        let kind_of = |role: &Role| match role {
            Role::Gateway(index) => plan.trading().venue_kind(plan.trading().venue_of(*index)),
            Role::Exchange(venue) => plan.trading().venue_kind(*venue),
            _ => plan.trading().venue_kind(0),
        };
        let gateways = roles.iter().filter(|role| matches!(role, Role::Gateway(_) | Role::Exchange(_)));
        let kinds: Vec<&str> = gateways.map(kind_of).collect();
        let kind = kinds.first().copied().unwrap_or(plan.trading().venue_kind(0));
        if kinds.iter().all(|other| *other == kind) {
            return registry.thread(plan, kind)?(parts, roles, &strategy);
        }
        // Venues of several kinds on one thread: each role by itself, behind a dynamic call a duty
        // cycle.
        let each = |role: &Role| -> Result<Box<dyn AnyAgent>> {
            Ok(registry.thread(plan, kind_of(role))?(parts, &[*role], &strategy)?)
        };
        let all: Result<Vec<_>> = roles.iter().map(each).collect();
        Ok(Box::new(AgentGroup(all?)))
    })
}

/// Builds the agent of a thread with the built-in player and venue on `ends`: for a technique that
/// is not registered.
///
/// # Errors
/// A segment is missing or invalid.
pub fn compose_on(
    ends: BoxedEnds,
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: FaultAction,
) -> Result<ComposedAgent> {
    let strategy: BuildStrategy =
        Box::new(move |parts, index| strategy_or_faulty(ends, parts, index, &player));
    let parts = RoleContext { plan, thread, control, attached, act, when_attached: Vec::new() };
    let venue = |_: &mut RoleContext<'_, '_>, context: &_| Ok(DelayVenue::new(InFull, context));
    agent_of(parts, &strategy, |parts, roles| thread_agent(ends, parts, roles, &venue, &strategy))
}

fn agent_of<'a, 's>(
    mut parts: RoleContext<'a, 's>,
    strategy: &StrategyBuilder<'_>,
    thread: impl FnOnce(&mut RoleContext<'a, 's>, &[Role]) -> Result<Box<dyn RoleAgent>>,
) -> Result<ComposedAgent> {
    let agent = match parts.thread.roles.as_slice() {
        [Role::Strategy(index)] => strategy(&mut parts, *index)?,
        roles => thread(&mut parts, roles)?,
    };
    Ok(ComposedAgent { agent, when_attached: parts.when_attached })
}
