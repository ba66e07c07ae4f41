//! How each role is built: the half of its record that needs the crates which implement the roles.

use super::agents::{AnyAgent, Mixed, RoleAgent};
use super::book;
use super::checked::checked;
use super::estate;
use super::parts::{Parts, VenueBuilder};
use super::takeover::Takeover;
use crate::faults::own::OwnFaults;
use anyhow::{Context, Result};
use gateway::{Gateway, SessionVenue, Venue, VenueContext};
use journal::Writer;
use orchestrator::risk::RiskSetup;
use orchestrator::work::Work;
use orchestrator::{Core, Orchestrator, Outputs, Supervision};
use protocol::plan::{Plan, Role};
use protocol::segments::{self, bell_of, completion_link, submit_link};
use protocol::sender::Sender;
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use protocol::trading::{inbox, return_path};
use shm::attached::Attached;
use shm::ring::{Link, Producer};
use std::sync::PoisonError;
use strategy::attach::{context, session};
use strategy::{Player, Strategy, StrategyAgent};

/// Builds the agent of a strategy.
pub(super) type BuildStrategy =
    Box<dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + Send + Sync>;

/// Builds the strategy with an index, of whatever kind that is.
pub(super) type StrategyBuilder<'a> = dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + 'a;

/// Builds the agent of a thread whose roles are the engine's, or a mixture.
pub(super) fn thread_agent<T: Link, V: Venue + 'static>(
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_>,
) -> Result<Box<dyn RoleAgent>> {
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if parts.plan.is_checked(*index));
    let has_checked = roles.iter().any(checks);
    // One that checks is not among those whose loops are compiled for what is measured.
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_)) && !has_checked;
    let gateway = |parts: &mut Parts<'_, '_>, index| gateway::<T, V>(parts, index, venue);
    let journaled = match roles.contains(&Role::Orchestrator) {
        true => successor::<T>(parts)?,
        false => None,
    };
    if let Some(orchestrator) = journaled {
        let others: Vec<Role> = roles.iter().copied().filter(|role| *role != Role::Orchestrator).collect();
        let others = any_agents::<T, V>(parts, &others, venue, strategy)?;
        // Loops of its own would be compiled for every technique and venue once more.
        let pair = (Mixed(vec![Box::new(orchestrator)]), Mixed(others));
        return Ok(Box::new(Mixed(vec![Box::new(pair)])));
    }
    Ok(match roles {
        [Role::Orchestrator] => Box::new(orchestrator::<T>(parts)?),
        [Role::Gateway(index)] if !has_checked => Box::new(gateway(parts, *index)?),
        [Role::Orchestrator, gateways @ ..] if gateways.iter().all(is_gateway) => {
            // The consumer of the completions is attached before their producers.
            let orchestrator = orchestrator::<T>(parts)?;
            let gateways: Result<Vec<_>> = gateways.iter().map(|role| gateway(parts, role.index())).collect();
            Box::new((orchestrator, gateways?))
        }
        gateways if gateways.iter().all(is_gateway) => {
            let gateways: Result<Vec<_>> = gateways.iter().map(|role| gateway(parts, role.index())).collect();
            Box::new(gateways?)
        }
        roles => Box::new(Mixed(any_agents::<T, V>(parts, roles, venue, strategy)?)),
    })
}

/// Builds an agent for each role, each behind a dynamic call a duty cycle.
fn any_agents<T: Link, V: Venue + 'static>(
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    venue: &VenueBuilder<'_, V>,
    strategy: &StrategyBuilder<'_>,
) -> Result<Vec<Box<dyn AnyAgent>>> {
    let one = |role: &Role| {
        Ok(match role {
            Role::Strategy(index) => strategy(parts, *index)? as Box<dyn AnyAgent>,
            Role::Orchestrator => Box::new(orchestrator::<T>(parts)?) as Box<dyn AnyAgent>,
            Role::Gateway(index) if parts.plan.is_checked(*index) => {
                let make = |parts: &mut Parts<'_, '_>, context: &VenueContext| checked(parts, context, venue);
                Box::new(self::gateway::<T, _>(parts, *index, &make)?) as Box<dyn AnyAgent>
            }
            Role::Gateway(index) => Box::new(gateway::<T, V>(parts, *index, venue)?) as Box<dyn AnyAgent>,
            Role::Exchange(venue) => Box::new(book::exchange(parts, *venue)?) as Box<dyn AnyAgent>,
        })
    };
    roles.iter().map(one).collect()
}

/// The same of a thread whose gateways are those of exchanges, and which may run exchanges behind them.
pub(super) fn book_agent<T: Link>(
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
        return thread_agent::<T, SessionVenue>(parts, roles, &book::session, strategy);
    }
    let gateways = |parts: &mut Parts<'_, '_>, roles: &[Role]| -> Result<Vec<_>> {
        roles.iter().map(|role| gateway::<T, SessionVenue>(parts, role.index(), &book::session)).collect()
    };
    let exchanges = |parts: &mut Parts<'_, '_>| -> Result<Vec<_>> {
        exchanges.iter().map(|role| book::exchange(parts, role.index())).collect()
    };
    Ok(match engine {
        [] => Box::new(exchanges(parts)?),
        [Role::Orchestrator, rest @ ..] if rest.iter().all(is_gateway) => {
            let orchestrator = orchestrator::<T>(parts)?;
            let gateways = gateways(parts, rest)?;
            Box::new((orchestrator, (gateways, exchanges(parts)?)))
        }
        rest if rest.iter().all(is_gateway) => {
            let gateways = gateways(parts, rest)?;
            Box::new((gateways, exchanges(parts)?))
        }
        _ => thread_agent::<T, SessionVenue>(parts, roles, &book::session, strategy)?,
    })
}

