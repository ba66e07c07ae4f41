//! Loads the runs of a path: one run, a sweep, or a folder of runs.

use crate::experiments::record::read;
use crate::experiments::usage;
use analysis::document::Document;
use analysis::experiment::{Axis, SweepRecord};
use analysis::stats::RunOutline;
use analysis::summary::Summary;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// The saved runs of one combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingRuns {
    /// The settings that distinguish the cell from the other cells of its folder.
    pub name: String,
    /// The setting of the runs, as key and text, in a fixed order.
    pub key: Vec<(String, String)>,
    pub runs: Vec<RunOutline>,
}

/// Loads the runs in a path, grouped by their settings.
pub fn load(path: &Path) -> Result<Vec<SettingRuns>> {
    if path.join(SweepRecord::FILE).exists() {
        let record = read(path)?;
        if record.search.is_some() {
            let why = "a search for the highest rate has no repeats to compare";
            return usage(format!("{}: {why}", path.display()));
        }
        let measured = record.points.iter().filter(|point| !point.runs.is_empty());
        let cells = measured.map(|point| {
            let runs = point.outlines();
            let mut key = key(&runs[0]);
            key.extend(point.values.get(&Axis::Rate).map(|rate| ("rate".to_owned(), rate.clone())));
            SettingRuns { name: point.name.clone(), key, runs }
        });
        let cells: Vec<SettingRuns> = cells.collect();
        ensure!(!cells.is_empty(), "{}: nothing was measured yet", path.display());
        return Ok(cells);
    }
    if path.join(Summary::FILE).exists() {
        let run = RunOutline::from_summary(&Summary::read(path)?);
        return Ok(vec![SettingRuns { name: run.run.clone(), key: key(&run), runs: vec![run] }]);
    }
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(Summary::FILE).exists());
    folders.sort();
    let summaries = folders.iter().map(|folder| Summary::read(folder)).collect::<Result<Vec<_>, _>>()?;
    let cells = group(&summaries);
    ensure!(
        !cells.is_empty(),
        "{}: no run in it: neither {} nor {}, nor folders that have one",
        path.display(),
        Summary::FILE,
        SweepRecord::FILE
    );
    Ok(cells)
}

pub fn group(summaries: &[Summary]) -> Vec<SettingRuns> {
    let mut cells: Vec<SettingRuns> = Vec::new();
    for run in summaries.iter().map(RunOutline::from_summary) {
        let key = key(&run);
        match cells.iter_mut().find(|cell| cell.key == key) {
            Some(cell) => cell.runs.push(run),
            None => cells.push(SettingRuns { name: format_setting(&key), key, runs: vec![run] }),
        }
    }
    cells
}

/// What makes two runs repeats of one setting.
fn key(run: &RunOutline) -> Vec<(String, String)> {
    [
        ("technique", run.technique.to_string()),
        ("isolation", run.isolation.to_string()),
        ("threading", run.threading.to_string()),
        ("idle", run.idle.to_string()),
        ("strategies", run.strategies.to_string()),
        ("venues", run.venues.to_string()),
        ("capacity", run.capacity.to_string()),
        ("work", format!("{}ns", run.work_ns)),
    ]
    .map(|(key, text)| (key.to_owned(), text))
    .to_vec()
}

pub(super) fn format_setting(key: &[(String, String)]) -> String {
    key.iter().map(|(key, text)| format!("{key}={text}")).collect::<Vec<_>>().join(" ")
}
