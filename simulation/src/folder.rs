//! Temporary folder for the journals of a simulated run, in memory if possible, where syncing costs
//! nothing.

use anyhow::{Context as _, Result};
use shm::memory::SHM_DIR;
use shm::sync::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};

/// A temporary folder for the journals of a simulated run, removed on drop.
pub(super) struct JournalFolder(PathBuf);

impl JournalFolder {
    /// Creates a new temporary folder for journals.
    ///
    /// # Errors
    /// The folder cannot be created; the error names it.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bulkhead-simulation-{}-{number}", std::process::id());
        let memory = Path::new(SHM_DIR);
        let path = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }.join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self(path))
    }

    /// Returns the path of the temporary folder for journals.
    pub fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for JournalFolder {
    fn drop(&mut self) {
        // All writers are gone.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
