//! From the roles of a thread to one agent.
//!
//! A thread runs its agent behind one dynamic call: the loop behind it is monomorphised for the
//! agent, the clock and the idle strategy. That holds for a single role, for the orchestrator with
//! gateways, and for gateways; only a thread with another mixture of roles makes a dynamic call for
//! each role in each duty cycle.

use super::agents::{AnyAgent, Mixed, RoleAgent};
use super::build::{BuildStrategy, StrategyBuilder, player, strategy_or_faulty, thread_agent};
use super::ends::BoxedEnds;
use super::parts::{Parts, WhenAttached};
use super::registry::Registry;
use super::runner::Runner;
use crate::faults::own::Act;
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
pub struct Composed {
    agent: Box<dyn RoleAgent>,
    when_attached: Vec<WhenAttached>,
}

impl Composed {
    /// Tells faulty agents what their process can write, once all of it is attached, and where
    /// their thread's status is.
    pub fn arm(&mut self, attached: &Attached<'_>, thread: &AtomicWords) {
        self.when_attached.drain(..).for_each(|arm| arm(attached.writable(), StatusWriter::new(thread)));
    }

    /// Runs it on the calling thread, which idles like that, until the run ends.
    ///
    /// # Errors
    /// What kept the thread from starting.
    pub(super) fn run(self, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        self.agent.run(runner, idle)
    }

    /// The agent behind one dynamic call a turn: for who steps agents instead of giving each a
    /// thread.
    pub fn boxed(self) -> Box<dyn Agent<clock::Chosen>> {
        self.agent
    }
}

/// Builds the agent of a thread from its roles; `act` is how faults are carried out.
///
/// # Errors
/// A segment that is missing or not what it should be.
pub fn compose(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed> {
    let registry = Registry::of_program();
    let strategy = |parts: &mut Parts<'_, '_>, index| registry.strategy(plan, index)?(parts, index);
    let parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
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
        Ok(Box::new(Mixed(all?)))
    })
}

/// The same with the built-in player and venue on these ends, whatever the plan says: for a
/// technique that is in no table.
///
/// # Errors
/// As [`compose`].
pub fn compose_on(
    ends: BoxedEnds,
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed> {
    let strategy: BuildStrategy =
        Box::new(move |parts, index| strategy_or_faulty(ends, parts, index, &player));
    let parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
    let venue = |_: &mut Parts<'_, '_>, context: &_| Ok(DelayVenue::new(InFull, context));
    agent_of(parts, &strategy, |parts, roles| thread_agent(ends, parts, roles, &venue, &strategy))
}

fn agent_of<'a, 's>(
    mut parts: Parts<'a, 's>,
    strategy: &StrategyBuilder<'_>,
    thread: impl FnOnce(&mut Parts<'a, 's>, &[Role]) -> Result<Box<dyn RoleAgent>>,
) -> Result<Composed> {
    let agent = match parts.thread.roles.as_slice() {
        [Role::Strategy(index)] => strategy(&mut parts, *index)?,
        roles => thread(&mut parts, roles)?,
    };
    Ok(Composed { agent, when_attached: parts.when_attached })
}
