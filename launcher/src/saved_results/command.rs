//! `launcher list` and `launcher delete`: list results, and delete some of them.

use super::{ResultEntry, check_deletable, owned};
use anyhow::{Context, Result};
use catalog::{RUNS, folder_of};
use clap::Args;
use planner::config::UsageError;
use record::escape::single_line;
use record::screen;
use record::screen::width;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verdict::table::grid::wrap;
use verdict::table::{ruled, table};

/// The command-line flags of `launcher list`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ListFlags {
    /// List the results in this folder
    #[arg(default_value = RUNS)]
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print only the names, a line each: of the results, and the ids of active runs
    #[arg(long, conflicts_with = "json")]
    pub names: bool,
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

/// Runs `launcher list`: prints the saved results.
pub fn show(flags: &ListFlags) -> Result<ExitCode> {
    if flags.names {
        let mut out = screen::stdout();
        catalog::names(&flags.folder).iter().try_for_each(|name| writeln!(out, "{}", single_line(name)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !flags.folder.is_dir() {
        return Err(UsageError(format!(
            "{}: no such folder; name the one that --out named",
            flags.folder.display()
        ))
        .into());
    }
    let entries = super::list_results(&flags.folder)?;
    let mut out = screen::stdout();
    if flags.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&entries)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        writeln!(out, "{}: no results", flags.folder.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    write!(out, "{}", formatted(&entries, width()))?;
    Ok(ExitCode::SUCCESS)
}

/// Formats the entries as a table, or on two lines or more each if it is wider than `width`.
fn formatted(entries: &[ResultEntry], width: usize) -> String {
    let mut rows = table(ruled(), &["folder", "setting", "verdict", "for latency claims"]);
    let mut text = String::new();
    for entry in entries {
        let name = Path::new(&entry.folder).file_name().unwrap_or_default().to_string_lossy();
        let fitness = entry.fitness_in_short();
        let cells = [name.as_ref(), &entry.setting, &entry.verdict, &fitness].map(single_line);
        let [name, setting, verdict, fitness] = &cells;
        let verdicts = if fitness.is_empty() { verdict.clone() } else { format!("{verdict}; {fitness}") };
        for (indent, unwrapped) in [("", format!("{name} {setting}")), ("  ", verdicts)] {
            let lines = wrap(&unwrapped, width.saturating_sub(indent.len()), 4);
            text += &format!("{indent}{}\n", lines.join(&format!("\n{indent}    ")));
        }
        rows.add_row(cells);
    }
    let lines: Vec<String> = rows.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    if lines.iter().all(|line| line.chars().count() <= width + 1) { lines.concat() } else { text }
}

/// Runs `launcher delete`: deletes all named runs and experiments, or none if one may not be
/// deleted. Files that bulkhead did not write stay, with their folder: exit code 1.
pub fn delete(flags: &DeleteFlags) -> Result<ExitCode> {
    let known = |name: &PathBuf| -> Result<_> {
        // A link is not deleted as the folder that it leads to.
        let folder = if name.is_symlink() { name.clone() } else { folder_of(name)? };
        let kind = check_deletable(&folder)?;
        Ok((folder, kind))
    };
    let folders: Vec<_> = flags.folders.iter().map(known).collect::<Result<_>>()?;
    let (mut out, mut code) = (screen::stdout(), ExitCode::SUCCESS);
    for (folder, kind) in &folders {
        let name = folder.display();
        let stays =
            owned::delete(*kind, folder, flags.dry_run).with_context(|| format!("cannot delete {name}"))?;
        let (done, kept) =
            if flags.dry_run { ("would be deleted", "would stay") } else { ("deleted", "stays") };
        match stays.as_slice() {
            [] => writeln!(out, "{name} {done}")?,
            stays => {
                writeln!(out, "{name} {done}, but for what bulkhead did not write:")?;
                stays.iter().try_for_each(|path| writeln!(out, "  {} {kept}", single_line(path)))?;
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_fits_narrow_terminals_without_losing_content() {
        let entry = ResultEntry {
            folder: "runs/20261126-110436601-6806446-18583".into(),
            setting: "crossbeam-array-queue process, 256×64, 4.00 M orders".into(),
            verdict: "valid".into(),
            fit_for_latency: Some(false),
            reasons: vec!["strategies share core 0: use fewer".into(); 6],
            ..ResultEntry::default()
        };
        let entries = [entry.clone(), ResultEntry { setting: "bill of 1 setting, 1 repeat".into(), ..entry }];
        for width in [60, 80] {
            let text = formatted(&entries, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for entry in &entries {
                assert!(unwrapped.contains(&entry.setting), "{text}");
            }
            assert!(unwrapped.contains("valid; not fit: strategies share core 0 (and 5 more)"), "{text}");
        }
        let wide = formatted(&entries, 160);
        assert_eq!(wide.lines().count(), 4, "one line each: {wide}");
        assert!(wide.starts_with("folder"), "{wide}");
    }
}
