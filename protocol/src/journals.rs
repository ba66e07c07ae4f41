//! The journals of a run: the roles that write one, its folder and its lock.
//!
//! The launcher takes the locks before it starts any process, and holds them until the run is over.
//! A writer and its successors inherit the locked file and never lock it themselves, so no process
//! can take the lock in between, not even one that may open the file.

use crate::plan::{Journaling, Plan};
use crate::role::Role;
use std::path::{Path, PathBuf};

/// Returns the roles that write a journal in this plan: the orchestrator and the exchanges, or
/// none.
pub fn writers(plan: &Plan) -> impl Iterator<Item = Role> + use<'_> {
    let is_kept = plan.trading().journal != Journaling::None;
    let roles = plan.threads.iter().flat_map(|thread| thread.roles.iter().copied());
    roles.filter(move |role| is_kept && matches!(role, Role::Orchestrator | Role::Exchange(_)))
}

/// Returns the directory of a role's journal, within the run's directory.
pub fn folder(plan: &Plan, role: Role) -> PathBuf {
    let name = match role {
        Role::Exchange(venue) => format!("journal-venue-{venue}"),
        _ => "journal-engine".to_owned(),
    };
    Path::new(&plan.folder).join(name)
}

/// Returns the name of a journal's lock in the plan's list of inherited file descriptors; `writer`
/// is the role that writes the journal.
pub fn lock_handle(writer: Role) -> String {
    format!("journal-lock-{writer}")
}
