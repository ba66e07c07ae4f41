//! How each role is built: the half of its record that needs the crates which implement the roles.

use super::agents::RoleAgent;
use crate::faults::own::{Act, OwnFaults};
use anyhow::{Context, Result};
use gateway::{Gateway, Venue};
use orchestrator::risk::Limits;
use orchestrator::work::Work;
use orchestrator::{Inbox, Orchestrator, ReturnPath, Supervision};
use protocol::control::Control;
use protocol::plan::{Idle, Plan, Role, ThreadPlan};
use protocol::role::RoleKind;
use protocol::segments::{self, completion_link, submit_link};
use protocol::stamps::{Point, count_point};
use protocol::status::StatusWriter;
use protocol::supervision::{self, REPAIRS, RepairsWriter};
use protocol::trading::{inbox, return_path};
use shm::attached::Attached;
use shm::bell::Bell;
use shm::memory::Words;
use shm::ring::{Link, Producer};
use strategy::{Player, Session, StrategyAgent};

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

/// Builds the role of that index of its kind.
pub(super) type Build = fn(&mut Parts<'_, '_>, u16) -> Result<Box<dyn RoleAgent>>;

/// How roles of that kind are built.
pub(super) fn builder<T: Link>(kind: RoleKind) -> Build {
    match kind {
        RoleKind::Strategy => strategy_or_faulty::<T>,
        RoleKind::Orchestrator => |parts, _| Ok(Box::new(orchestrator::<T>(parts)?)),
        RoleKind::Gateway => |parts, index| Ok(Box::new(gateway::<T>(parts, index)?)),
    }
}

/// A strategy, faulty if the plan has a fault for this incarnation.
fn strategy_or_faulty<T: Link>(parts: &mut Parts<'_, '_>, index: u16) -> Result<Box<dyn RoleAgent>> {
    let Parts { plan, control, act, .. } = *parts;
    let epoch = control.life(index).epoch;
    let submit = parts.attached.producer::<T>(&submit_link(plan), index.into())?;
    let Some(faults) = OwnFaults::of(plan, index, epoch) else {
        return Ok(Box::new(strategy(plan, index, epoch, submit, parts.attached)?));
    };
    let submit = faults.producer(submit, act);
    let agent = strategy(plan, index, epoch, submit.clone(), parts.attached)?;
    let to_arm = submit.clone();
    parts.when_attached.push(Box::new(move |writable, status| to_arm.arm(writable, status)));
    Ok(Box::new(faults.agent(agent, submit)))
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

/// Builds a strategy that submits through that producer.
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
    let role = Role::Strategy(index);
    let thread = &plan.threads[plan.thread_of(role).context("every strategy has a thread")?];
    let (schedule, entries) = segments::schedule(attached, index)?;
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    let returns = attached.receiver(&return_path(index))?;
    let session = Session::new(index, plan.max_open.into(), submit, bell, returns).in_epoch(epoch);
    let mut player = Player::new(schedule, entries, plan.pacing);
    if epoch > 0 {
        player = player.resume(count_point(&segments::log(attached, &thread.name)?, Point::StrategySend));
    }
    Ok(StrategyAgent::new(player, session))
}

/// The orchestrator.
pub(super) fn orchestrator<T: Link>(parts: &mut Parts<'_, '_>) -> Result<Orchestrator<T::Consumer>> {
    let Parts { plan, thread, control, ref mut attached, .. } = *parts;
    let submit = attached.consumer::<T>(&submit_link(plan))?;
    let completion = attached.consumer::<T>(&completion_link(plan))?;
    let mut inboxes = Vec::new();
    for venue in 0..plan.venues {
        let ring = attached.sender(&inbox(venue))?;
        inboxes.push(Inbox::new(ring, bell_of(plan, thread, Role::Gateway(venue), attached)?));
    }
    let mut returns = Vec::new();
    for index in 0..plan.strategies {
        let ring = attached.sender(&return_path(index))?;
        let bell = bell_of(plan, thread, Role::Strategy(index), attached)?;
        returns.push(ReturnPath::new(ring, bell, plan.max_open as usize));
    }
    let limits = Limits::open_orders(plan.max_open.into());
    let repairs = RepairsWriter::new(&attached.region(REPAIRS, supervision::KIND)?.words());
    let orchestrator =
        Orchestrator::new(submit, completion, inboxes, returns, limits, Work::new(plan.work.requested_ns));
    let orchestrator = orchestrator.expecting(&plan.orders).expecting_at_venues(&plan.venue_orders);
    Ok(orchestrator.supervised(Supervision::new(control.clone(), repairs)))
}

/// The gateway of a venue.
pub(super) fn gateway<T: Link>(parts: &mut Parts<'_, '_>, index: u16) -> Result<Gateway<T::Producer>> {
    let Parts { plan, thread, ref mut attached, .. } = *parts;
    let inbox = attached.receiver(&inbox(index))?;
    let completion = attached.producer::<T>(&completion_link(plan), index.into())?;
    let bell = bell_of(plan, thread, Role::Orchestrator, attached)?;
    Ok(Gateway::new(index, inbox, completion, bell, Venue, plan.max_held as usize))
}
