//! `launcher open`: where the page of a run is, made if it is not there. It prints a path: nothing is served, nothing is started.

use crate::cli::OpenFlags;
use crate::config::UsageError;
use crate::output;
use crate::shelf;
use analysis::html::HTML_FILE;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Prints the path of the page.
///
/// # Errors
/// No folder of that name; nothing in it that a page can be made of.
pub fn open(flags: &OpenFlags) -> Result<ExitCode> {
    let is_latest = flags.folder == Path::new("latest") && !flags.folder.exists();
    let folder = if is_latest { latest(Path::new("runs"))? } else { shelf::folder_of(&flags.folder)? };
    let page = folder.join(HTML_FILE);
    let is_made = page.symlink_metadata().is_ok_and(|facts| facts.is_file());
    // An experiment may have gone on: its page is made again each time.
    if !is_made || !folder.join("run.json").exists() {
        super::make_page(&folder, &page)?;
    }
    let path = page.canonicalize().with_context(|| page.display().to_string())?;
    writeln!(output::stdout(), "{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

/// The folder in there that was begun last: their names begin with the time.
fn latest(runs: &Path) -> Result<PathBuf> {
    let entries =
        std::fs::read_dir(runs).map_err(|error| UsageError(format!("{}: {error}", runs.display())))?;
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    Ok(folders.max().ok_or_else(|| UsageError(format!("{}: no run in it", runs.display())))?)
}
