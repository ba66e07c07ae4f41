//! The folder of results: what is in it, under which name a user finds it, and what may be taken
//! away.

mod command;
mod owned;

pub use command::{DeleteFlags, ListFlags, delete, show};

use crate::config::UsageError;
use crate::runtime::active::active_runs;
use crate::runtime::run_id::RunId;
use analysis::document::{Document, DocumentError};
use analysis::experiment::{self, Boards, Lab, SweepPlan, SweepRecord, SweepState};
use analysis::fitness::Fitness;
use analysis::record::{RunOutcome, RunRecord};
use analysis::summary::Summary;
use anyhow::{Context, Result};
use owned::FolderKind;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use system::process;

/// Where results go unless `--out` says otherwise.
pub const RUNS: &str = "runs";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub folder: String,
    /// The run's id; empty for many runs.
    pub run: String,
    /// When it began, UTC; empty where its record does not say.
    pub started: String,
    pub setting: String,
    /// `valid`, `not valid`, `interrupted`, `failed: …`, `running`, or what the folder is.
    pub verdict: String,
    /// What its report says of its latencies: `fit for latency claims`, `not fit for latency
    /// claims`; null: there is no report.
    pub fitness: Option<&'static str>,
    /// Whether its latencies may be quoted; null: there is no report.
    pub fit_for_latency: Option<bool>,
    /// Why its latencies should not be quoted, as its report says it.
    pub reasons: Vec<String>,
}

/// What stands in a folder of results, in the order of their names; what is none is left out.
pub fn list(folder: &Path) -> Result<Vec<Entry>> {
    let living = active_runs().context("cannot look into /dev/shm")?;
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    Ok(folders.iter().filter_map(|folder| entry(folder, &living)).collect())
}

/// Returns `true` if the run of that name is one of these.
fn is_among(living: &[RunId], run: &str) -> bool {
    RunId::parse(run).is_some_and(|run| living.contains(&run))
}

