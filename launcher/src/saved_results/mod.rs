//! Lists and names saved runs and experiments, and decides which may be deleted.

mod command;
mod owned;

pub use command::{DeleteFlags, ListFlags, delete, show};

use crate::runtime::active::active_runs;
use crate::runtime::run_id::RunId;
use analysis::experiment::{Experiment, Kind};
use anyhow::{Context, Result};
use owned::FolderKind;
use planner::config::UsageError;
use protocol::segments::open_control;
use record::document::{Document, DocumentFault};
use record::fitness::Fitness;
use record::run::{RunOutcome, RunRecord};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use verdict::summary::Summary;

/// Name of the default folder of results.
pub const RUNS: &str = "runs";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultEntry {
    pub folder: String,
    /// The run's id; empty for many runs.
    pub run: String,
    /// Start time, UTC; empty if its record has none.
    pub started: String,
    pub setting: String,
    /// `valid`, `not valid`, `interrupted`, `failed: …`, `running`, or what the folder is.
    pub verdict: String,
    /// Its report's verdict on latencies: `fit for latency claims`, `not fit for latency claims`;
    /// null without a report.
    pub fitness: Option<&'static str>,
    /// Whether its latencies may be quoted; null without a report.
    pub fit_for_latency: Option<bool>,
    /// Reasons of its report not to quote its latencies.
    pub reasons: Vec<String>,
}

/// Lists the runs and experiments in a folder, sorted by name; other files are skipped.
pub fn list_results(folder: &Path) -> Result<Vec<ResultEntry>> {
    let active = active_runs().context("cannot look into /dev/shm")?;
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    Ok(folders.iter().filter_map(|folder| entry(folder, &active)).collect())
}

fn is_among(active: &[RunId], run: &str) -> bool {
    RunId::parse(run).is_some_and(|run| active.contains(&run))
}

fn entry(folder: &Path, active: &[RunId]) -> Option<ResultEntry> {
    let name = folder.display().to_string();
    if folder.join(RunRecord::FILE).exists() {
        let entry = ResultEntry { folder: name, ..ResultEntry::default() };
        return Some(match RunRecord::read(folder) {
            Ok(record) => {
                let is_living = is_among(active, &record.plan.run);
                let summary = Summary::read(folder).ok().filter(|_| !is_living);
                ResultEntry {
                    run: record.plan.run.clone(),
                    started: record.started.clone(),
                    setting: setting(&record),
                    verdict: if is_living { "running".into() } else { verdict(&record, summary.as_ref()) },
                    fitness: summary.as_ref().map(Summary::verdict),
                    fit_for_latency: summary.as_ref().map(|summary| summary.fit_for_latency),
                    reasons: summary.map_or_else(Vec::new, |summary| summary.reasons),
                    ..entry
                }
            }
            Err(error) => ResultEntry { verdict: error.to_string(), ..entry },
        });
    }
    let experiment = Experiment::read(folder).ok()?;
    let entry = experiment.kind.entry();
    let (what, fitness) = ((entry.summary)(&experiment), Some((entry.fitness)(&experiment)));
    Some(ResultEntry {
        folder: name,
        setting: what,
        verdict: "many runs".into(),
        fitness: fitness.as_ref().map(Fitness::verdict),
        fit_for_latency: fitness.as_ref().map(|fitness| fitness.is_fit),
        reasons: fitness.map_or_else(Vec::new, |fitness| fitness.reasons),
        ..ResultEntry::default()
    })
}

fn setting(record: &RunRecord) -> String {
    let trading = record.plan.trading();
    format!(
        "{} {}, {}×{}, {} orders",
        record.plan.technique,
        record.plan.isolation,
        trading.strategies,
        trading.venues,
        record::numbers::short(
            trading.orders.iter().fold(0, |sum, orders| u64::saturating_add(sum, *orders))
        )
    )
}

fn verdict(record: &RunRecord, summary: Option<&Summary>) -> String {
    match (&record.outcome, summary) {
        (RunOutcome::Failed { what, .. }, _) => format!("failed: {what}"),
        (RunOutcome::Interrupted, _) => "interrupted".into(),
        (RunOutcome::Complete, Some(summary)) if summary.valid => "valid".into(),
        (RunOutcome::Complete, Some(_)) => "not valid".into(),
        (RunOutcome::Complete, None) => "not merged".into(),
    }
}

