//! Names of the files that bulkhead writes into a folder of results: only those are deleted.

use merge::hlog::HLOG_FILE;
use merge::tail::Tail;
use merge::timeline::Timeline;
use planner::config::CONFIG_FILE;
use record::document::Document;
use record::experiment::ExperimentHead;
use record::logfile::EXTENSION;
use record::run::RunRecord;
use std::fs;
use std::io;
use std::path::Path;
use system::folder::{DRAFT_SUFFIX, OpenDir};
use verdict::html::HTML_FILE;
use verdict::summary::{Measure, Summary};

/// A run's tags, written by earlier builds.
const TAGS: &str = "tags";
/// Folders of a planned sweep.
const RUNS: &str = "runs";
const MAKING: &str = "making";

/// The kind of a results folder: a run, an experiment, a `launcher survey`, a journal, or the runs
/// of a `launcher sweep --plan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    Run,
    /// The folder of an experiment: many runs, with tables.
    Experiment,
    /// The folder of a survey, with a folder for each of its experiments and runs.
    Survey,
    /// The folder of a journal, inside that of a run.
    Journal,
    /// The folder of a planned sweep's runs, which contains only folders.
    Runs,
}

/// Fixed file names of a run's folder.
const RUN_FILES: [&str; 12] = [
    RunRecord::FILE,
    // Written by planned sweeps of earlier builds.
    "result.json",
    Summary::FILE,
    Timeline::FILE,
    Tail::FILE,
    HLOG_FILE,
    HTML_FILE,
    CONFIG_FILE,
    "stages.csv",
    "stages.md",
    "positions.csv",
    // Written for strategies on another host.
    "remote.json",
];

/// Fixed file names of an experiment's folder, except its tables.
const EXPERIMENT_FILES: [&str; 15] = [
    ExperimentHead::FILE,
    HTML_FILE,
    // Written by earlier builds.
    "sweep.json",
    "plan.json",
    "bill.json",
    "contain.json",
    "lab.json",
    "board.json",
    "compare.json",
    TAGS,
    "with-itself.json",
    "sweep_slurm.sh",
    "sweep_kubernetes.yaml",
    "sweep_dask.py",
    "sweep_ray.py",
];

const SURVEY_FILES: [&str; 6] =
    [ExperimentHead::FILE, "survey.json", "rows.csv", "card.txt", "card.svg", HTML_FILE];

/// Tables of experiments and their documents, without extension.
const TABLES: [&str; 25] = [
    "rows",
    "runs",
    "sweep",
    "bill",
    "compare",
    "contain",
    "disturb",
    "lab",
    "board",
    "with-itself",
    "with_itself",
    "max_rate",
    // Written by earlier builds.
    "knee",
    "by_floor",
    "by_host",
    "comebacks",
    "seed",
    "waiting",
    "carrier",
    "cells",
    "fairness",
    "seed-rows",
    "seed-writes",
    "seed-reads",
    "left-out",
];

/// Returns `true` if bulkhead writes a file of this name into this kind of folder.
pub fn is_owned(kind: FolderKind, name: &str) -> bool {
    let is_draft = name.starts_with('.') && name.ends_with(DRAFT_SUFFIX);
    is_draft
        || match kind {
            FolderKind::Run => is_of_run(name),
            FolderKind::Experiment => EXPERIMENT_FILES.contains(&name) || is_table(name),
            FolderKind::Survey => SURVEY_FILES.contains(&name),
            FolderKind::Journal => is_of_journal(name),
            FolderKind::Runs => false,
        }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_of_run(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return name == TAGS };
    let is_of_venue = |kind: &str| stem.strip_prefix(kind).is_some_and(is_number);
    RUN_FILES.contains(&name)
        || ending == EXTENSION
        || ending == "stderr"
        || (ending == "csv" && (is_of_venue("trades-") || is_of_venue("book-")))
}

fn is_table(name: &str) -> bool {
    let Some((stem, ending @ ("csv" | "md"))) = name.rsplit_once('.') else { return false };
    let is_numbered = |kind: &str| stem.strip_prefix(kind).is_some_and(is_number);
    let is_of_measure = |measure: Measure| {
        stem.strip_prefix(measure.name()).is_some_and(|rest| rest.starts_with("_p") || rest == "_max")
    };
    TABLES.contains(&stem)
        || ending == "csv"
            && (["bill_", "contain_"].iter().any(|front| stem.starts_with(front))
                || is_numbered("case-")
                || is_numbered("readers-")
                || is_latency(stem)
                || Measure::every().any(is_of_measure))
}