/// A strategy, faulty if the plan has a fault for this incarnation.
pub(super) fn strategy_or_faulty<T: Link, S: Strategy + Send + 'static>(
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &dyn Fn(&strategy::Context) -> S,
) -> Result<Box<dyn RoleAgent>> {
    let Parts { plan, control, act, .. } = *parts;
    let epoch = control.life(index).epoch;
    let context = context(plan, index, epoch, parts.attached)?;
    let submit = parts.attached.producer::<T>(&submit_link(plan), index.into())?;
    let Some(faults) = OwnFaults::of(plan, index, epoch) else {
        let session = session(plan, &context, submit, parts.attached)?;
        let market = segments::market(parts.attached, plan)?;
        return Ok(Box::new(StrategyAgent::new(make(&context), session).hearing(market)));
    };
    let submit = faults.producer(submit, act);
    let session = session(plan, &context, submit.clone(), parts.attached)?;
    let market = segments::market(parts.attached, plan)?;
    let agent = StrategyAgent::new(make(&context), session).hearing(market);
    let to_arm = submit.clone();
    parts.when_attached.push(Box::new(move |writable, status| to_arm.arm(writable, status)));
    // Nothing of it is measured: all faulty strategies share one loop.
    Ok(Box::new(Mixed(vec![Box::new(faults.agent(agent, submit))])))
}

/// The player of a strategy that submits through that producer.
///
/// # Errors
/// A segment that is missing or not what it should be.
pub fn strategy<P: Producer>(
    plan: &Plan,
    index: u16,
    epoch: u16,
    submit: P,
    attached: &mut Attached<'_>,
) -> Result<StrategyAgent<Player, P>> {
    let context = context(plan, index, epoch, attached)?;
    Ok(StrategyAgent::new(context.player(), session(plan, &context, submit, attached)?))
}

/// The orchestrator of an engine with a journal, promoted before the threads were built; `None` without a journal.
fn successor<T: Link>(parts: &mut Parts<'_, '_>) -> Result<Option<Orchestrator<T::Consumer, Writer>>> {
    let Parts { plan, ref mut attached, .. } = *parts;
    let recovery = estate::recovery(attached);
    let mut recovery = recovery.lock().unwrap_or_else(PoisonError::into_inner);
    let recovered = recovery.as_mut().and_then(|engine| Some((engine.successor.take()?, &engine.recovered)));
    let Some((successor, recovered)) = recovered else { return Ok(None) };
    let (submit, completion) = match plan.engine_comes_back() {
        true => (T::resume(&submit_link(plan), attached)?, T::resume(&completion_link(plan), attached)?),
        false => (T::consumer(&submit_link(plan), attached)?, T::consumer(&completion_link(plan), attached)?),
    };
    let orchestrator = successor.attach(submit, completion, recovered)?;
    let now = (Takeover::of(attached).now)(plan);
    let (supervision, repairs) = supervision(parts)?;
    Ok(Some(orchestrator.supervised_again(supervision, repairs, now)))
}

/// The orchestrator of an engine without a journal.
fn orchestrator<T: Link>(parts: &mut Parts<'_, '_>) -> Result<Orchestrator<T::Consumer>> {
    let Parts { plan, ref mut attached, .. } = *parts;
    let submit = attached.consumer::<T>(&submit_link(plan))?;
    let completion = attached.consumer::<T>(&completion_link(plan))?;
    let outputs = outputs(plan, false, attached)?.commanded(segments::desk(attached)?);
    let orchestrator = Orchestrator::new(submit, completion, core_of(plan)?, outputs);
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
    let setup = RiskSetup {
        credentials: trading.credentials.into(),
        instruments: &trading.instruments,
        limits: &trading.limits,
        ns_per_tick: plan.ns_per_tick,
        ..RiskSetup::open_orders(strategies, venues, trading.max_open.into())
    };
    let core = Core::new(&setup)?.expecting(&trading.orders).expecting_at_venues(&trading.venue_orders);
    let resumable = (0..trading.gateways()).map(|gateway| plan.resumes_gateway(gateway)).collect();
    let core = core.with_gateway_deaths(plan.gateways_may_die(), resumable);
    Ok(core.with_gateway_limit(trading.max_waiting.map(u64::from)))
}

/// What the orchestrator sends through: attached after a crashed one's if `is_successor`, or as the first.
pub(super) fn outputs(plan: &Plan, is_successor: bool, attached: &mut Attached<'_>) -> Result<Outputs> {
    let thread = plan.thread_of(Role::Orchestrator).context("every run has an orchestrator")?;
    let thread = &plan.threads[thread];
    let trading = plan.trading();
    let end = |what: String, attached: &mut Attached<'_>| match is_successor {
        true => attached.heir(&what),
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

/// The gateway with that index.
fn gateway<T: Link, V: Venue>(
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &VenueBuilder<'_, V>,
) -> Result<Gateway<T::Producer, V>> {
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
    let inbox = attached.successor(&inbox(index))?;
    let completion = match plan.engine_comes_back() && estate.is_some() {
        true => T::inherit(&completion_link(plan), index.into(), attached)?,
        // It was made anew, if a gateway has died alone.
        false => attached.producer::<T>(&completion_link(plan), index.into())?,
    };
    let gateway = Gateway::new(index, inbox, completion, bell, venue);
    let gateway = gateway.logging_fills_first(plan.gateways_may_die());
    Ok(match estate {
        Some(estate) => gateway.in_place_of(estate),
        None => gateway,
    })
}
