//! A run's folder, created before the run and kept once it has started. Its files are written
//! atomically.

use anyhow::{Context, Result};
use planner::config::Settings;
pub use planner::result_folder::create_result_folder;
use protocol::plan::{Plan, Workload};
use roles::faults::CORES_FOLDER;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Creates a run's folder again, with its settings, if it was removed during the run. Returns a
/// note for the user. The logs in memory, and so all figures, are saved as usual.
pub fn recreate(path: &Path, settings: Option<&Settings>) -> Result<Option<String>> {
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        _ => return Ok(None),
    }
    let name = path.display();
    let made = fs::create_dir_all(path).map_err(anyhow::Error::from);
    let save = |()| settings.map_or(Ok(()), |settings| Ok(settings.save(path)?));
    made.and_then(save).with_context(|| {
        format!("the run's folder {name} was removed while the run went on and cannot be made again: its results are lost")
    })?;
    Ok(Some(format!(
        "the folder {name} was removed while the run went on, and made again: what processes had printed there is lost"
    )))
}

/// A run's folder, removed on drop unless the run has started.
pub struct RunFolder {
    /// Path of the folder.
    pub path: PathBuf,
    keep: bool,
}

impl RunFolder {
    /// Creates the run's folder `<out>/<time>-<technique>-<isolation>`, or
    /// `<out>/<time>-board-<isolation>` for a run that measures a board, with a number appended if
    /// it exists.
    pub fn create(out: &Path, plan: &Plan, began: SystemTime) -> Result<Self> {
        let time = humantime::format_rfc3339_seconds(began).to_string();
        let what = match plan.workload {
            Workload::Board(_) => "board",
            Workload::Trading(_) | Workload::Queue(_) => plan.technique.name(),
        };
        // No shell expands the name.
        let isolation = plan.isolation.to_string().replace('*', "x");
        let path = create_result_folder(out, &time, &format!("{what}-{isolation}"))?;
        Ok(Self { path: path.canonicalize()?, keep: false })
    }

    /// Keeps the run's folder when this value is dropped.
    pub const fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if self.keep {
            remove_cores(&self.path);
        } else {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the core dumps of injected faults from a run's folder, once no process of the run is
/// left.
pub fn remove_cores(run_folder: &Path) {
    // Usually there are none.
    let _ = fs::remove_dir_all(run_folder.join(CORES_FOLDER));
}
