//! Creates the folders of results.

use crate::config::UsageError;
use anyhow::{Result, anyhow, bail};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Creates the folder of a run's or experiment's results, `<out>/<time>-<kind>`, with a number
/// appended if that name exists. `started` is the time as in the result's record.
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
