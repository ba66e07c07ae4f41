//! Builds each role of a thread from the plan and its segments.

use super::agents::{AgentGroup, AnyAgent, LoopClock, RoleAgent};
use super::book;
use super::recovered::RecoveredEngine;
use super::role_context::{RoleContext, VenueBuilder};
use super::technique_ends::{BoxedProducer, TechniqueEnds};
use crate::faults::own::OwnFaults;
use crate::faults::venue::FaultyVenue;
use anyhow::{Context, Result, bail};
use gateway::{Gateway, GatewayResumePoint, ValidatingSession, ValidationRules, Venue, VenueContext};
use journal::Writer;
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs, Supervision};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::{Plan, Role};
use protocol::segments::{self, bell_of, completion_link, submit_link};
use protocol::sender::{SendQueue, Sender};
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use protocol::trading::{inbox, return_path};
use shm::attached::Attached;
use shm::bell::Doorbell;
use shm::ring::{Consumer, Producer, spsc};
use strategy::attach::{context, session};
use strategy::{BuiltIn, Strategy, StrategyAgent, WorkingSet};
use system::work::TimedWork;

/// Maximum silence of a venue about an order beyond the longest delay, in nanoseconds.
const SILENCE_NS: u64 = 1_000_000_000;

/// A function that builds the agent of a strategy.
pub(super) type BuildStrategy<K> =
    Box<dyn Fn(&mut RoleContext<'_, '_>, StrategyIndex) -> Result<Box<dyn RoleAgent<K>>> + Send + Sync>;

/// A function that builds the strategy with an index, of its kind in the plan.
pub(super) type StrategyBuilder<'a, K> =
    dyn Fn(&mut RoleContext<'_, '_>, StrategyIndex) -> Result<Box<dyn RoleAgent<K>>> + 'a;

/// Builds the agent of a thread that has the engine's roles, alone or with others.
pub(super) fn thread_agent<K: LoopClock, P: Producer + 'static, C: Consumer + 'static, V: Venue + 'static>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_, K>,
) -> Result<Box<dyn RoleAgent<K>>> {
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if parts.plan.validates_venue(*index));
    let has_checked = roles.iter().any(checks);
    // Validating gateways have no measured loops.
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_)) && !has_checked;
    let journaled = match roles.contains(&Role::Orchestrator) {
        true => successor(ends, parts)?,
        false => None,
    };
    if let Some(orchestrator) = journaled {
        let other_roles: Vec<Role> =
            roles.iter().copied().filter(|role| *role != Role::Orchestrator).collect();
        let other_agents = any_agents(ends, parts, &other_roles, venue, strategy)?;
        // Own loops would be compiled once more for every technique and venue.
        let orchestrator: AgentGroup<K> = vec![Box::new(orchestrator)];
        let pair: AgentGroup<K> = vec![Box::new((orchestrator, other_agents))];
        return Ok(Box::new(pair));
    }
    Ok(match roles {
        [Role::Orchestrator] => Box::new(orchestrator(ends, parts)?),
        [Role::Gateway(index)] if !has_checked => Box::new(gateway(ends, parts, *index, venue)?),
        [Role::Orchestrator, gateways @ ..] if gateways.iter().all(is_gateway) => {
            // The consumer of the completions is attached before their producers.
            let orchestrator = orchestrator(ends, parts)?;
            Box::new((orchestrator, all_gateways(ends, parts, gateways, venue)?))
        }
        roles if roles.iter().all(is_gateway) => Box::new(all_gateways(ends, parts, roles, venue)?),
        roles => Box::new(any_agents(ends, parts, roles, venue, strategy)?),
    })
}

/// Builds an agent for each role, each behind a dynamic call per duty cycle.
fn any_agents<K: LoopClock, P: Producer + 'static, C: Consumer + 'static, V: Venue + 'static>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_, K>,
) -> Result<AgentGroup<K>> {
    let mut agents: AgentGroup<K> = Vec::with_capacity(roles.len());
    for role in roles {
        agents.push(match role {
            Role::Strategy(index) => strategy(parts, *index)? as Box<dyn AnyAgent<K>>,
            Role::Orchestrator => Box::new(orchestrator(ends, parts)?) as Box<dyn AnyAgent<K>>,
            Role::Gateway(index) if parts.plan.validates_venue(*index) => {
                let make = |parts: &mut RoleContext<'_, '_>, context: &VenueContext| {
                    validating_session(parts, context, venue)
                };
                // Not measured: all techniques share one agent.
                let completion = completion(ends, parts, *index).map(BoxedProducer::new)?;
                Box::new(gateway_through(completion, parts, *index, &make)?) as Box<dyn AnyAgent<K>>
            }
            Role::Gateway(index) => Box::new(gateway(ends, parts, *index, venue)?) as Box<dyn AnyAgent<K>>,
            Role::Exchange(venue) => Box::new(book::exchange(parts, *venue)?) as Box<dyn AnyAgent<K>>,
            role => bail!("{role} is one end of a benchmark: it has a thread of its own"),
        });
    }
    Ok(agents)
}

