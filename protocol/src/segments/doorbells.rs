//! The doorbells of a run, on which threads sleep and which their senders ring.

use crate::plan::{Idle, Plan, Role, ThreadPlan};
use crate::topology::{self, bell_segment, wake_segment};
use shm::attached::Attached;
use shm::bell::{self, Doorbell, Listener};
use shm::memory::RegionError;

/// Attaches the doorbell on which a thread of the plan sleeps; all its senders ring it.
pub fn listener(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
) -> Result<Listener, RegionError> {
    let index = plan.threads.iter().position(|other| other.name == thread.name);
    let index = index.expect("a thread of the plan");
    let own = attached.region(&bell_segment(&thread.name), bell::KIND)?.words();
    let mut listener = Listener::new(&own);
    // The launcher rings for a death, operators ring for their commands.
    if thread.roles.contains(&Role::Orchestrator) {
        listener = listener.with_outside(&own);
    }
    for peer in topology::peers(plan, index) {
        let word = wake_segment(&plan.threads[peer].name, &thread.name);
        listener.add_sender(&attached.view(&word, bell::KIND)?, 0);
    }
    Ok(listener)
}

/// Returns the doorbell that wakes a role's thread after a send; `None` if that thread never parks
/// or is the sender.
pub fn bell_of(
    attached: &mut Attached<'_>,
    plan: &Plan,
    from: &ThreadPlan,
    role: Role,
) -> Result<Option<Doorbell>, RegionError> {
    let parks = |thread: &ThreadPlan| thread.idle == Idle::Park && thread.name != from.name;
    let Some(index) = plan.thread_of(role).filter(|index| parks(&plan.threads[*index])) else {
        return Ok(None);
    };
    let listener = &plan.threads[index].name;
    let own = attached.region(&wake_segment(&from.name, listener), bell::KIND)?.words();
    Ok(Some(Doorbell::new(&attached.view(&bell_segment(listener), bell::KIND)?, &own, 0)))
}
