//! How each role is built: the half of its record that needs the crates which implement the roles.

use super::agents::{AnyClock, RoleAgent};
use crate::faults::own::{Act, OwnFaults};
use crate::faults::venue::FaultyVenue;
use anyhow::{Context, Result};
use gateway::{Gateway, MessageLimit, Session as VenueSession, SessionRules, Venue, VenueContext};
use orchestrator::risk::Limits;
use orchestrator::work::Work;
use orchestrator::{Inbox, Orchestrator, ReturnPath, Supervision};
use protocol::control::Control;
use protocol::plan::{Idle, Plan, Role, Target, ThreadPlan};
use protocol::segments::{self, completion_link, submit_link};
use protocol::stamps::{Point, count_point};
use protocol::status::StatusWriter;
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use protocol::trading::{inbox, return_path};
use shm::attached::Attached;
use shm::bell::Bell;
use shm::memory::Words;
use shm::ring::{Link, Producer};
use strategy::{Player, Session, Strategy, StrategyAgent};

/// What is done once all memory of a process is attached: it is given everything that the process can write, and the status of
/// its thread.
pub(super) type WhenAttached = Box<dyn FnOnce(Vec<Words>, StatusWriter) + Send>;

/// What roles are built from.
pub(super) struct Parts<'a, 's> {
    pub plan: &'a Plan,
    /// The thread that they will run on.
    pub thread: &'a ThreadPlan,
    pub control: &'a Control,
    pub attached: &'a mut Attached<'s>,
    /// How faults are carried out.
    pub act: Act,
    pub when_attached: Vec<WhenAttached>,
}

/// Builds the agent of a strategy.
pub(super) type BuildStrategy =
    Box<dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + Send + Sync>;

/// Builds the strategy with an index, of whatever kind that is.
pub(super) type StrategyBuilder<'a> = dyn Fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>> + 'a;

/// How long a venue may say nothing about an order beyond the longest delay, in nanoseconds.
const SILENCE_NS: u64 = 1_000_000_000;

/// Builds the agent of a thread whose roles are the engine's, or a mixture.
pub(super) fn thread_agent<T: Link, V: Venue + 'static>(
    parts: &mut Parts<'_, '_>,
    roles: &[Role],
    venue: &dyn Fn(&VenueContext) -> V,
    strategy: &StrategyBuilder<'_>,
) -> Result<Box<dyn RoleAgent>> {
    let checks = |role: &Role| matches!(role, Role::Gateway(index) if is_checked(parts.plan, *index));
    let has_session = roles.iter().any(checks);
    // One with a session is not among those whose loops are compiled for what is measured.
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_)) && !has_session;
    let plan = parts.plan;
    let gateway = |parts: &mut Parts<'_, '_>, index| gateway::<T, V>(parts, index, venue);
    Ok(match roles {
        [Role::Orchestrator] => Box::new(orchestrator::<T>(parts)?),
        [Role::Gateway(index)] if !has_session => Box::new(gateway(parts, *index)?),
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
        roles => {
            let all: Result<Vec<Box<dyn RoleAgent>>> = roles
                .iter()
                .map(|role| match role {
                    Role::Strategy(index) => strategy(parts, *index),
                    Role::Orchestrator => Ok(Box::new(orchestrator::<T>(parts)?) as Box<dyn RoleAgent>),
                    Role::Gateway(index) if is_checked(parts.plan, *index) => {
                        let checked: Box<dyn AnyClock> =
                            Box::new(self::gateway::<T, _>(parts, *index, &|context| {
                                checked(plan, venue(context), context)
                            })?);
                        Ok(Box::new(checked) as Box<dyn RoleAgent>)
                    }
                    Role::Gateway(index) => Ok(Box::new(gateway(parts, *index)?) as Box<dyn RoleAgent>),
                })
                .collect();
            Box::new(all?)
        }
    })
}

/// Whether a gateway has a session with its venue, rather than the venue itself.
fn is_checked(plan: &Plan, venue: u16) -> bool {
    plan.trading().venue_limit > 0 || plan.faults.iter().any(|fault| fault.target == Target::Venue(venue))
}

/// The session with a venue, which does what the plan's faults make it do.
fn checked<V: Venue>(plan: &Plan, venue: V, context: &VenueContext) -> VenueSession<FaultyVenue<V>> {
    let trading = plan.trading();
    let silence_ns = match trading.venue_timeout_ns {
        0 => trading.max_delay_ns.saturating_add(SILENCE_NS),
        ns => ns,
    };
    let limit = (trading.venue_limit > 0)
        .then_some(MessageLimit { per_second: trading.venue_limit, rejects: trading.venue_limit_rejects });
    let max_held = context.max_held;
    let venue = FaultyVenue::new(venue, context.venue, &plan.faults, max_held);
    VenueSession::new(venue, SessionRules { silence_ns, limit, max_held })
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
        return Ok(Box::new(StrategyAgent::new(make(&context), session)));
    };
    let submit = faults.producer(submit, act);
    let session = session(plan, &context, submit.clone(), parts.attached)?;
    let agent = StrategyAgent::new(make(&context), session);
    let to_arm = submit.clone();
    parts.when_attached.push(Box::new(move |writable, status| to_arm.arm(writable, status)));
    // Nothing of it is measured: all faulty strategies share one loop.
    let agent: Box<dyn AnyClock> = Box::new(faults.agent(agent, submit));
    Ok(Box::new(agent))
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

