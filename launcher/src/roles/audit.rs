//! What the exchanges of a run must have done by their journals.

use super::book;
use super::parts::Parts;
use crate::faults::own;
use anyhow::{Context as _, Result};
use exchange::role::Audit;
use protocol::control::Control;
use protocol::plan::{Plan, Role};
use shm::attached::Attached;
use shm::clock::Timebase;

/// By the journal of a venue; `attached` is what its exchange's process has.
///
/// # Errors
/// A journal that is not whole, or that begins behind a snapshot.
pub(crate) fn audit(
    plan: &Plan,
    venue: u16,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Audit> {
    let thread = plan.thread_of(Role::Exchange(venue)).context("every exchange has a thread")?;
    let thread = &plan.threads[thread];
    let mut parts = Parts { plan, thread, control, attached, act: own::act, when_attached: Vec::new() };
    let setup = book::market(&mut parts, venue)?;
    let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = book::journal_folder(plan, venue);
    Audit::of(&folder, setup, time).with_context(|| format!("the journal of venue {venue}"))
}
