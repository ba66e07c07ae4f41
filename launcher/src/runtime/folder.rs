//! A run's folder: made before the run, kept once it has begun; its files are whole or not there.

use analysis::record::RunRecord;
use anyhow::{Context, Result, bail};
use protocol::plan::Plan;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A run's folder, removed again unless the run began.
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    keep: bool,
}

impl Folder {
    /// `<out>/<time>-<technique>-<isolation>`, with a number behind it where that exists.
    ///
    /// # Errors
    /// It cannot be made, or `out` holds a thousand of that second.
    pub fn create(out: &Path, plan: &Plan, began: SystemTime) -> Result<Self> {
        fs::create_dir_all(out)
            .with_context(|| format!("cannot make the folder {} (--out)", out.display()))?;
        let out = out.canonicalize()?;
        let time = humantime::format_rfc3339_seconds(began).to_string().replace(':', "");
        let base = format!("{}-{}-{}", time.trim_end_matches('Z'), plan.technique, plan.isolation);
        for number in 1..1000 {
            let name = if number == 1 { base.clone() } else { format!("{base}-{number}") };
            let path = out.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, keep: false }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error)
                        .with_context(|| format!("cannot make the folder {} (--out)", path.display()));
                }
            }
        }
        bail!("{} holds a thousand runs of this second: choose another --out", out.display())
    }

    /// Leaves it where it is, for good, whatever happens from now on.
    pub const fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Writes `run.json`.
///
/// # Errors
/// A full disk, a folder that cannot be written.
pub fn save_record(record: &RunRecord, folder: &Path) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(record)?;
    json.push(b'\n');
    write_whole(&folder.join("run.json"), &json)
}

/// Writes a file beside its place and then moves it there: whoever is killed meanwhile leaves the old one or the new
/// one, never half.
///
/// # Errors
/// A full disk, a folder that cannot be written. What was there before is kept.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut draft = OsString::from(".");
    draft.push(path.file_name().unwrap_or_default());
    draft.push(".new");
    let draft = path.with_file_name(draft);
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