/// Returns `true` if a name is that of the latencies over time of a board's case, or of a thread:
/// `latency-0`, `latency-0-reader-3`.
fn is_latency(stem: &str) -> bool {
    let Some(rest) = stem.strip_prefix("latency-") else { return false };
    let (case, thread) = rest.split_once('-').unwrap_or((rest, ""));
    is_number(case)
        && (["", "writer"].contains(&thread) || thread.strip_prefix("reader-").is_some_and(is_number))
}

fn is_of_journal(name: &str) -> bool {
    ["lock", "unfinished-segment", "unfinished-snapshot"].contains(&name)
        || ["log-", "snapshot-", "orphaned-", "aside-", "spare-"]
            .iter()
            .any(|front| name.strip_prefix(front).is_some_and(is_number))
}

/// Returns the kind of a subfolder; `None` if it is not bulkhead's.
fn kind_of(within: FolderKind, path: &Path, name: &str) -> Option<FolderKind> {
    let is_run = || {
        let known = [RunRecord::FILE, CONFIG_FILE, Summary::FILE];
        known.iter().any(|file| path.join(file).symlink_metadata().is_ok_and(|facts| facts.is_file()))
    };
    match within {
        FolderKind::Run => name.starts_with("journal-").then_some(FolderKind::Journal),
        FolderKind::Experiment if [RUNS, MAKING].contains(&name) => Some(FolderKind::Runs),
        FolderKind::Experiment => is_run().then_some(FolderKind::Run),
        FolderKind::Survey if ExperimentHead::is_in(path) => Some(FolderKind::Experiment),
        FolderKind::Survey => is_run().then_some(FolderKind::Run),
        // An unfinished run is in its launcher's folder below `making/`.
        FolderKind::Runs => Some(if is_run() { FolderKind::Run } else { FolderKind::Runs }),
        FolderKind::Journal => None,
    }
}

/// Deletes the files that bulkhead wrote into a folder, and the folder if that leaves it empty.
/// Returns the paths that stay. With `dry` nothing is deleted. Links, pipes and other special files
/// stay, and are not followed.
pub fn delete(kind: FolderKind, folder: &Path, dry: bool) -> io::Result<Vec<String>> {
    let open = OpenDir::open(folder)?;
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let (facts, text) = (entry.file_type()?, name.to_string_lossy());
        if facts.is_dir()
            && let Some(inner) = kind_of(kind, &path, &text)
        {
            kept.extend(delete(inner, &path, dry)?);
        } else if facts.is_file() && is_owned(kind, &text) {
            if !dry {
                open.remove(&name)?;
            }
        } else {
            kept.push(path.display().to_string());
        }
    }
    if kept.is_empty() && !dry {
        fs::remove_dir(folder)?;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_names_of_bulkhead_are_owned() {
        for name in
            ["run.json", "engine.stamps", "reaper.stderr", "trades-0.csv", "tags", ".run.json.00ff.new"]
        {
            assert!(is_owned(FolderKind::Run, name), "{name}");
        }
        for name in
            ["thesis.md", "trades.csv", "trades-x.csv", "run.json.bak", ".bashrc", "stages.txt", "sweep.json"]
        {
            assert!(!is_owned(FolderKind::Run, name), "{name}");
        }
        for name in [
            "sweep.json",
            "rt_venue_p50.csv",
            "rt_venue_p999.csv",
            "sweep.md",
            "case-3.csv",
            "latency-0.csv",
            "latency-3-writer.csv",
            "latency-3-reader-12.csv",
            "contain_process.csv",
        ] {
            assert!(is_owned(FolderKind::Experiment, name), "{name}");
        }
        for name in [
            "notes.md",
            "data.csv",
            "case-.csv",
            "latency-3-reader-.csv",
            "latency-writer.csv",
            "engine.stamps",
            "rt_venue.csv",
        ] {
            assert!(!is_owned(FolderKind::Experiment, name), "{name}");
        }
    }
}
