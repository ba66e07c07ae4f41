//! Loads the runs of a path: one run, a sweep, or a folder of runs.

use crate::record::read;
use crate::usage;
use analysis::experiment::{Axis, Experiment, ExperimentRuns};
use analysis::stats::RunOutline;
use anyhow::{Context, Result, ensure};
use record::document::Document;
use std::fs;
use std::path::Path;
use verdict::summary::Summary;

/// The saved runs of one combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingRuns {
    /// The settings that distinguish these runs from the other runs of the folder.
    pub name: String,
    /// All settings of the runs, as keys and texts, in a fixed order.
    pub key: Vec<(String, String)>,
    pub runs: Vec<RunOutline>,
}

/// Loads the saved runs in a path (a run, an experiment or a folder of runs), grouped by their
/// settings.
pub fn load(path: &Path) -> Result<Vec<SettingRuns>> {
    if Experiment::is_in(path) {
        let record = read(path)?;
        if record.kind.entry().is_search {
            let why = "a search for the highest rate has no repeats to compare";
            return usage(format!("{}: {why}", path.display()));
        }
        let runs = ExperimentRuns::new(&record);
        // An A/A test repeats another setting, which is the one to compare.
        let measured = runs.points.iter().filter(|point| !point.runs.is_empty() && !point.is_aa_test);
        let cells = measured.map(|point| {
            let runs = point.outlines();
            let mut key = key(&runs[0]);
            let own = point.values.iter().map(|(axis, text)| (axis.to_string(), text.clone()));
            let own: Vec<_> = own.filter(|(axis, _)| !key.iter().any(|(known, _)| known == axis)).collect();
            key.extend(own);
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
    if cells.is_empty() {
        return usage(format!(
            "{}: no run in it: neither {} nor {}, nor folders that have one; launcher list shows the runs",
            path.display(),
            Summary::FILE,
            Experiment::FILE
        ));
    }
    Ok(cells)
}

/// Groups runs by their setting; runs of equal settings are repeats.
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
    let of_axis = |axis: &Axis| {
        let text = axis.entry().of_run?(run);
        (!axis.is_unnamed_default(&text)).then(|| (axis.to_string(), text))
    };
    let of_axes = Axis::ALL.iter().filter_map(of_axis);
    of_axes.chain([("threading".to_owned(), run.threading.to_string())]).collect()
}

pub(super) fn format_setting(key: &[(String, String)]) -> String {
    key.iter().map(|(key, text)| format!("{key}={text}")).collect::<Vec<_>>().join(" ")
}
