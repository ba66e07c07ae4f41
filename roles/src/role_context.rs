//! The context in which the roles of a thread are built.

use super::recovered::RecoveredRoles;
use crate::faults::own::FaultAction;
use anyhow::Result;
use gateway::VenueContext;
use protocol::control::Control;
use protocol::plan::{Plan, ThreadPlan};
use protocol::status::StatusWriter;
use shm::attached::Attached;

/// A function that is called once all memory of a process is attached. It gets that memory, and its
/// thread's status.
pub(super) type WhenAttached = Box<dyn FnOnce(&Attached<'_>, StatusWriter) + Send>;

/// The plan, segments and stamp logs from which the roles of a thread are built.
pub(super) struct RoleContext<'a, 's> {
    pub plan: &'a Plan,
    pub thread: &'a ThreadPlan,
    pub control: &'a Control,
    pub attached: &'a mut Attached<'s>,
    pub recovered: &'a mut RecoveredRoles,
    pub act: FaultAction,
    pub when_attached: Vec<WhenAttached>,
}

/// A function that creates the venue of a gateway.
pub(super) type VenueBuilder<'a, V> = dyn Fn(&mut RoleContext<'_, '_>, &VenueContext) -> Result<V> + 'a;
