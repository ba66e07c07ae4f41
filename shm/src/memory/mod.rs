//! Memory that processes share: regions of atomic words, and the header that each of them starts with.

pub mod header;
#[cfg(not(loom))]
pub mod lock;
#[cfg(not(loom))]
mod mapped;
pub mod region;
#[cfg(not(loom))]
pub mod sealed;

pub use header::{Header, HeaderError, SegmentKind};
#[cfg(not(loom))]
pub use mapped::{PREFIX, SHM_DIR, list_segments, open_safely, unlink};
pub use region::{Region, RegionError, View, Words};
