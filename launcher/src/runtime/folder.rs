//! A run's folder: made before the run, kept once it has begun; its files are whole or not there.

use anyhow::{Context, Result, bail};
use protocol::plan::Plan;
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