/// Builds the agent of a thread with the gateways of exchanges, which may run the exchanges too.
pub(super) fn book_agent<K: LoopClock, P: Producer + 'static, C: Consumer + 'static>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    roles: &[Role],
    strategy: &StrategyBuilder<'_, K>,
) -> Result<Box<dyn RoleAgent<K>>> {
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_));
    let is_exchange = |role: &Role| matches!(role, Role::Exchange(_));
    let split = roles.iter().position(is_exchange).unwrap_or(roles.len());
    let (engine, exchanges) = roles.split_at(split);
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if parts.plan.validates_venue(*index));
    let is_journaled = engine.contains(&Role::Orchestrator) && parts.plan.engine_has_journal();
    if is_journaled || exchanges.is_empty() || !exchanges.iter().all(is_exchange) || engine.iter().any(checks)
    {
        return thread_agent(ends, parts, roles, &book::session, strategy);
    }
    Ok(match engine {
        [] => Box::new(book::all_exchanges(parts, exchanges)?),
        [Role::Orchestrator, rest @ ..] if rest.iter().all(is_gateway) => {
            let orchestrator = orchestrator(ends, parts)?;
            let gateways = all_gateways(ends, parts, rest, &book::session)?;
            Box::new((orchestrator, (gateways, book::all_exchanges(parts, exchanges)?)))
        }
        rest if rest.iter().all(is_gateway) => {
            let gateways = all_gateways(ends, parts, rest, &book::session)?;
            Box::new((gateways, book::all_exchanges(parts, exchanges)?))
        }
        _ => thread_agent(ends, parts, roles, &book::session, strategy)?,
    })
}

/// Builds a strategy's agent, with the faults that the plan injects into this incarnation.
pub(super) fn strategy_or_faulty<K: LoopClock, P: Producer + 'static, C, S: Strategy + Send + 'static>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    index: StrategyIndex,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<Box<dyn RoleAgent<K>>> {
    let RoleContext { plan, control, .. } = *parts;
    let epoch = control.incarnation(index).epoch;
    let context = context(plan, index, epoch, parts.attached)?;
    let submit = (ends.producer)(&submit_link(plan), index.as_usize(), parts.attached)?;
    let Some(faults) = OwnFaults::for_strategy(plan, index, epoch) else {
        return Ok(Box::new(strategy_agent(parts, &context, submit, make)?));
    };
    faulty_strategy(parts, &context, faults, BoxedProducer::new(submit), make)
}

/// Builds the agent of a strategy with injected faults. Not measured: all techniques share one
/// agent without its own loop.
#[inline(never)]
fn faulty_strategy<K: LoopClock, S: Strategy + Send + 'static>(
    parts: &mut RoleContext<'_, '_>,
    context: &strategy::Context,
    faults: OwnFaults,
    submit: BoxedProducer,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<Box<dyn RoleAgent<K>>> {
    let submit = faults.producer(submit, parts.act);
    submit.expose_heap(parts.attached);
    let agent = strategy_agent(parts, context, BoxedProducer::new(submit.clone()), make)?;
    let to_arm = submit.clone();
    parts.when_attached.push(Box::new(move |attached, status| to_arm.arm(attached, status)));
    let faulty: AgentGroup<K> = vec![Box::new(faults.agent(agent, submit))];
    Ok(Box::new(faulty))
}