const REASON_LEN: usize = 48;

impl ResultEntry {
    /// Returns `fit`, or `not fit` with the first reason, without the remedy.
    fn fitness_in_short(&self) -> String {
        let reason = match (self.fit_for_latency, self.reasons.first()) {
            (None, _) => return String::new(),
            (Some(true), _) => return "fit".into(),
            (Some(false), None) => return "not fit".into(),
            (Some(false), Some(reason)) => reason,
        };
        let description = reason.rsplit_once(": ").map_or(reason.as_str(), |(description, _)| description);
        let mut words: String = description.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some((end, _)) = words.char_indices().nth(REASON_LEN) {
            words.truncate(end);
            words.push('…');
        }
        match self.reasons.len() - 1 {
            0 => format!("not fit: {words}"),
            more => format!("not fit: {words} (and {more} more)"),
        }
    }
}

/// Resolves the name of a run's folder as [`path_of`] does, and refuses one that is a file.
pub fn folder_of(name: &Path) -> Result<PathBuf> {
    let path = path_of(name)?;
    if path.is_dir() {
        return Ok(path);
    }
    let parent = path.parent().filter(|parent| kind_of(parent).is_ok());
    let remedy = match parent.map(Path::display) {
        Some(parent) if parent.to_string().is_empty() => "name its folder, here .".into(),
        Some(parent) => format!("name its folder, {parent}"),
        None => "name the folder of a run or an experiment; launcher list shows them".into(),
    };
    Err(UsageError(format!("{}: it is not a folder: {remedy}", path.display())).into())
}

/// Resolves the name of a run's folder or of a file in it. That is a path; or in `runs` the name of
/// a folder, a run's id or the beginning of one, or `latest` for the newest run; or the id of an
/// active run whose folder is elsewhere.
pub fn path_of(name: &Path) -> Result<PathBuf> {
    // A link that the user names is followed; those in a folder of results are not.
    if name.exists() || name.is_symlink() {
        let real = if name.is_symlink() { name.canonicalize().ok() } else { None };
        return Ok(real.unwrap_or_else(|| name.to_owned()));
    }
    if let Some(found) = named_in(Path::new(RUNS), name)?.or_else(|| folder_of_active(name)) {
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

/// Finds a run or an experiment by name among the results in a folder: the name of its own folder,
/// a run's id or the beginning of one, or `latest`.
pub fn named_in(runs: &Path, name: &Path) -> Result<Option<PathBuf>> {
    let Some(text) = name.to_str().filter(|text| !text.is_empty() && !text.contains('/')) else {
        return Ok(None);
    };
    if is_result(&runs.join(text)) {
        return Ok(Some(runs.join(text)));
    }
    let all = if runs.is_dir() { list_results(runs)? } else { Vec::new() };
    let all = all.into_iter().filter(|entry| !entry.run.is_empty());
    if text == "latest" {
        return Ok(all.max_by(|a, b| a.run.cmp(&b.run)).map(|entry| entry.folder.into()));
    }
    let mut found: Vec<_> = all.filter(|entry| entry.run.starts_with(text)).collect();
    if let Some(exact) = found.iter().position(|entry| entry.run == text) {
        found = vec![found.swap_remove(exact)];
    }
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.folder.clone().into())),
        several => {
            let runs: Vec<&str> = several.iter().map(|entry| entry.run.as_str()).collect();
            let why =
                format!("{} runs begin with {text:?}: name one of\n  {}", runs.len(), runs.join("\n  "));
            Err(UsageError(why).into())
        }
    }
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
    has(RunRecord::FILE) || has(Summary::FILE) || Experiment::is_in(folder)
}

/// Returns the names by which commands find results, for shell completion: of the active runs, and
/// of the results in a folder.
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

