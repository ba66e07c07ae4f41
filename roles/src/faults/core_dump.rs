//! The fault `core-dump`: a strategy fills a large heap, then aborts with core dumps on.

use std::path::{Path, PathBuf};
use system::fault;

/// The directory in a run's folder into which the kernel writes core dumps. The launcher removes
/// it.
pub const CORES_FOLDER: &str = "cores";
/// The heap, unless the limit of the process allows less: then a half, a quarter, and so on.
const HEAP_BYTES: usize = 256 << 20;
/// What one duty cycle writes of it. Little, so that the strategy does not seem to hang.
const STEP_BYTES: usize = 4 << 20;
/// A core is cut here. With the heap, it has the rest of the process's memory.
const MAX_CORE_BYTES: u64 = 1 << 30;

/// A heap that grows in each duty cycle until its process dumps core, as an injected fault.
#[derive(Debug)]
pub struct CoreDump {
    heap: Vec<u8>,
    size: usize,
    folder: PathBuf,
}

impl CoreDump {
    /// Reserves the heap for a core dump into the given run folder.
    pub fn new(run_folder: &Path) -> Self {
        let mut heap = Vec::new();
        let sizes = (0..8).map(|halving| HEAP_BYTES >> halving);
        let size = sizes.into_iter().find(|size| heap.try_reserve_exact(*size).is_ok()).unwrap_or(0);
        Self { heap, size, folder: run_folder.join(CORES_FOLDER) }
    }

    /// Fills another part of the heap that is to be dumped. Returns `true` once it is full.
    pub fn fill(&mut self) -> bool {
        let filled = self.size.min(self.heap.len() + STEP_BYTES);
        self.heap.resize(filled, 1);
        filled == self.size
    }

    /// Aborts the process, so that the kernel dumps its memory into a core file.
    pub fn dump(&self) -> ! {
        std::hint::black_box(&self.heap);
        fault::dump_core(&self.folder, MAX_CORE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "256 MiB, byte by byte")]
    fn heap_fills_in_steps_without_moving() {
        let mut dump = CoreDump::new(Path::new("/nowhere"));
        let begin = dump.heap.as_ptr();
        let steps = (1..).find(|_| dump.fill()).unwrap();
        assert_eq!(steps * STEP_BYTES, dump.size);
        assert_eq!((dump.heap.as_ptr(), dump.heap.len()), (begin, dump.size));
    }
}
