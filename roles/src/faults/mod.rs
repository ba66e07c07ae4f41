//! Faults injected during a run: by strategies into themselves, and into venues.

mod acts;
mod core_dump;
mod heap;
pub mod own;
pub mod resources;
mod storm;
pub mod venue;

pub use core_dump::CORES_FOLDER;