fn kind_of(folder: &Path) -> Result<FolderKind, String> {
    let run = read_document::<RunRecord>(folder).map(|found| found.map(|_| FolderKind::Run));
    let experiment = || {
        let kind = |found: Option<Experiment>| match found {
            Some(found) if found.kind == Kind::Survey => FolderKind::Survey,
            _ => FolderKind::Experiment,
        };
        read_document::<Experiment>(folder).map(|found| found.map(kind))
    };
    run.or_else(experiment).unwrap_or_else(|| Err("it holds neither a run nor an experiment".into()))
}

/// Checks whether a folder has that document and the document declares its type; one of another
/// version counts, and is not returned. `None`: the file does not exist.
fn read_document<D: Document>(folder: &Path) -> Option<Result<Option<D>, String>> {
    match D::read(folder) {
        Ok(found) => Some(Ok(Some(found))),
        Err(error) if error.fault == DocumentFault::Version => Some(Ok(None)),
        Err(error) if error.fault == DocumentFault::Absent => None,
        Err(error) => Some(Err(format!("no run or experiment of bulkhead is in it: {error}"))),
    }
}

/// Checks that a folder may be deleted. Returns its kind.
pub fn check_deletable(folder: &Path) -> Result<FolderKind, UsageError> {
    let name = folder.display();
    let refused = |why: &str| Err(UsageError(format!("{name} is not deleted: {why}")));
    match folder.symlink_metadata() {
        Ok(facts) if facts.is_dir() => {}
        Ok(_) => return refused("it is not a folder"),
        Err(error) => return refused(&error.to_string()),
    }
    let kind = match kind_of(folder) {
        Ok(kind) => kind,
        Err(why) => return refused(&why),
    };
    let active = active_runs().map_err(|error| UsageError(format!("cannot look into /dev/shm: {error}")))?;
    let is_active =
        |folder: &Path| RunRecord::read(folder).is_ok_and(|record| is_among(&active, &record.plan.run));
    let is_measured = |folder: &Path| Experiment::read(folder).is_ok_and(|record| record.is_being_measured());
    let inside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let inside: Vec<PathBuf> = inside.filter(|path| path.is_dir()).collect();
    if is_measured(folder) || inside.iter().any(|path| is_measured(path)) {
        return refused("its launcher is still running");
    }
    if is_active(folder) || inside.iter().any(|path| is_active(path)) {
        return refused("its run is still active");
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitness_in_short_names_first_reason() {
        let entry = |fit_for_latency, reasons: &[&str]| {
            let reasons = reasons.iter().map(|reason| (*reason).into()).collect();
            ResultEntry { fit_for_latency, reasons, ..ResultEntry::default() }.fitness_in_short()
        };
        assert_eq!(entry(None, &[]), "");
        assert_eq!(entry(Some(true), &[]), "fit");
        let few = "500 orders came back, a p99.9 needs 10,000: send more orders";
        assert_eq!(entry(Some(false), &[few]), "not fit: 500 orders came back, a p99.9 needs 10,000");
        let long = format!("\u{1b}[31m{}: do something", "é".repeat(99));
        let shown = entry(Some(false), &[&long, few, few]);
        assert_eq!(shown, format!("not fit:  [31m{}… (and 2 more)", "é".repeat(REASON_LEN - 5)));
    }

    #[test]
    fn only_results_may_be_deleted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_deletable(folder.path()).unwrap_err().to_string().contains("neither a run"));
        for (text, wanted) in
            [("{}", "missing field `schema`"), (r#"{"schema":"npm/1"}"#, "another file under this name")]
        {
            fs::write(folder.path().join(RunRecord::FILE), text).unwrap();
            let refused = check_deletable(folder.path()).unwrap_err().to_string();
            assert!(refused.contains("is not deleted") && refused.contains(wanted), "{refused}");
        }
        fs::write(folder.path().join(RunRecord::FILE), r#"{"schema":"bulkhead.run/1"}"#).unwrap();
        assert_eq!(check_deletable(folder.path()).unwrap(), FolderKind::Run, "also one of another version");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(check_deletable(&link).unwrap_err().to_string().contains("not a folder"));
        assert!(check_deletable(Path::new("/no/such/run")).is_err());
    }
}