/// What a strategy is built from.
///
/// # Errors
/// A segment that is missing or not what it should be.
fn context(plan: &Plan, index: u16, epoch: u16, attached: &mut Attached<'_>) -> Result<strategy::Context> {
    let (schedule, entries) = segments::schedule(attached, index)?;
    let orders = plan.trading().orders.get(usize::from(index)).copied().unwrap_or(0);
    let sent_before = if epoch == 0 {
        0
    } else {
        let thread =
            &plan.threads[plan.thread_of(Role::Strategy(index)).context("every strategy has a thread")?];
        count_point(&segments::log(attached, &thread.name)?, Point::StrategySend) as u64
    };
    let mut context = strategy::Context::new(index, schedule, entries, plan.trading().pacing_of(index));
    (context.strategies, context.venues, context.epoch) =
        (plan.trading().strategies, plan.trading().venues, epoch);
    (context.orders, context.sent_before) = (orders.saturating_sub(sent_before), sent_before);
    context.max_open = plan.trading().max_open.into();
    Ok(context)
}

/// The session of a strategy that submits through that producer.
///
/// # Errors
/// A segment that is missing or not what it should be.
fn session<P: Producer>(
    plan: &Plan,
    context: &strategy::Context,
    submit: P,
    attached: &mut Attached<'_>,
) -> Result<Session<P>> {
    let index = context.strategy;
    let thread =
        &plan.threads[plan.thread_of(Role::Strategy(index)).context("every strategy has a thread")?];
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    let returns = attached.receiver(&return_path(index))?;
    let session = Session::new(index, context.max_open, submit, bell, returns).in_epoch(context.epoch);
    Ok(session.with_budget(context.orders))
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

/// The orchestrator.
fn orchestrator<T: Link>(parts: &mut Parts<'_, '_>) -> Result<Orchestrator<T::Consumer>> {
    let Parts { plan, thread, control, ref mut attached, .. } = *parts;
    let submit = attached.consumer::<T>(&submit_link(plan))?;
    let completion = attached.consumer::<T>(&completion_link(plan))?;
    let mut inboxes = Vec::new();
    for venue in 0..plan.trading().venues {
        let ring = attached.sender(&inbox(venue))?;
        inboxes.push(Inbox::new(ring, bell_of(plan, thread, Role::Gateway(venue), attached)?));
    }
    let mut returns = Vec::new();
    for index in 0..plan.trading().strategies {
        let ring = attached.sender(&return_path(index))?;
        let bell = bell_of(plan, thread, Role::Strategy(index), attached)?;
        let room = plan.trading().max_open as usize * usize::from(plan.trading().reports_an_order);
        returns.push(ReturnPath::new(ring, bell, room));
    }
    let limits = Limits::open_orders(plan.trading().max_open.into());
    let repairs = RepairsWriter::new(&attached.region(REPAIRS, supervision::KIND)?.words());
    let orchestrator =
        Orchestrator::new(submit, completion, inboxes, returns, limits, Work::new(plan.trading().work_ns));
    let room = plan.trading().waiting_room();
    let orchestrator = orchestrator.waiting(room, plan.trading().max_waiting.unwrap_or(room));
    let orchestrator =
        orchestrator.expecting(&plan.trading().orders).expecting_at_venues(&plan.trading().venue_orders);
    Ok(orchestrator.supervised(Supervision::new(control.clone(), repairs)))
}

/// The gateway of a venue.
fn gateway<T: Link, V: Venue>(
    parts: &mut Parts<'_, '_>,
    index: u16,
    make: &dyn Fn(&VenueContext) -> V,
) -> Result<Gateway<T::Producer, V>> {
    let Parts { plan, thread, ref mut attached, .. } = *parts;
    let (venues, strategies, max_held) =
        (plan.trading().venues, plan.trading().strategies, plan.trading().max_held as usize);
    let venue = make(&VenueContext { venue: index, venues, strategies, max_held });
    let inbox = attached.receiver(&inbox(index))?;
    let completion = attached.producer::<T>(&completion_link(plan), index.into())?;
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    Ok(Gateway::new(index, inbox, completion, bell, venue))
}
