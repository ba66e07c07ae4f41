//! From the roles of a thread to one agent.
//!
//! A thread runs its agent behind one dynamic call: the loop behind it is monomorphised for the
//! agent, the clock and the idle strategy. That holds for a single role, for the orchestrator with
//! gateways, and for gateways; only a thread with another mixture of roles makes a dynamic call for
//! each role in each duty cycle.

use super::agents::{AnyAgent, LoopClock, MixedAgents, RoleAgent, is_measured};
use super::build::{BuildStrategy, StrategyBuilder, player, strategy_or_faulty, thread_agent};
use super::ends::BoxedEnds;
use super::parts::{Parts, WhenAttached};
use super::registry::{BuildThread, Registry, StrategyEntry, VenueEntry};
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

/// What was composed of a thread's roles, not armed yet.
pub struct Composed<A> {
    agent: A,
    when_attached: Vec<WhenAttached>,
}

impl<A> Composed<A> {
    /// Tells faulty agents what their process can write, once all of it is attached, and where
    /// their thread's status is.
    pub fn arm(self, attached: &Attached<'_>, thread: &AtomicWords) -> A {
        let Self { agent, when_attached } = self;
        when_attached.into_iter().for_each(|arm| arm(attached.writable(), StatusWriter::new(thread)));
        agent
    }
}

/// A thread's loop: runs its agent on the calling thread, which idles like that, until the run
/// ends. Fails with what kept the thread from starting.
pub(super) type Loop = Box<dyn FnOnce(Runner<'_>, idle::Chosen) -> Result<()> + Send>;

/// An agent that its caller steps, instead of giving it a thread.
pub type SteppedAgent = Box<dyn Agent<clock::AnyClock>>;

/// Builds the loop of a thread from its roles; `act` is how faults are carried out.
///
/// # Errors
/// A segment that is missing or not what it should be.
pub(super) fn compose(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed<Loop>> {
    fn looped<K: LoopClock>(composed: Composed<Box<dyn RoleAgent<K>>>) -> Composed<Loop> {
        let Composed { agent, when_attached } = composed;
        Composed { agent: Box::new(move |runner, idle| agent.run(runner, idle)), when_attached }
    }
    let parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
    Ok(match is_measured(plan) {
        true => looped(compose_on(parts, |entry| &entry.measured, |entry| &entry.measured)?),
        false => looped(compose_on(parts, |entry| &entry.any, |entry| &entry.any)?),
    })
}

/// Builds the agent of a thread from its roles, to be stepped.
///
/// # Errors
/// As the loop of a thread: a segment that is missing or not what it should be.
pub fn compose_stepped(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed<SteppedAgent>> {
    let parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
    let Composed { agent, when_attached } =
        compose_on::<clock::AnyClock>(parts, |entry| &entry.any, |entry| &entry.any)?;
    Ok(Composed { agent, when_attached })
}

fn compose_on<K: LoopClock>(
    parts: Parts<'_, '_>,
    build_strategy: fn(&StrategyEntry) -> &BuildStrategy<K>,
    build_thread: fn(&VenueEntry) -> &BuildThread<K>,
) -> Result<Composed<Box<dyn RoleAgent<K>>>> {
    let registry = Registry::of_program();
    let plan = parts.plan;
    let strategy =
        |parts: &mut Parts<'_, '_>, index| build_strategy(registry.strategy(plan, index)?)(parts, index);
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
            return build_thread(registry.thread(plan, kind)?)(parts, roles, &strategy);
        }
        // Venues of several kinds on one thread: each role by itself, behind a dynamic call a duty
        // cycle.
        let each = |role: &Role| -> Result<Box<dyn AnyAgent<K>>> {
            Ok(build_thread(registry.thread(plan, kind_of(role))?)(parts, &[*role], &strategy)?)
        };
        let all: Result<MixedAgents<K>> = roles.iter().map(each).collect();
        Ok(Box::new(all?))
    })
}

/// Builds the agent of a thread, to be stepped, with the built-in player and venue on these ends,
/// whatever the plan says: for a technique that is in no table.
///
/// # Errors
/// As [`compose_stepped`].
pub fn compose_stepped_on(
    ends: BoxedEnds,
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed<SteppedAgent>> {
    let strategy: BuildStrategy<clock::AnyClock> =
        Box::new(move |parts, index| strategy_or_faulty(ends, parts, index, &player));
    let parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
    let venue = |_: &mut Parts<'_, '_>, context: &_| Ok(DelayVenue::new(InFull, context));
    let Composed { agent, when_attached } =
        agent_of(parts, &strategy, |parts, roles| thread_agent(ends, parts, roles, &venue, &strategy))?;
    Ok(Composed { agent, when_attached })
}

fn agent_of<'a, 's, K: LoopClock>(
    mut parts: Parts<'a, 's>,
    strategy: &StrategyBuilder<'_, K>,
    thread: impl FnOnce(&mut Parts<'a, 's>, &[Role]) -> Result<Box<dyn RoleAgent<K>>>,
) -> Result<Composed<Box<dyn RoleAgent<K>>>> {
    let agent = match parts.thread.roles.as_slice() {
        [Role::Strategy(index)] => strategy(&mut parts, *index)?,
        roles => thread(&mut parts, roles)?,
    };
    Ok(Composed { agent, when_attached: parts.when_attached })
}
