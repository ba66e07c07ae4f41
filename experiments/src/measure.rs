//! Runs the missing runs of a sweep, and saves after each.

use super::launcher::LaunchedRun;
use super::progress::SweepProgress;
use super::record::discard_unrecorded_runs;
use analysis::experiment::{Experiment, ExperimentState, Figures, Kind, Row, Setting};
use analysis::stats::RunOutline;
use anyhow::{Context, Result};
use catalog::RUNS;
use planner::config::Settings;
use planner::host::signals::Interrupted;
use record::document::Document;
use record::logfile::EXTENSION;
use record::run::RunOutcome;
use record::units::Count;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureEnd {
    Complete,
    /// Ctrl-C: the rest is for `--resume`.
    Interrupted,
    /// A busy machine leaves the answer open: the rest is not made.
    GivenUp,
}

/// A run made for an experiment: its folder, outcome and figures.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    pub folder: PathBuf,
    pub outcome: RunOutcome,
    pub outline: RunOutline,
    /// What the experiment's kind asks of the run beyond its outline.
    pub extra: Figures,
}

impl From<LaunchedRun> for MeasuredRun {
    fn from(launched: LaunchedRun) -> Self {
        let outline = RunOutline::from_summary(&launched.summary);
        Self { folder: launched.folder, outcome: launched.outcome, outline, extra: Figures::default() }
    }
}

impl MeasuredRun {
    /// Returns the figures of the run's row.
    pub fn figures(&self) -> Figures {
        Figures::from_outline(&self.outline).and(&self.extra)
    }
}

/// A function that makes one run of an experiment with the given settings. Tests pass a function
/// that invents its figures.
pub type RunMaker<'a> = dyn FnMut(&Settings) -> Result<MeasuredRun> + 'a;

/// Makes the missing runs of an experiment, and saves its record after each. A failed run is kept
/// as failed, and tried again by the next call.
pub fn measure(
    record: &mut Experiment,
    folder: &Path,
    make: &mut RunMaker<'_>,
    bar: &mut SweepProgress,
) -> Result<MeasureEnd> {
    measure_unless(record, folder, make, bar, &|_| None)
}

/// Makes the missing runs as [`measure`] does, unless `give_up` returns a reason after a repeat.
pub(super) fn measure_unless(
    record: &mut Experiment,
    folder: &Path,
    make: &mut RunMaker<'_>,
    bar: &mut SweepProgress,
    give_up: &dyn Fn(&Experiment) -> Option<String>,
) -> Result<MeasureEnd> {
    let todo: Vec<usize> =
        (0..record.rows.len()).filter(|at| is_missing(record, &record.rows[*at])).collect();
    let all = record.rows.len();
    for (number, at) in todo.iter().copied().enumerate() {
        let left = todo.len() - number;
        bar.begin(&record.rows[at].setting.name, all - left, left);
        let settings = Settings { out: Some(folder.to_owned()), ..settings_of(record, &record.rows[at])? };
        let Some((name, made)) = measure_one(record, folder, &settings, make)? else {
            return Ok(MeasureEnd::Interrupted);
        };
        bar.end();
        (record.rows[at].folder, record.rows[at].figures) = (name, made.figures());
        record.save(folder).with_context(|| resume_hint(record.kind, folder))?;
        let repeat = record.rows[at].repeat;
        let is_whole = record.rows.iter().all(|row| row.repeat != repeat || row.is_made());
        if let Some(why) = is_whole.then(|| give_up(record)).flatten() {
            shorten(record);
            record.notes.push(why);
            record.save(folder)?;
            return Ok(MeasureEnd::GivenUp);
        }
    }
    record.state = ExperimentState::Complete;
    record.save(folder)?;
    discard_unrecorded_runs(record, folder);
    Ok(MeasureEnd::Complete)
}

/// Returns `true` if the run of a row is still to be made: never, or without success.
pub(super) fn is_missing(record: &Experiment, row: &Row) -> bool {
    let is_complete = || row.outline().is_some_and(|run| run.complete);
    !row.is_made() || !record.kind.entry().keeps_failures && !is_complete()
}

/// Returns the settings of a row's run, without its folder. Levels of one run change places from
/// repeat to repeat, so that each has been at every strategy's core; not where a strategy has a
/// fault, whose level is compared.
pub(super) fn settings_of(record: &Experiment, row: &Row) -> Result<Settings> {
    let settings = Settings::from_texts(&record.settings_of(row))?;
    let steps = if settings.fault.is_none() { row.repeat as usize } else { 0 };
    let isolation = settings.isolation.map(|levels| levels.rotated(steps));
    Ok(Settings { seed: Some(Count(row.seed)), isolation, ..settings })
}

/// Makes one run of an experiment and returns the name of its folder and its figures. `None`:
/// interrupted, and saved as that.
pub(super) fn measure_one(
    record: &mut Experiment,
    folder: &Path,
    settings: &Settings,
    make: &mut RunMaker<'_>,
) -> Result<Option<(String, MeasuredRun)>> {
    let made = match make(settings) {
        Ok(made) if made.outcome != RunOutcome::Interrupted => made,
        // A precondition is not met: nothing is there to go on with.
        Err(error)
            if !error.is::<Interrupted>()
                && record.made().next().is_none()
                && discard_unstarted(folder, Experiment::FILE) =>
        {
            return Err(error);
        }
        Err(error) if !error.is::<Interrupted>() => {
            // A run that began keeps its folder: the error names the remedy.
            record.state = ExperimentState::Interrupted;
            // The error below is the more useful one.
            let _ = record.save(folder);
            return Err(error.context(resume_hint(record.kind, folder)));
        }
        _ => {
            record.state = ExperimentState::Interrupted;
            discard_unrecorded_runs(record, folder);
            record.save(folder)?;
            return Ok(None);
        }
    };
    if !record.keep_logs {
        discard_logs(&made.folder);
    }
    let name = made.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some((name, made)))
}

/// Removes the folder of an experiment that holds nothing but its record: no run of it began, and
/// nothing was published. Returns `true` if it is gone.
pub(super) fn discard_unstarted(folder: &Path, record: &str) -> bool {
    let is_record =
        |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == record);
    let is_gone = fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_record))
        && fs::remove_file(folder.join(record)).is_ok()
        && fs::remove_dir(folder).is_ok();
    if is_gone && folder.parent() == Some(Path::new(RUNS)) {
        // The default folder of results: one that is empty was made for this experiment.
        let _ = fs::remove_dir(RUNS);
    }
    is_gone
}

/// Shortens an experiment's record to the repeats that every combination of settings has, at least
/// one. Without a whole repeat, to the settings that were measured.
pub(super) fn shorten(record: &mut Experiment) {
    let made = |setting: &Setting| record.made().filter(|row| row.setting.name == setting.name).count();
    let whole = record.settings().iter().map(made).min().unwrap_or(0) as u32;
    record.repeats = whole.max(1);
    let repeats = record.repeats;
    record.rows.retain(|row| row.is_made() && row.repeat < repeats);
    record.state = ExperimentState::Complete;
}

fn resume_hint(kind: Kind, folder: &Path) -> String {
    format!(
        "the {kind} stopped; finished runs are saved: {} resume {} finishes it",
        ::record::screen::program(),
        folder.display()
    )
}

/// Removes the stamp logs, by far the largest files, of a run whose summary is saved.
pub fn discard_logs(run: &Path) {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            // A log that stays costs room, not correctness.
            let _ = fs::remove_file(path);
        }
    }
}
