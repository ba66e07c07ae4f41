//! A run's folder, created before the run and kept once it has started. Its files are written
//! atomically.

use anyhow::{Context, Result, anyhow, bail};
use planner::config::{Settings, UsageError};
use protocol::plan::{Plan, Workload};
use roles::faults::CORES_FOLDER;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Creates a run's folder again that was removed during the run, with its settings. Returns a note
/// for the user. The logs in memory, and so all figures, are saved as usual.
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

/// Creates the folder of a result, `<out>/<time>-<kind>`, with a number appended if it exists.
/// `started` is the time as in its record.
pub fn create_result_folder(out: &Path, started: &str, kind: &str) -> Result<PathBuf> {
    let cannot = |folder: &Path, error: std::io::Error| -> anyhow::Error {
        let why = format!("cannot make the folder {} (--out): {error}", folder.display());
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                anyhow!("{why}; make room, or choose another --out")
            }
            _ => UsageError(format!("{why}; choose another --out")).into(),
        }
    };
    fs::create_dir_all(out).map_err(|error| cannot(out, error))?;
    let base = format!("{}-{kind}", started.replace(':', "").trim_end_matches('Z'));
    for number in 1..1000 {
        let folder = out.join(if number == 1 { base.clone() } else { format!("{base}-{number}") });
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&folder, error)),
        }
    }
    bail!("{} holds a thousand results of this second: choose another --out", out.display())
}

/// A run's folder, removed on drop unless the run has started.
pub struct RunFolder {
    pub path: PathBuf,
    keep: bool,
}

impl RunFolder {
    /// Creates the run's folder `<out>/<time>-<technique>-<isolation>`, or `…-board-…` for a board,
    /// with a number appended if it exists.
    pub fn create(out: &Path, plan: &Plan, began: SystemTime) -> Result<Self> {
        let time = humantime::format_rfc3339_seconds(began).to_string();
        let what = match plan.workload {
            Workload::Board(_) => "board",
            Workload::Trading(_) | Workload::Queue(_) => plan.technique.name(),
        };
        let path = create_result_folder(out, &time, &format!("{what}-{}", plan.isolation))?;
        Ok(Self { path: path.canonicalize()?, keep: false })
    }

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

/// Removes the core files of faults from a run's folder, once no process of the run is left.
pub fn remove_cores(run_folder: &Path) {
    // Usually there are none.
    let _ = fs::remove_dir_all(run_folder.join(CORES_FOLDER));
}
