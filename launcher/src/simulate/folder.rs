//! Where the journals of a simulated run are: in a folder of its own until it has been judged, in
//! memory if there is such a place, where putting something on the disk costs nothing.

use anyhow::{Context as _, Result};
use shm::memory::SHM_DIR;
use shm::sync::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};

/// A folder that is gone with this.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A new one.
    ///
    /// # Errors
    /// It cannot be made; where that was is said.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-simulation-{}-{number}", std::process::id());
        let memory = Path::new(SHM_DIR);
        let path = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }.join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self(path))
    }

    /// Its name.
    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody writes there any more: all writers are gone.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
