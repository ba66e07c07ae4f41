//! Lists and names saved runs and experiments, and decides which may be deleted.

mod command;
mod owned;

pub use command::{DeleteFlags, ListFlags, delete, show};

use crate::experiments;
use anyhow::{Context, Result};
use catalog::active::active_runs;
use catalog::run_id::RunId;
use owned::FolderKind;
use planner::config::UsageError;
use record::document::{Document, DocumentFault};
use record::experiment::ExperimentHead;
use record::fitness::Fitness;
use record::run::{RunOutcome, RunRecord};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use verdict::summary::Summary;

/// The verdict of an experiment in the list.
const MANY_RUNS: &str = "many runs";

/// A row of `launcher list`: a saved run or experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultEntry {
    pub folder: String,
    /// Id of the run; empty for an experiment of many runs.
    pub run: String,
    /// Start time, UTC; empty if the record has none.
    pub started: String,
    pub setting: String,
    /// Verdict on the result: `valid`, `not valid`, `interrupted`, `failed: …`, `running`, or the
    /// kind of folder.
    pub verdict: String,
    /// Verdict of the report on latencies: `fit for latency claims`, `not fit for latency claims`;
    /// null without a report.
    pub fitness: Option<&'static str>,
    /// Whether the latencies of the result may be quoted; null without a report.
    pub fit_for_latency: Option<bool>,
    /// Reasons of the report not to quote the latencies.
    pub reasons: Vec<String>,
}

/// Lists the runs and experiments in a folder, sorted by name; other files are skipped.
pub fn list_results(folder: &Path) -> Result<Vec<ResultEntry>> {
    let active = active_runs().context("cannot look into /dev/shm")?;
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let mut all: Vec<ResultEntry> = folders.iter().filter_map(|folder| entry(folder, &active)).collect();
    let experiments: Vec<&mut ResultEntry> =
        all.iter_mut().filter(|entry| entry.verdict == MANY_RUNS).collect();
    let folders: Vec<String> = experiments.iter().map(|entry| entry.folder.clone()).collect();
    for (entry, line) in experiments.into_iter().zip(experiments::lines(&folders)) {
        if line.setting.is_empty() {
            // Its program cannot read it either: the kind remains.
            continue;
        }
        entry.setting = line.setting;
        entry.fitness = line.fitness.as_ref().map(Fitness::verdict);
        entry.fit_for_latency = line.fitness.as_ref().map(|fitness| fitness.is_fit);
        entry.reasons = line.fitness.map_or_else(Vec::new, |fitness| fitness.reasons);
    }
    Ok(all)
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
    let experiment = ExperimentHead::read(folder).ok()?;
    Some(ResultEntry {
        folder: name,
        setting: experiment.kind,
        verdict: MANY_RUNS.into(),
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
        let mut reason: String = description.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if let Some((end, _)) = reason.char_indices().nth(REASON_LEN) {
            reason.truncate(end);
            reason.push('…');
        }
        match self.reasons.len() - 1 {
            0 => format!("not fit: {reason}"),
            more => format!("not fit: {reason} (and {more} more)"),
        }
    }
}

fn kind_of(folder: &Path) -> Result<FolderKind, String> {
    let run = read_document::<RunRecord>(folder).map(|found| found.map(|_| FolderKind::Run));
    let experiment = || {
        let kind = |found: Option<ExperimentHead>| match found {
            Some(found) if ["survey", "ladder"].contains(&found.kind.as_str()) => FolderKind::Survey,
            _ => FolderKind::Experiment,
        };
        read_document::<ExperimentHead>(folder).map(|found| found.map(kind))
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

/// Checks that a folder of results may be deleted. Returns its kind.
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
    let is_measured =
        |folder: &Path| ExperimentHead::read(folder).is_ok_and(|record| record.is_being_measured());
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

/// Returns an error if a saved run is of a benchmark, which sends no orders.
pub fn check_has_orders(record: &RunRecord, folder: &Path) -> Result<(), UsageError> {
    if record.plan.is_trading() {
        return Ok(());
    }
    let name = folder.display();
    Err(UsageError(format!(
        "{name}: a run of a benchmark, which sends no orders; launcher inspect {name} shows its ends, and the folder above \
         `runs` has their figures"
    )))
}

/// Returns an error, with the right command, if the folder holds an experiment or several results
/// instead of one run.
pub fn check_is_run_folder(folder: &Path) -> Result<(), UsageError> {
    if folder.join(RunRecord::FILE).exists() {
        return Ok(());
    }
    let name = folder.display();
    let what = ExperimentHead::read(folder).ok().map(|experiment| experiment.describe_folder(folder));
    let what = what.or_else(|| {
        let is_one = ExperimentHead::is_in(folder);
        is_one.then(|| "the folder of an experiment, not of a run".into())
    });
    let what = if let Some(what) = what {
        what
    } else if let Some(last) = list_results(folder).ok().and_then(|all| all.into_iter().next_back()) {
        format!("a folder of results, not of a run: name one of them, for example {}", last.folder)
    } else {
        return Ok(());
    };
    Err(UsageError(format!("{name}: {what}, and launcher report {name} --html draws it")))
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
