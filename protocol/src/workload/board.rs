//! The settings of a board benchmark.

use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use system::named_enum;

named_enum! {
    /// How readers wait for a newer version.
    ReaderWaiting {
        /// The reader spins.
        Spin = "spin",
        /// The reader yields the core to other threads.
        Yield = "yield",
        /// The reader sleeps until the writer wakes it, for a millisecond at most.
        Park = "park",
    }
}

/// The settings of one run of a board benchmark: a writer and its readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardWork {
    /// Number of readers of the board.
    pub readers: u16,
    /// How the readers wait for a newer version.
    pub waiting: ReaderWaiting,
    /// Number of cells of the board, which are written in turn.
    pub cells: usize,
    /// Size in words of a value on the board.
    pub words: usize,
    /// Number of writes that are due; `None`: writes follow each other without a pause.
    pub scheduled: Option<u64>,
    /// Length of the run, in nanoseconds.
    pub duration_ns: u64,
    /// The folder whose file system has the board; `None`: a segment in memory, as of any run.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// Time from one decision tick to the next, in nanoseconds; `None`: there are none.
    #[serde(default)]
    pub decide_every_ns: Option<u64>,
}

impl BoardWork {
    /// Maximum number of readers in a benchmark of a board (latest values from one writer to many).
    pub const MAX_READERS: u16 = 256;
    /// Time after the end of the run in which the board's writer may make late writes, in
    /// nanoseconds.
    pub const LATE_NS: u64 = 1_000_000_000;

    /// Returns the roles of the benchmark, the writer first.
    pub(crate) fn roles(&self) -> Vec<Role> {
        std::iter::once(Role::Writer).chain((0..self.readers).map(Role::Reader)).collect()
    }
}