fn strategy_agent<P: Producer, S: Strategy>(
    parts: &mut RoleContext<'_, '_>,
    context: &strategy::Context,
    submit: P,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<StrategyAgent<S, P>> {
    let session = session(parts.plan, context, submit, parts.attached)?;
    let market = segments::attach_market(parts.attached, parts.plan)?;
    let working_set = WorkingSet::allocate(&parts.plan.trading().memory, context.strategy);
    let agent = StrategyAgent::new(make(context), session).with_market_data(market);
    Ok(agent.with_working_set(working_set))
}

/// Returns the built-in strategy that sends the orders of its schedule.
pub(super) fn player(context: &strategy::Context) -> BuiltIn {
    BuiltIn::Player(context.player())
}

/// Builds the agent of a built-in player strategy, which sends the orders of its schedule to the
/// engine through `submit`.
pub fn strategy(
    plan: &Plan,
    index: StrategyIndex,
    epoch: u16,
    submit: BoxedProducer,
    attached: &mut Attached<'_>,
) -> Result<StrategyAgent<BuiltIn, BoxedProducer>> {
    let context = context(plan, index, epoch, attached)?;
    Ok(StrategyAgent::new(player(&context), session(plan, &context, submit, attached)?))
}

/// Attaches the orchestrator of an engine with a journal, promoted before the threads were built;
/// `None` without a journal.
fn successor<P, C: Consumer>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
) -> Result<Option<Orchestrator<C, Writer>>> {
    let Some(RecoveredEngine { successor, found, now }) = parts.recovered.engine.take() else {
        return Ok(None);
    };
    let RoleContext { plan, ref mut attached, .. } = *parts;
    let attach = if plan.engine_is_restartable() { ends.resume_consumer } else { ends.consumer };
    let submit = attach(&submit_link(plan), attached)?;
    let completion = attach(&completion_link(plan), attached)?;
    let orchestrator = successor.attach(submit, completion, &found)?;
    let (supervision, repairs) = supervision(parts)?;
    Ok(Some(orchestrator.supervised(supervision, repairs, now)))
}

fn orchestrator<P, C: Consumer>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
) -> Result<Orchestrator<C>> {
    let RoleContext { plan, ref mut attached, .. } = *parts;
    let mut submit = (ends.consumer)(&submit_link(plan), attached)?;
    plan.trading().spares().for_each(|spare| submit.forget(spare.as_usize()));
    let completion = (ends.consumer)(&completion_link(plan), attached)?;
    let outputs = outputs(plan, false, send_queues(plan), attached)?
        .with_commands(segments::attach_command_channel(attached)?);
    let orchestrator = Orchestrator::new(submit, completion, new_core(plan)?, outputs, ());
    let (supervision, repairs) = supervision(parts)?;
    Ok(orchestrator.supervised(supervision, repairs, 0))
}

fn supervision(parts: &mut RoleContext<'_, '_>) -> Result<(Supervision, RepairsWriter)> {
    let repairs = RepairsWriter::new(&parts.attached.region(REPAIRS, supervision::KIND)?.words());
    Ok((Supervision::new(parts.control.clone()), repairs))
}

/// Creates the engine's state machine for a plan.
pub(super) fn new_core(plan: &Plan) -> Result<Core> {
    let trading = plan.trading();
    let (strategies, venues) = (trading.strategies.into(), trading.venues.into());
    let resumable: Vec<bool> =
        GatewayIndex::first(trading.gateways()).map(|gateway| plan.can_resume_gateway(gateway)).collect();
    let setup = RiskSetup {
        spares: trading.spare_strategies.into(),
        credentials: trading.credentials.into(),
        instruments: &trading.instruments,
        limits: &trading.limits,
        ns_per_tick: plan.ns_per_tick,
        orders: &trading.orders,
        venue_orders: &trading.venue_orders,
        resumable_gateways: &resumable,
        ..RiskSetup::open_orders(strategies, venues, trading.max_open.into())
    };
    Ok(Core::new(&setup)?)
}

/// Creates the memory for the orchestrator's queued messages: to each gateway, then to each
/// strategy.
pub(super) fn send_queues(plan: &Plan) -> Vec<SendQueue> {
    let trading = plan.trading();
    let gateways = GatewayIndex::first(trading.gateways()).map(|gateway| trading.pending_capacity(gateway));
    let reports = trading.max_open as usize * usize::from(trading.reports_per_order);
    let strategies = StrategyIndex::first(trading.strategies).map(|_| reports);
    gateways.chain(strategies).map(SendQueue::with_capacity).collect()
}

