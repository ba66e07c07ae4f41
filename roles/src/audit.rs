//! Audits the exchanges and the engine of a run by replaying their journals.

use super::{book, build, engine, standby};
use anyhow::{Context as _, Result};
use journal::JournalFollower;
use protocol::control::Control;
use protocol::index::{PerStrategy, VenueIndex};
use protocol::plan::Plan;
use shm::attached::Attached;
use system::clock::Timebase;
use venue::Audit;

/// Replays the journal of a venue's exchange and returns its orders, reports and trades, for
/// comparison with the run. `attached` is the memory of the exchange's process.
pub fn audit(
    plan: &Plan,
    venue: VenueIndex,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Audit> {
    let setup = book::market(plan, venue, attached)?;
    let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = book::journal_folder(plan, venue);
    Audit::from_journal(&folder, setup, time).with_context(|| format!("the journal of venue {venue}"))
}

/// Counts the reports that the engine returned to each strategy, by replaying the engine's journal.
/// Reports count from the last reset of the strategy's memory on.
pub fn count_returned(plan: &Plan) -> Result<PerStrategy<u64>> {
    let replica = orchestrator::Replica::new(build::new_core(plan)?, plan.stamps);
    let follower = JournalFollower::open(&engine::journal_folder(plan), replica);
    let mut follower = follower.context("the engine's journal")?;
    while follower.poll(1024).context("the engine's journal")? > 0 {}
    Ok(follower.state.returned())
}

/// Returns the number of messages published into each of the named rings, each of which has only
/// one writing process.
pub fn count_published(rings: impl Iterator<Item = String>, attached: &mut Attached<'_>) -> Result<Vec<u64>> {
    Ok(standby::PublishedCounts::new(rings, attached)?.published())
}
