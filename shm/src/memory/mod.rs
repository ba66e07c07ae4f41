//! Memory that processes share: regions of atomic words, and the header that each of them starts
//! with.

#[cfg(not(loom))]
mod available;
#[cfg(not(loom))]
pub(crate) mod calls;
mod copies;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod fifo;
pub mod header;
#[cfg(not(loom))]
pub mod huge_pages;
#[cfg(not(loom))]
pub mod lock;
#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
pub mod owned;
mod places;
pub mod region;
#[cfg(not(loom))]
pub mod sealed;
#[cfg(not(loom))]
pub mod sigbus;
mod slots;
#[cfg(all(test, not(loom)))]
mod tests;

pub use header::{Header, HeaderError, SegmentKind};
#[cfg(not(loom))]
pub use mapped::{PREFIX, list_segments, open_safely, unlink};
#[cfg(not(loom))]
pub(crate) use places::place_bytes;
pub(crate) use places::{Places, ReadOnlyPlaces};
pub use region::{AtomicWords, ReadOnlyWords, Region, RegionError};
pub use slots::Word;
pub(crate) use slots::{Cursor, Slots};

/// The directory of named segments: `/dev/shm`.
pub const SHM_DIR: &str = "/dev/shm";

/// Returns `true` if a name of 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `-` and `_` is given to a
/// queue or a board.
#[cfg(not(loom))]
pub(crate) fn is_valid_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(good)
}

/// Number of 64-bit words in a cache line, the longest that CPUs of this architecture have.
pub const LINE_WORDS: usize = if cfg!(target_arch = "aarch64") { 16 } else { 8 };
