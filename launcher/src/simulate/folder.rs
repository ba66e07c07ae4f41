//! Where the journals of a simulated run are: in a folder of its own among the temporary ones, until it has been judged.

use anyhow::{Context as _, Result};
use shm::sync::{AtomicU64, Ordering};
use std::path::PathBuf;

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
        let path = std::env::temp_dir().join(name);
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
