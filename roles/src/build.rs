//! How each role is built: the half of its record that needs the crates which implement the roles.

use super::agents::{AnyAgent, Mixed, RoleAgent};
use super::book;
use super::checked::checked;
use super::ends::{BoxedProducer, Ends};
use super::estate;
use super::parts::{Parts, VenueBuilder};
use super::takeover::Takeover;
use crate::faults::own::OwnFaults;
use anyhow::{Context, Result};
use gateway::{Gateway, Venue, VenueContext};
use journal::Writer;
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, Outputs, Supervision};
use protocol::plan::{Plan, Role};
use protocol::segments::{self, bell_of, completion_link, submit_link};
use protocol::sender::Sender;
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use protocol::trading::{inbox, return_path};
use shm::attached::Attached;
use shm::ring::{Consumer, Producer};
use std::sync::PoisonError;
use strategy::attach::{context, session};
use strategy::{BuiltIn, Strategy, StrategyAgent};
use system::work::Work;

/// Builds the agent of a strategy.
pub(super) type BuildStrategy =
    Box<dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + Send + Sync>;

/// Builds the strategy with an index, of whatever kind that is.
pub(super) type StrategyBuilder<'a> = dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + 'a;

/// Builds the agent of a thread whose roles are the engine's, or a mixture.
pub(super) fn thread_agent<P: Producer + 'static, C: Consumer + 'static, V: Venue + 'static>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_>,
) -> Result<Box<dyn RoleAgent>> {
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if parts.plan.is_checked(*index));
    let has_checked = roles.iter().any(checks);
    // One that checks is not among those whose loops are compiled for what is measured.
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_)) && !has_checked;
    let gateway = |parts: &mut Parts<'_, '_>, index| gateway(ends, parts, index, venue);
    let journaled = match roles.contains(&Role::Orchestrator) {
        true => successor(ends, parts)?,
        false => None,
    };
    if let Some(orchestrator) = journaled {
        let others: Vec<Role> = roles.iter().copied().filter(|role| *role != Role::Orchestrator).collect();
        let others = any_agents(ends, parts, &others, venue, strategy)?;
        // Loops of its own would be compiled for every technique and venue once more.
        let pair = (Mixed(vec![Box::new(orchestrator)]), Mixed(others));
        return Ok(Box::new(Mixed(vec![Box::new(pair)])));
    }
    Ok(match roles {
        [Role::Orchestrator] => Box::new(orchestrator(ends, parts)?),
        [Role::Gateway(index)] if !has_checked => Box::new(gateway(parts, *index)?),
        [Role::Orchestrator, gateways @ ..] if gateways.iter().all(is_gateway) => {
            // The consumer of the completions is attached before their producers.
            let orchestrator = orchestrator(ends, parts)?;
            let gateways: Result<Vec<_>> = gateways.iter().map(|role| gateway(parts, role.index())).collect();
            Box::new((orchestrator, gateways?))
        }
        gateways if gateways.iter().all(is_gateway) => {
            let gateways: Result<Vec<_>> = gateways.iter().map(|role| gateway(parts, role.index())).collect();
            Box::new(gateways?)
        }
        roles => Box::new(Mixed(any_agents(ends, parts, roles, venue, strategy)?)),
    })
}

/// Builds an agent for each role, each behind a dynamic call a duty cycle.
fn any_agents<P: Producer + 'static, C: Consumer + 'static, V: Venue + 'static>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_>,
) -> Result<Vec<Box<dyn AnyAgent>>> {
    let one = |role: &Role| {
        Ok(match role {
            Role::Strategy(index) => strategy(parts, *index)? as Box<dyn AnyAgent>,
            Role::Orchestrator => Box::new(orchestrator(ends, parts)?) as Box<dyn AnyAgent>,
            Role::Gateway(index) if parts.plan.is_checked(*index) => {
                let make = |parts: &mut Parts<'_, '_>, context: &VenueContext| checked(parts, context, venue);
                // Nothing of it is measured: those of all techniques share one agent.
                let completion = completion(ends, parts, *index).map(BoxedProducer::new)?;
                Box::new(gateway_through(completion, parts, *index, &make)?) as Box<dyn AnyAgent>
            }
            Role::Gateway(index) => Box::new(gateway(ends, parts, *index, venue)?) as Box<dyn AnyAgent>,
            Role::Exchange(venue) => Box::new(book::exchange(parts, *venue)?) as Box<dyn AnyAgent>,
        })
    };
    roles.iter().map(one).collect()
}

