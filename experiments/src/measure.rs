//! Makes the missing rows of an experiment of any kind, and saves it.

use super::launcher::LaunchedRun;
use super::progress::SweepProgress;
use super::record::discard_unrecorded_runs;
use analysis::experiment::{Experiment, ExperimentState, Figures, Kind, Row, Setting};
use analysis::stats::RunOutline;
use anyhow::Result;
use catalog::RUNS;
use planner::config::Settings;
use planner::host::signals::{Interrupted, is_end_requested};
use record::document::Document;
use record::logfile::EXTENSION;
use record::numbers::counted;
use record::run::RunOutcome;
use record::units::Count;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The end of a series of an experiment's runs: complete, interrupted or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureEnd {
    Complete,
    /// Ctrl-C ended it: the missing runs are left for `--resume`.
    Interrupted,
    /// It was given up, because a busy machine leaves the answer open.
    GivenUp,
}

/// A run made for an experiment: its folder, outcome and figures.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    pub folder: PathBuf,
    pub outcome: RunOutcome,
    /// Outline of the run's summary; `None`: its fault overwrote a log, so that nothing is known of
    /// its orders.
    pub outline: Option<RunOutline>,
    /// Figures that the kind of experiment reads from the run beyond its outline.
    pub extra: Figures,
}

impl From<LaunchedRun> for MeasuredRun {
    fn from(launched: LaunchedRun) -> Self {
        let outline = launched.summary.as_ref().ok().map(RunOutline::from_summary);
        Self { folder: launched.folder, outcome: launched.outcome, outline, extra: Figures::default() }
    }
}

impl MeasuredRun {
    /// Returns all figures of the run for its row in the experiment's record.
    pub fn figures(&self) -> Figures {
        self.outline.as_ref().map_or_else(Figures::default, Figures::from_outline).and(&self.extra)
    }
}

/// A function that makes one run of an experiment with the given settings. Tests pass a function
/// that invents its figures.
pub type RunMaker<'a> = dyn FnMut(&Settings) -> Result<MeasuredRun> + 'a;

/// The result of one row of an experiment's record: the run's folder and figures, and further rows
/// that the run produced.
#[derive(Default)]
pub struct MadeRow {
    /// Index of the row in the experiment's record.
    pub at: usize,
    /// The folder of the row's run, within the experiment's; empty if the run has none of its own.
    pub folder: String,
    pub figures: Figures,
    /// Whether Ctrl-C ended the row's run: its figures are kept, and no other row is made.
    pub is_interrupted: bool,
    /// Rows that the run produced in addition.
    pub further: Vec<Row>,
}

/// An executor of an experiment's runs, one for each row of the record, sequentially or several at
/// the same time.
pub trait RowMaker {
    /// Splits missing rows into groups that are made one after the other, each with the number of
    /// rows that are made at the same time.
    fn groups(&self, _record: &Experiment, missing: Vec<usize>) -> Vec<(usize, Vec<usize>)> {
        vec![(1, missing)]
    }

    /// Begins to make the row with index `at`, of whose group `width` are made at a time.
    fn begin(&mut self, record: &Experiment, at: usize, width: usize) -> Result<()>;

    /// Waits until one of the begun rows is made. `None`: Ctrl-C came before it had figures.
    fn finish(&mut self, record: &mut Experiment) -> Result<Option<MadeRow>>;

    /// Returns the maximum time between two saves of the record.
    fn save_interval(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the text for an error that stops the experiment: what is saved, and how to resume.
    fn resume_hint(&self, kind: Kind, folder: &Path) -> Option<String> {
        Some(resume_hint(kind, folder))
    }
}

/// Makes runs of the engine as rows.
struct EngineRuns<'a, 'b> {
    make: &'a mut RunMaker<'b>,
    folder: &'a Path,
    /// The row that was begun, with the settings of its run.
    begun: Option<(usize, Settings)>,
}

impl RowMaker for EngineRuns<'_, '_> {
    fn begin(&mut self, record: &Experiment, at: usize, _width: usize) -> Result<()> {
        let out = Some(self.folder.to_owned());
        self.begun = Some((at, Settings { out, ..settings_of(record, &record.rows[at])? }));
        Ok(())
    }

    fn finish(&mut self, record: &mut Experiment) -> Result<Option<MadeRow>> {
        let Some((at, settings)) = self.begun.take() else { return Ok(None) };
        let made = make_run(record, &settings, self.make)?;
        Ok(made.map(|(folder, run)| MadeRow { at, folder, figures: run.figures(), ..MadeRow::default() }))
    }
}

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
    measure_rows(record, folder, &mut EngineRuns { make, folder, begun: None }, bar, give_up)
}

