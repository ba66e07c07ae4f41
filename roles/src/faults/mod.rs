//! Faults on purpose: what a strategy does to itself, and what a venue does.

mod acts;
mod draws;
pub mod own;
pub mod takings;
pub mod venue;

pub use draws::Draws;

use protocol::plan::{Fault, FaultKind, FaultTime};

/// Whether the launcher does it, by signal. Else the strategy does it itself.
pub const fn by_signal(fault: &Fault) -> bool {
    matches!((fault.kind, fault.when), (FaultKind::Kill | FaultKind::Stop, FaultTime::At { .. }))
}
