//! Faults injected during a run: by strategies into themselves, and into venues.

mod acts;
mod core_dump;
mod draws;
pub mod own;
pub mod resources;
mod storm;
pub mod venue;

pub use core_dump::CORES_FOLDER;
pub use draws::Draws;

use protocol::plan::{Fault, FaultKind, FaultTime};

/// Returns `true` if the launcher injects the fault by a signal; otherwise the strategy does it
/// itself.
pub const fn is_by_signal(fault: &Fault) -> bool {
    matches!((fault.kind, fault.when), (FaultKind::Kill | FaultKind::Stop, FaultTime::At { .. }))
}