/// Attaches the orchestrator's outputs, with the queues of [`send_queues`], as the first
/// orchestrator or as the successor of a crashed one.
pub(super) fn outputs(
    plan: &Plan,
    is_successor: bool,
    queues: Vec<SendQueue>,
    attached: &mut Attached<'_>,
) -> Result<Outputs> {
    let mut queues = queues.into_iter();
    let thread = plan.thread_of(Role::Orchestrator).context("every run has an orchestrator")?;
    let thread = &plan.threads[thread];
    let trading = plan.trading();
    let end = |ring_name: String, attached: &mut Attached<'_>| match is_successor {
        true => attached.resume_own_sender(&ring_name),
        false => attached.sender(&ring_name),
    };
    let mut inboxes = Vec::new();
    for (gateway, queue) in GatewayIndex::first(trading.gateways()).zip(queues.by_ref()) {
        let ring = end(inbox(gateway), attached)?;
        let bell = bell_of(attached, plan, thread, Role::Gateway(gateway))?;
        inboxes.push(Sender::new(ring, bell, queue));
    }
    let mut returns = Vec::new();
    for (index, queue) in StrategyIndex::first(trading.strategies).zip(queues) {
        let ring = end(return_path(index), attached)?;
        let bell = bell_of(attached, plan, thread, Role::Strategy(index))?;
        returns.push(Sender::bounded(ring, bell, queue));
    }
    let inherited = segments::attach_inherited_positions_writers(attached, plan)?;
    Ok(Outputs::new(inboxes, returns, TimedWork::new(trading.work_ns)).with_inherited_positions(inherited))
}

/// Attaches a gateway's end of the completion hand-off, after a crashed one's if there was one.
fn completion<P, C>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    index: GatewayIndex,
) -> Result<P> {
    let is_heir = parts.recovered.gateways.contains_key(&index);
    // If a gateway crashed alone its ring was reset.
    let attach =
        if is_heir && parts.plan.engine_is_restartable() { ends.resume_producer } else { ends.producer };
    Ok(attach(&completion_link(parts.plan), index.0.into(), parts.attached)?)
}

fn gateway<P: Producer, C, V: Venue>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    index: GatewayIndex,
    make: &VenueBuilder<'_, V>,
) -> Result<Gateway<P, V>> {
    let completion = completion(ends, parts, index)?;
    gateway_through(completion, parts, index, make)
}

/// Builds a gateway for each role, of which all are gateways.
#[inline(never)]
fn all_gateways<P: Producer, C, V: Venue>(
    ends: TechniqueEnds<P, C>,
    parts: &mut RoleContext<'_, '_>,
    roles: &[Role],
    make: &VenueBuilder<'_, V>,
) -> Result<Vec<Gateway<P, V>>> {
    let mut gateways = Vec::with_capacity(roles.len());
    for role in roles {
        gateways.push(gateway(ends, parts, GatewayIndex(role.index()), make)?);
    }
    Ok(gateways)
}

fn gateway_through<P: Producer, V: Venue>(
    completion: P,
    parts: &mut RoleContext<'_, '_>,
    index: GatewayIndex,
    make: &VenueBuilder<'_, V>,
) -> Result<Gateway<P, V>> {
    let venue = make(parts, &venue_context(parts.plan, index))?;
    let (inbox, bell, resume_point) = gateway_inbox(parts, index)?;
    let gateway = Gateway::new(index.0, inbox, completion, bell, venue);
    let gateway = gateway.with_fills_logged_first(parts.plan.can_lose_gateways());
    Ok(match resume_point {
        Some(resume_point) => gateway.resume_from(resume_point),
        None => gateway,
    })
}

fn venue_context(plan: &Plan, index: GatewayIndex) -> VenueContext {
    let trading = plan.trading();
    VenueContext {
        venue: trading.venue_of(index).0,
        gateway: index.0,
        venues: trading.venues,
        strategies: trading.strategies,
        max_held: trading.max_held as usize,
    }
}

/// Attaches a gateway's inbox, after a predecessor if there was one. Returns it with the
/// orchestrator's doorbell and the point at which the predecessor stopped.
fn gateway_inbox(
    parts: &mut RoleContext<'_, '_>,
    index: GatewayIndex,
) -> Result<(spsc::Consumer, Option<Doorbell>, Option<GatewayResumePoint>)> {
    let bell = bell_of(parts.attached, parts.plan, parts.thread, Role::Orchestrator)?;
    let resume_point = parts.recovered.gateways.remove(&index);
    Ok((parts.attached.resume_receiver(&inbox(index))?, bell, resume_point))
}

/// Creates a gateway's session that checks every report of its venue, which may have injected
/// faults.
fn validating_session<V: Venue>(
    parts: &mut RoleContext<'_, '_>,
    context: &VenueContext,
    make: &VenueBuilder<'_, V>,
) -> Result<ValidatingSession<FaultyVenue<V>>> {
    let plan = parts.plan;
    let trading = plan.trading();
    let silence_ns = match trading.venue_timeout_ns {
        0 => trading.max_delay_ns.saturating_add(SILENCE_NS),
        ns => ns,
    };
    let venue = FaultyVenue::new(make(parts, context)?, context, &plan.faults);
    Ok(ValidatingSession::new(venue, ValidationRules { silence_ns, max_held: context.max_held }))
}