/// The same of a thread whose gateways are those of exchanges, and which may run exchanges behind
/// them.
pub(super) fn book_agent<P: Producer + 'static, C: Consumer + 'static>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    strategy: &StrategyBuilder<'_>,
) -> Result<Box<dyn RoleAgent>> {
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_));
    let is_exchange = |role: &Role| matches!(role, Role::Exchange(_));
    let split = roles.iter().position(is_exchange).unwrap_or(roles.len());
    let (engine, exchanges) = roles.split_at(split);
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if parts.plan.is_checked(*index));
    let is_journaled = engine.contains(&Role::Orchestrator) && parts.plan.engine_has_journal();
    if is_journaled || exchanges.is_empty() || !exchanges.iter().all(is_exchange) || engine.iter().any(checks)
    {
        return thread_agent(ends, parts, roles, &book::session, strategy);
    }
    let gateways = |parts: &mut Parts<'_, '_>, roles: &[Role]| -> Result<Vec<_>> {
        roles.iter().map(|role| gateway(ends, parts, role.index(), &book::session)).collect()
    };
    let exchanges = |parts: &mut Parts<'_, '_>| -> Result<Vec<_>> {
        exchanges.iter().map(|role| book::exchange(parts, role.index())).collect()
    };
    Ok(match engine {
        [] => Box::new(exchanges(parts)?),
        [Role::Orchestrator, rest @ ..] if rest.iter().all(is_gateway) => {
            let orchestrator = orchestrator(ends, parts)?;
            let gateways = gateways(parts, rest)?;
            Box::new((orchestrator, (gateways, exchanges(parts)?)))
        }
        rest if rest.iter().all(is_gateway) => {
            let gateways = gateways(parts, rest)?;
            Box::new((gateways, exchanges(parts)?))
        }
        _ => thread_agent(ends, parts, roles, &book::session, strategy)?,
    })
}

/// A strategy, faulty if the plan has a fault for this incarnation.
pub(super) fn strategy_or_faulty<P: Producer + 'static, C, S: Strategy + Send + 'static>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<Box<dyn RoleAgent>> {
    let Parts { plan, control, act, .. } = *parts;
    let epoch = control.life(index).epoch;
    let context = context(plan, index, epoch, parts.attached)?;
    let submit = (ends.producer)(&submit_link(plan), index.into(), parts.attached)?;
    let Some(faults) = OwnFaults::of(plan, index, epoch) else {
        return Ok(Box::new(strategy_agent(parts, &context, submit, make)?));
    };
    // Nothing of it is measured: those of all techniques share one agent, without a loop of its
    // own.
    let submit = faults.producer(BoxedProducer::new(submit), act);
    let agent = strategy_agent(parts, &context, BoxedProducer::new(submit.clone()), make)?;
    let to_arm = submit.clone();
    parts.when_attached.push(Box::new(move |writable, status| to_arm.arm(writable, status)));
    Ok(Box::new(Mixed(vec![Box::new(faults.agent(agent, submit))])))
}

fn strategy_agent<P: Producer, S: Strategy>(
    parts: &mut Parts<'_, '_>,
    context: &strategy::Context,
    submit: P,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<StrategyAgent<S, P>> {
    let session = session(parts.plan, context, submit, parts.attached)?;
    let market = segments::market(parts.attached, parts.plan)?;
    Ok(StrategyAgent::new(make(context), session).hearing(market))
}

/// The player of a schedule as one of the built-in strategies.
pub(super) fn player(context: &strategy::Context) -> BuiltIn {
    BuiltIn::Player(context.player())
}

/// The player of a strategy that submits through that producer.
///
/// # Errors
/// A segment that is missing or not what it should be.
pub fn strategy(
    plan: &Plan,
    index: u16,
    epoch: u16,
    submit: BoxedProducer,
    attached: &mut Attached<'_>,
) -> Result<StrategyAgent<BuiltIn, BoxedProducer>> {
    let context = context(plan, index, epoch, attached)?;
    Ok(StrategyAgent::new(player(&context), session(plan, &context, submit, attached)?))
}

/// The orchestrator of an engine with a journal, promoted before the threads were built; `None`
/// without a journal.
fn successor<P, C: Consumer>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
) -> Result<Option<Orchestrator<C, Writer>>> {
    let Parts { plan, ref mut attached, .. } = *parts;
    let recovery = estate::recovery(attached);
    let mut recovery = recovery.lock().unwrap_or_else(PoisonError::into_inner);
    let recovered = recovery.as_mut().and_then(|engine| Some((engine.successor.take()?, &engine.recovered)));
    let Some((successor, recovered)) = recovered else { return Ok(None) };
    let attach = if plan.engine_is_restartable() { ends.resume } else { ends.consumer };
    let submit = attach(&submit_link(plan), attached)?;
    let completion = attach(&completion_link(plan), attached)?;
    let orchestrator = successor.attach(submit, completion, recovered)?;
    let now = (Takeover::of(attached).now)(plan);
    let (supervision, repairs) = supervision(parts)?;
    Ok(Some(orchestrator.supervised_again(supervision, repairs, now)))
}

