//! Memory that processes share: regions of atomic words, and the header that each of them starts with.

pub mod header;
#[cfg(not(loom))]
mod mapped;
pub mod region;
#[cfg(not(loom))]
pub mod sealed;

pub use header::{Header, HeaderError, Kind};
pub use region::{Region, RegionError, View, Words};