/// Makes the missing runs of an experiment with `maker`, one run for each row of the record. Saves
/// the record after a run if [`RowMaker::save_interval`] has passed, and at the end. `give_up` may
/// return a reason after a repeat: the rest is not made then.
pub fn measure_rows(
    record: &mut Experiment,
    folder: &Path,
    maker: &mut dyn RowMaker,
    bar: &mut SweepProgress,
    give_up: &dyn Fn(&Experiment) -> Option<String>,
) -> Result<MeasureEnd> {
    let ended = make_rows(record, folder, maker, bar, give_up);
    let hint = maker.resume_hint(record.kind, folder);
    end_measuring(record, folder, ended, hint)
}

fn make_rows(
    record: &mut Experiment,
    folder: &Path,
    maker: &mut dyn RowMaker,
    bar: &mut SweepProgress,
    give_up: &dyn Fn(&Experiment) -> Option<String>,
) -> Result<MeasureEnd> {
    let missing = missing_rows(record);
    let (all, mut left, mut saved) = (record.rows.len(), missing.len(), Instant::now());
    for (width, rows) in maker.groups(record, missing) {
        let (count, mut waiting, mut begun) = (rows.len(), rows.into_iter(), 0);
        loop {
            while begun < width
                && let Some(at) = waiting.next()
            {
                if is_end_requested() {
                    return Ok(MeasureEnd::Interrupted);
                }
                let alone = || record.rows[at].setting.name.clone();
                let beside = || format!("{} side by side", counted(count as u64, "run"));
                bar.begin(&if width > 1 { beside() } else { alone() }, all - left, left);
                maker.begin(record, at, width)?;
                begun += 1;
            }
            if begun == 0 {
                break;
            }
            let Some(made) = maker.finish(record)? else { return Ok(MeasureEnd::Interrupted) };
            bar.end();
            (begun, left) = (begun - 1, left - 1);
            let row = &mut record.rows[made.at];
            (row.folder, row.figures) = (made.folder, made.figures);
            let repeat = row.repeat;
            record.rows.extend(made.further);
            if saved.elapsed() >= maker.save_interval() {
                record.save(folder)?;
                saved = Instant::now();
            }
            if made.is_interrupted {
                return Ok(MeasureEnd::Interrupted);
            }
            let is_whole = record.rows.iter().all(|row| row.repeat != repeat || row.is_made());
            if let Some(why) = is_whole.then(|| give_up(record)).flatten() {
                shorten(record);
                record.notes.push(why);
                return Ok(MeasureEnd::GivenUp);
            }
        }
    }
    Ok(MeasureEnd::Complete)
}

/// Saves an experiment of which no more rows are made now, with its state.
pub(super) fn end_measuring(
    record: &mut Experiment,
    folder: &Path,
    ended: Result<MeasureEnd>,
    hint: Option<String>,
) -> Result<MeasureEnd> {
    record.state = ExperimentState::Interrupted;
    match ended {
        // A precondition is not met: nothing is there to go on with.
        Err(error) if record.made().next().is_none() && discard_unstarted(folder, Experiment::FILE) => {
            return Err(error);
        }
        Err(error) => {
            // A run that began keeps its folder: the error names the remedy, and is more useful
            // than that of saving.
            let _ = record.save(folder);
            return Err(match hint {
                Some(hint) => error.context(hint),
                None => error,
            });
        }
        Ok(MeasureEnd::Interrupted) => {}
        Ok(MeasureEnd::Complete | MeasureEnd::GivenUp) => record.state = ExperimentState::Complete,
    }
    record.save(folder)?;
    if !matches!(ended, Ok(MeasureEnd::GivenUp)) {
        discard_unrecorded_runs(record, folder);
    }
    ended
}

/// Returns the indices of the rows that are still to be made.
pub(super) fn missing_rows(record: &Experiment) -> Vec<usize> {
    (0..record.rows.len()).filter(|at| is_missing(record, &record.rows[*at])).collect()
}

/// Returns `true` if the run of a row is still to be made: never, or without success.
pub(super) fn is_missing(record: &Experiment, row: &Row) -> bool {
    let entry = record.kind.entry();
    !row.is_made() || !entry.keeps_failures && !(entry.is_complete)(row)
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
/// interrupted.
pub(super) fn make_run(
    record: &Experiment,
    settings: &Settings,
    make: &mut RunMaker<'_>,
) -> Result<Option<(String, MeasuredRun)>> {
    let made = match make(settings) {
        Ok(made) if made.outcome != RunOutcome::Interrupted => made,
        Err(error) if !error.is::<Interrupted>() => return Err(error),
        _ => return Ok(None),
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

pub(super) fn resume_hint(kind: Kind, folder: &Path) -> String {
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
