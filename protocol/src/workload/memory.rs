//! The memory of a run's processes: what strategies walk, what they run from, and how it is mapped.

use serde::{Deserialize, Serialize};
use system::named_enum;

named_enum! {
    /// The executable that the processes of strategies run from.
    #[derive(Default)]
    Binary {
        /// All processes run one file and share its text.
        #[default]
        Shared = "shared",
        /// Each strategy's process runs its own copy of the file: another inode, so no shared text.
        Own = "own",
    }
}

/// The memory settings of a run: the heap that strategies walk, the executable of their processes,
/// huge pages and locked memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemorySettings {
    /// Size in bytes of the heap that each strategy walks between two orders; 0: none.
    pub working_set_bytes: u64,
    /// Seed of the order in which the heap's cache lines are walked.
    pub seed: u64,
    /// The executable of strategies' processes.
    pub binary: Binary,
    /// `true` if shared memory is mapped with huge pages.
    pub huge_pages: bool,
    /// `true` if each role locks its memory before the start.
    pub lock_memory: bool,
}

impl MemorySettings {
    /// The settings of a run that asks for nothing.
    pub(crate) const NONE: Self =
        Self { working_set_bytes: 0, seed: 0, binary: Binary::Shared, huge_pages: false, lock_memory: false };

    /// Number of cache lines of its heap that a strategy walks for each order.
    pub const LINES_PER_ORDER: u64 = 64;
    /// Size of a cache line of the walked heap, in bytes.
    pub const LINE_BYTES: u64 = 64;

    /// Returns `true` if all memory settings have their defaults, whatever the seed of the heap
    /// walk is. Such settings are not saved.
    pub fn is_none(&self) -> bool {
        Self { seed: 0, ..*self } == Self::NONE
    }

    /// Returns the size of the heap that a strategy walks, in cache lines; 0 if it walks none.
    pub const fn lines(&self) -> u64 {
        self.working_set_bytes.div_ceil(Self::LINE_BYTES)
    }
}