fn entry(folder: &Path, living: &[RunId]) -> Option<Entry> {
    let name = folder.display().to_string();
    if folder.join(RunRecord::FILE).exists() {
        let entry = Entry { folder: name, ..Entry::default() };
        return Some(match RunRecord::read(folder) {
            Ok(record) => {
                let is_living = is_among(living, &record.plan.run);
                let summary = Summary::read(folder).ok().filter(|_| !is_living);
                Entry {
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
            Err(error) => Entry { verdict: error.to_string(), ..entry },
        });
    }
    let what = if let Ok(record) = SweepRecord::read(folder) {
        format!("{} of {} settings, {} repeats", record.kind, record.points.len(), record.repeats)
    } else if let Ok(lab) = Lab::read(folder) {
        format!("lab of {} cells, {} runs each", lab.cells.len(), lab.runs)
    } else if let Ok(boards) = Boards::read(folder) {
        format!("board of {} cases", boards.cases.len())
    } else {
        return None;
    };
    let fitness = experiment::fitness(folder);
    Some(Entry {
        folder: name,
        setting: what,
        verdict: "many runs".into(),
        fitness: fitness.as_ref().map(Fitness::verdict),
        fit_for_latency: fitness.as_ref().map(|fitness| fitness.is_fit),
        reasons: fitness.map_or_else(Vec::new, |fitness| fitness.reasons),
        ..Entry::default()
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
        analysis::numbers::short(
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

/// Characters of a reason that the table shows.
const REASON_LEN: usize = 48;

impl Entry {
    /// What the table shows of its fitness: `fit`, or `not fit` with the first reason, without what
    /// to do about it.
    fn fitness_in_short(&self) -> String {
        let reason = match (self.fit_for_latency, self.reasons.first()) {
            (None, _) => return String::new(),
            (Some(true), _) => return "fit".into(),
            (Some(false), None) => return "not fit".into(),
            (Some(false), Some(reason)) => reason,
        };
        let what = reason.rsplit_once(": ").map_or(reason.as_str(), |(what, _)| what);
        let mut words: String = what.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
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

/// The folder that a user means: a path, or `latest`: the run of `runs` that began last.
pub fn folder_of(name: &Path) -> Result<PathBuf> {
    if name != Path::new("latest") || name.exists() {
        // A link that the user names is followed; those in a folder of results are not.
        let real = if name.is_symlink() { name.canonicalize().ok() } else { None };
        return Ok(real.unwrap_or_else(|| name.to_owned()));
    }
    let all = if Path::new(RUNS).is_dir() { list(Path::new(RUNS))? } else { Vec::new() };
    let last = all.into_iter().filter(|entry| !entry.run.is_empty()).max_by(|a, b| a.run.cmp(&b.run));
    match last {
        Some(entry) => Ok(entry.folder.into()),
        None => Err(UsageError(format!("latest: there is no run in ./{RUNS}: name its folder")).into()),
    }
}

/// What a folder of results is, if one of bulkhead's documents says so: by its contents, not by its
/// name.
fn kind_of(folder: &Path) -> Result<FolderKind, String> {
    let kinds = [
        (FolderKind::Run, seen::<RunRecord>(folder)),
        (FolderKind::Experiment, seen::<SweepRecord>(folder)),
        (FolderKind::Experiment, seen::<SweepPlan>(folder)),
        (FolderKind::Experiment, seen::<Lab>(folder)),
        (FolderKind::Experiment, seen::<Boards>(folder)),
    ];
    let found = kinds.into_iter().find_map(|(kind, seen)| Some(seen?.map(|()| kind)));
    found.unwrap_or_else(|| Err("it holds neither a run nor an experiment".into()))
}

/// Whether that document is in a folder and says itself that it is one; one of another version is
/// one as well. `None`: there is no such file.
fn seen<D: Document>(folder: &Path) -> Option<Result<(), String>> {
    match D::read(folder) {
        Ok(_) | Err(DocumentError::Version { .. }) => Some(Ok(())),
        Err(DocumentError::Absent { .. }) => None,
        Err(error) => Some(Err(format!("no run or experiment of bulkhead is in it: {error}"))),
    }
}

/// Whether a folder may be taken away, and what it is.
pub fn may_go(folder: &Path) -> Result<FolderKind, UsageError> {
    let name = folder.display();
    let refused = |why: &str| Err(UsageError(format!("{name} is not deleted: {why}")));
    match folder.symlink_metadata() {
        Ok(facts) if facts.is_dir() => {}
        Ok(_) => return refused("it is no folder"),
        Err(error) => return refused(&error.to_string()),
    }
    let kind = match kind_of(folder) {
        Ok(kind) => kind,
        Err(why) => return refused(&why),
    };
    let living = active_runs().map_err(|error| UsageError(format!("cannot look into /dev/shm: {error}")))?;
    let lives =
        |folder: &Path| RunRecord::read(folder).is_ok_and(|record| is_among(&living, &record.plan.run));
    let is_measured = SweepRecord::read(folder).is_ok_and(|record| {
        let (pid, start) = record.launcher;
        record.state == SweepState::Running && process::is_running(pid, start)
    });
    if is_measured {
        return refused("its launcher goes on");
    }
    let inside = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    if lives(folder) || inside.filter(|path| path.is_dir()).any(|path| lives(&path)) {
        return refused("its run goes on");
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
            Entry { fit_for_latency, reasons, ..Entry::default() }.fitness_in_short()
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
    fn nothing_but_results_may_go() {
        let folder = tempfile::tempdir().unwrap();
        assert!(may_go(folder.path()).unwrap_err().to_string().contains("neither a run"));
        for (text, wanted) in
            [("{}", "missing field `schema`"), (r#"{"schema":"npm/1"}"#, "another file under this name")]
        {
            fs::write(folder.path().join(RunRecord::FILE), text).unwrap();
            let refused = may_go(folder.path()).unwrap_err().to_string();
            assert!(refused.contains("is not deleted") && refused.contains(wanted), "{refused}");
        }
        fs::write(folder.path().join(RunRecord::FILE), r#"{"schema":"bulkhead.run/1"}"#).unwrap();
        assert_eq!(may_go(folder.path()).unwrap(), FolderKind::Run, "also one of another version");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(may_go(&link).unwrap_err().to_string().contains("no folder"));
        assert!(may_go(Path::new("/no/such/run")).is_err());
    }
}
