//! `launcher list` and `launcher delete`: list results, and delete some of them.

use super::{RUNS, check_deletable, folder_of, owned};
use crate::config::UsageError;
use crate::output;
use analysis::escape::single_line;
use analysis::report::tables::{ruled, table};
use anyhow::{Context, Result};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command-line flags of `launcher list`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ListFlags {
    /// List the results in this folder
    #[arg(default_value = RUNS)]
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The command-line flags of `launcher delete`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct DeleteFlags {
    /// Name folders of runs and experiments, or latest
    #[arg(required = true)]
    pub folders: Vec<PathBuf>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
}

pub fn show(flags: &ListFlags) -> Result<ExitCode> {
    if !flags.folder.is_dir() {
        return Err(
            UsageError(format!("{}: no such folder: nothing was run there", flags.folder.display())).into()
        );
    }
    let entries = super::list_results(&flags.folder)?;
    let mut out = output::stdout();
    if flags.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&entries)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        writeln!(out, "{}: no results", flags.folder.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = table(ruled(), &["folder", "setting", "verdict", "for latency claims"]);
    for entry in &entries {
        let name = Path::new(&entry.folder).file_name().unwrap_or_default().to_string_lossy();
        let fitness = entry.fitness_in_short();
        let cells = [name.as_ref(), &entry.setting, &entry.verdict, &fitness];
        rows.add_row(cells.map(single_line));
    }
    for line in rows.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Deletes the named runs and experiments: all of them, or none if one may not be deleted. Files
/// that bulkhead did not write stay, with their folder: exit code 1.
pub fn delete(flags: &DeleteFlags) -> Result<ExitCode> {
    let known = |name: &PathBuf| -> Result<_> {
        // A link is not deleted as the folder that it leads to.
        let folder = if name.is_symlink() { name.clone() } else { folder_of(name)? };
        let kind = check_deletable(&folder)?;
        Ok((folder, kind))
    };
    let folders: Vec<_> = flags.folders.iter().map(known).collect::<Result<_>>()?;
    let (mut out, mut code) = (output::stdout(), ExitCode::SUCCESS);
    for (folder, kind) in &folders {
        let name = folder.display();
        let stays =
            owned::delete(*kind, folder, flags.dry_run).with_context(|| format!("cannot delete {name}"))?;
        let (done, stay) =
            if flags.dry_run { ("would be deleted", "would stay") } else { ("deleted", "stays") };
        match stays.as_slice() {
            [] => writeln!(out, "{name} {done}")?,
            stays => {
                writeln!(out, "{name} {done}, but for what bulkhead did not write:")?;
                stays.iter().try_for_each(|path| writeln!(out, "  {} {stay}", single_line(path)))?;
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}
