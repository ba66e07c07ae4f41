//! The parts that roles are built from.

use crate::faults::own::Act;
use anyhow::Result;
use gateway::VenueContext;
use protocol::control::Control;
use protocol::plan::{Plan, ThreadPlan};
use protocol::status::StatusWriter;
use shm::attached::Attached;
use shm::memory::AtomicWords;

/// What is done once all memory of a process is attached: it is given everything that the process
/// can write, and the status of its thread.
pub(super) type WhenAttached = Box<dyn FnOnce(Vec<AtomicWords>, StatusWriter) + Send>;

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

/// Makes the venue behind a gateway.
pub(super) type VenueBuilder<'a, V> = dyn Fn(&mut Parts<'_, '_>, &VenueContext) -> Result<V> + 'a;
