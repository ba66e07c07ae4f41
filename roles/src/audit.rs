//! Audits exchanges and engine of a run by their journals.

use super::parts::Parts;
use super::{book, build, engine, spare};
use crate::faults::own;
use anyhow::{Context as _, Result};
use journal::JournalFollower;
use protocol::control::Control;
use protocol::plan::{Plan, Role};
use shm::attached::Attached;
use system::clock::Timebase;
use venue::Audit;

/// By the journal of a venue; `attached` is what its exchange's process has.
///
/// # Errors
/// A journal that is not whole, or that begins behind a snapshot.
pub fn audit(plan: &Plan, venue: u16, control: &Control, attached: &mut Attached<'_>) -> Result<Audit> {
    let thread = plan.thread_of(Role::Exchange(venue)).context("every exchange has a thread")?;
    let thread = &plan.threads[thread];
    let mut parts = Parts { plan, thread, control, attached, act: own::act, when_attached: Vec::new() };
    let setup = book::market(&mut parts, venue)?;
    let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = book::journal_folder(plan, venue);
    Audit::of(&folder, setup, time).with_context(|| format!("the journal of venue {venue}"))
}

/// How many reports each strategy must have been given by the engine's journal, since its memory
/// was last made anew.
///
/// # Errors
/// A journal that cannot be followed.
pub fn returned(plan: &Plan) -> Result<Vec<u64>> {
    let replica = orchestrator::Replica::new(build::core_of(plan)?, plan.stamps);
    let follower = JournalFollower::open(&engine::journal_folder(plan), replica);
    let mut follower = follower.context("the engine's journal")?;
    while follower.poll(1024).context("the engine's journal")? > 0 {}
    Ok(follower.state.returned())
}

/// How many messages were pushed into each of these rings, which the process writes that has
/// `attached`.
///
/// # Errors
/// A ring that is not what it should be.
pub fn published(rings: impl Iterator<Item = String>, attached: &mut Attached<'_>) -> Result<Vec<u64>> {
    Ok(spare::Sent::new(rings, attached)?.published())
}
