//! Finds runs: saved ones by id, by the beginning of an id or by folder, and active ones in
//! `/dev/shm`.
#![forbid(unsafe_code)]

pub mod active;
pub mod run_id;

use active::active_runs;
use anyhow::{Context, Result};
use planner::config::UsageError;
use protocol::segments::open_control;
use record::document::Document;
use record::experiment::ExperimentHead;
use record::run::{RunRecord, SUMMARY_FILE};
use run_id::RunId;
use std::fs;
use std::path::{Path, PathBuf};

/// The default folder of runs' and experiments' results, relative to the working directory.
pub const RUNS: &str = "runs";

/// Resolves a user's name for a run to the run's folder as [`path_of`] does, and refuses a file.
pub fn folder_of(name: &Path) -> Result<PathBuf> {
    let path = path_of(name)?;
    if path.is_dir() {
        return Ok(path);
    }
    let parent = path.parent().filter(|parent| is_result(parent));
    let remedy = match parent.map(Path::display) {
        Some(parent) if parent.to_string().is_empty() => "name its folder, here .".into(),
        Some(parent) => format!("name its folder, {parent}"),
        None => "name the folder of a run or an experiment; launcher list shows them".into(),
    };
    Err(UsageError(format!("{}: it is not a folder: {remedy}", path.display())).into())
}

/// Resolves a user's name for a run to the path of its folder, or of a file in it. The name is a
/// path; or in `runs` the name of a folder, a run's id or the beginning of one, or `latest` for the
/// newest run; or the id of an active run whose folder is elsewhere.
pub fn path_of(name: &Path) -> Result<PathBuf> {
    // A link that the user names is followed; those in a folder of results are not.
    if name.exists() || name.is_symlink() {
        let real = if name.is_symlink() { name.canonicalize().ok() } else { None };
        return Ok(real.unwrap_or_else(|| name.to_owned()));
    }
    if let Some(found) = find_named(Path::new(RUNS), name)?.or_else(|| folder_of_active(name)) {
        return Ok(found);
    }
    let why = match name.to_str() {
        Some("latest") => format!("latest: there is no run in ./{RUNS}: name its folder"),
        _ => {
            format!("{}: no such folder and no run of ./{RUNS}; launcher list shows the runs", name.display())
        }
    };
    Err(UsageError(why).into())
}

/// Finds a run or an experiment in the folder `runs` by its folder's name, or a run by its id, the
/// id's beginning, or `latest`.
pub fn find_named(runs: &Path, name: &Path) -> Result<Option<PathBuf>> {
    let Some(text) = name.to_str().filter(|text| !text.is_empty() && !text.contains('/')) else {
        return Ok(None);
    };
    if is_result(&runs.join(text)) {
        return Ok(Some(runs.join(text)));
    }
    let all = saved_runs(runs)?.into_iter();
    if text == "latest" {
        return Ok(all.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, folder)| folder));
    }
    let mut found: Vec<_> = all.filter(|(run, _)| run.starts_with(text)).collect();
    if let Some(exact) = found.iter().position(|(run, _)| run == text) {
        found = vec![found.swap_remove(exact)];
    }
    match found.as_slice() {
        [] => Ok(None),
        [(_, folder)] => Ok(Some(folder.clone())),
        several => {
            let runs: Vec<&str> = several.iter().map(|(run, _)| run.as_str()).collect();
            let why =
                format!("{} runs begin with {text:?}: name one of\n  {}", runs.len(), runs.join("\n  "));
            Err(UsageError(why).into())
        }
    }
}

/// Returns the saved runs in a folder: id and folder of each whose record can be read.
fn saved_runs(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let folders = entries.flatten().map(|entry| entry.path());
    Ok(folders.filter_map(|folder| Some((RunRecord::read(&folder).ok()?.plan.run, folder))).collect())
}

/// Returns the folder of the only active run whose id begins with the name.
fn folder_of_active(name: &Path) -> Option<PathBuf> {
    let text = name.to_str().filter(|text| !text.is_empty())?;
    let active: Vec<String> = active_runs().ok()?.iter().map(RunId::to_string).collect();
    let mut found = active.iter().filter(|run| run.starts_with(text));
    let run = found.next().filter(|_| found.next().is_none())?;
    let (_, plan) = open_control(run).ok()?;
    Some(PathBuf::from(plan.folder)).filter(|folder| folder.is_dir())
}

/// Returns `true` if a folder has the files of a run or of an experiment.
pub fn is_result(folder: &Path) -> bool {
    // A file that cannot be read is there as well.
    let has = |file: &str| folder.join(file).symlink_metadata().is_ok();
    has(RunRecord::FILE) || has(SUMMARY_FILE) || ExperimentHead::is_in(folder)
}

/// Returns completions for a shell argument that names a run: `latest`, active runs' ids and names
/// of result folders.
pub fn names(folder: &Path) -> Vec<String> {
    let active = active_runs().unwrap_or_default();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries.filter(|path| is_result(path));
    let folders = folders.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = folders.chain(active.iter().map(RunId::to_string)).collect();
    names.sort();
    if !names.is_empty() {
        names.insert(0, "latest".into());
    }
    names
}
