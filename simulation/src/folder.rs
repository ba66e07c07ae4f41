//! Temporary folder for the journals of a simulated run, in memory if possible, where syncing costs
//! nothing. Its name is that of a run's segment, so the next run or `launcher clean` removes it if
//! the simulation is killed.

use anyhow::{Context as _, Result};
use catalog::run_id::RunId;
use shm::memory::{PREFIX, SHM_DIR};
use shm::process::start_time;
use shm::sync::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The first word, after prefix and run id, of the names of temporary folders with a simulated
/// run's journals.
pub const JOURNALS: &str = "journals";

/// A temporary folder for the journals of a simulated run, removed on drop.
pub(super) struct JournalFolder(PathBuf);

impl JournalFolder {
    /// Creates a new temporary folder for the journals of a simulated run.
    ///
    /// # Errors
    /// The folder cannot be created; the error names it.
    pub fn new() -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let run = RunId::new(SystemTime::now(), pid, start_time(pid).unwrap_or(0));
        let name = format!("{PREFIX}{run}.{JOURNALS}-{number}");
        let memory = Path::new(SHM_DIR);
        let path = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }.join(name);
        std::fs::create_dir(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        Ok(Self(path))
    }

    /// Returns the path of the temporary folder of a simulated run's journals.
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