/// The orchestrator of an engine without a journal.
fn orchestrator<P, C: Consumer>(ends: Ends<P, C>, parts: &mut Parts<'_, '_>) -> Result<Orchestrator<C>> {
    let Parts { plan, ref mut attached, .. } = *parts;
    let submit = (ends.consumer)(&submit_link(plan), attached)?;
    let completion = (ends.consumer)(&completion_link(plan), attached)?;
    let outputs = outputs(plan, false, attached)?.commanded(segments::desk(attached)?);
    let orchestrator = Orchestrator::new(submit, completion, core_of(plan)?, outputs, ());
    let (supervision, repairs) = supervision(parts)?;
    Ok(orchestrator.supervised(supervision, repairs))
}

/// What the launcher and the orchestrator tell each other.
fn supervision(parts: &mut Parts<'_, '_>) -> Result<(Supervision, RepairsWriter)> {
    let repairs = RepairsWriter::new(&parts.attached.region(REPAIRS, supervision::KIND)?.words());
    Ok((Supervision::new(parts.control.clone()), repairs))
}

/// The engine's core before its first input.
pub(super) fn core_of(plan: &Plan) -> Result<Core> {
    let trading = plan.trading();
    let (strategies, venues) = (trading.strategies.into(), trading.venues.into());
    let resumable: Vec<bool> = (0..trading.gateways()).map(|gateway| plan.resumes_gateway(gateway)).collect();
    let setup = RiskSetup {
        credentials: trading.credentials.into(),
        instruments: &trading.instruments,
        limits: &trading.limits,
        ns_per_tick: plan.ns_per_tick,
        orders: &trading.orders,
        venue_orders: &trading.venue_orders,
        gateway_limit: trading.max_waiting.map(u64::from),
        resumable_gateways: &resumable,
        ..RiskSetup::open_orders(strategies, venues, trading.max_open.into())
    };
    Ok(Core::new(&setup)?)
}

/// What the orchestrator sends through: attached after a crashed one's if `is_successor`, or as the
/// first.
pub(super) fn outputs(plan: &Plan, is_successor: bool, attached: &mut Attached<'_>) -> Result<Outputs> {
    let thread = plan.thread_of(Role::Orchestrator).context("every run has an orchestrator")?;
    let thread = &plan.threads[thread];
    let trading = plan.trading();
    let end = |what: String, attached: &mut Attached<'_>| match is_successor {
        true => attached.resume_sender(&what),
        false => attached.sender(&what),
    };
    let mut inboxes = Vec::new();
    for gateway in 0..trading.gateways() {
        let ring = end(inbox(gateway), attached)?;
        let bell = bell_of(attached, plan, thread, Role::Gateway(gateway))?;
        inboxes.push(Sender::new(ring, bell, trading.waiting_room(gateway)));
    }
    let mut returns = Vec::new();
    for index in 0..trading.strategies {
        let ring = end(return_path(index), attached)?;
        let bell = bell_of(attached, plan, thread, Role::Strategy(index))?;
        let capacity = trading.max_open as usize * usize::from(trading.reports_an_order);
        returns.push(Sender::bounded(ring, bell, capacity));
    }
    Ok(Outputs::new(inboxes, returns, Work::new(trading.work_ns)))
}

/// What a gateway hands its reports over through: in the place of a dead one's, if there was one.
fn completion<P, C>(ends: Ends<P, C>, parts: &mut Parts<'_, '_>, index: u16) -> Result<P> {
    let is_heir = estate::gateway(parts.attached, index).is_some();
    // It was made anew, if a gateway has died alone.
    let attach = if is_heir && parts.plan.engine_is_restartable() { ends.inherit } else { ends.producer };
    Ok(attach(&completion_link(parts.plan), index.into(), parts.attached)?)
}

/// The gateway with that index.
fn gateway<P: Producer, C, V: Venue>(
    ends: Ends<P, C>,
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &VenueBuilder<'_, V>,
) -> Result<Gateway<P, V>> {
    let completion = completion(ends, parts, index)?;
    gateway_through(completion, parts, index, make)
}

fn gateway_through<P: Producer, V: Venue>(
    completion: P,
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &VenueBuilder<'_, V>,
) -> Result<Gateway<P, V>> {
    let Parts { plan, thread, .. } = *parts;
    let trading = plan.trading();
    let context = VenueContext {
        venue: trading.venue_of(index),
        gateway: index,
        venues: trading.venues,
        strategies: trading.strategies,
        max_held: trading.max_held as usize,
    };
    let venue = make(parts, &context)?;
    let attached = &mut parts.attached;
    let bell = bell_of(attached, plan, thread, Role::Orchestrator)?;
    let estate = estate::gateway(attached, index);
    // In the place of a predecessor, if there was one; else the same as a first one.
    let inbox = attached.resume_receiver(&inbox(index))?;
    let gateway = Gateway::new(index, inbox, completion, bell, venue);
    let gateway = gateway.logging_fills_first(plan.gateways_may_die());
    Ok(match estate {
        Some(estate) => gateway.in_place_of(estate),
        None => gateway,
    })
}
