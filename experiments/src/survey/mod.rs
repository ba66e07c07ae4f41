//! `launcher survey`: measures every experiment in short, and draws one card.
//!
//! Each part is the command that a user would give, with a list of settings that fits into its
//! share of the time: nothing is measured in another way. A part ends with its share of the time
//! and keeps the repeats that are whole. One that cannot run is left out, with the reason.

mod cores;
mod parts;

use super::doctor::MachineFindings;
use super::measure::{MadeRow, MeasureEnd, RowMaker, measure_rows};
use super::progress::{SweepProgress, progress_line};
use super::publish::{OutputForm, print, print_folder};
use super::usage;
use ::record::screen::{print_warning, stdout};
use analysis::experiment::survey::{issue_line, survey_index, svg_card, text_card};
use analysis::experiment::{
    Axis, Experiment, ExperimentState, Figures, Kind, PartRecord, Row, Survey, SurveyPart, rows_csv,
};
use anyhow::{Context, Error, Result};
use catalog::RUNS;
use clap::Args;
use indicatif::ProgressBar;
use planner::config::ReportLength;
use planner::host::Machine;
use planner::host::signals::{self, Signals};
use planner::result_folder::create_result_folder;
use record::document::{Document, write_atomically};
use record::fitness::Fitness;
use record::machine_check::MachineCheck;
use record::numbers::counted;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use verdict::html;

/// The share of the time that remains for saving and for runs that end late.
const RESERVE: f64 = 0.03;

/// The command-line flags of `launcher survey`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct SurveyFlags {
    /// Take at most N minutes, shared among the parts
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = read_minutes)]
    minutes: u32,
    /// Take one minute: --minutes 1
    #[arg(long, conflicts_with = "minutes")]
    quick: bool,
    /// Save it in a new folder in this one
    #[arg(long, value_name = "FOLDER", default_value = RUNS)]
    out: PathBuf,
    /// Print the answer on one screen, or the card with every figure
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t)]
    report: ReportLength,
    /// Measure nothing: draw the cards of the surveys in FOLDER again, and its page
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["minutes", "quick", "out", "report"])]
    index: Option<PathBuf>,
}

fn read_minutes(text: &str) -> Result<u32, String> {
    let minutes = text.parse::<u32>().ok().filter(|minutes| (1..=60).contains(minutes));
    minutes.ok_or_else(|| "expected a whole number of minutes from 1 to 60, for example 5".into())
}

/// Makes the parts of a survey.
struct SurveyRun<'a> {
    minutes: u32,
    machine: &'a Machine,
    folder: &'a Path,
    signals: &'a Signals,
    bar: ProgressBar,
    began: Instant,
    /// The row of the current part.
    at: usize,
    /// When the current part ends.
    until: Instant,
    /// The commands of the current part.
    commands: Vec<String>,
    /// The fitness and the reasons of each run whose latencies are shown.
    runs: Vec<(bool, Vec<String>)>,
}

/// What a part found, as rows and figures of its survey.
struct FoundPart {
    rows: Vec<Row>,
    figures: Figures,
    /// Why there is less than planned.
    shortfall: Option<String>,
}

impl FoundPart {
    fn new(part: SurveyPart, found: &impl Serialize, shortfall: Option<String>) -> Self {
        let mut figures = Figures::default();
        Self { rows: part.found_rows(found, &mut figures), figures, shortfall }
    }
}

/// Runs `launcher survey`: measures short versions of the experiments, and draws their results in
/// one summary image (a card). `find` asks `launcher doctor`. A part that cannot run is not an
/// error.
pub fn run(flags: &SurveyFlags, find: impl FnOnce() -> MachineFindings) -> Result<ExitCode> {
    if let Some(folder) = &flags.index {
        let count = draw_index(folder)?;
        let [page, picture] = ["README.md", "index.svg"].map(|name| folder.join(name).display().to_string());
        let surveys = counted(count as u64, "survey");
        writeln!(
            stdout(),
            "Written to {page} and {picture}; card.txt and card.svg in the folders of {surveys}"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let began = Instant::now();
    let minutes = if flags.quick { 1 } else { flags.minutes };
    let machine = planner::host::machine();
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let MachineFindings { checks, switch, .. } = find();
    let mut record = plan(minutes, &machine, &checks);
    record.figures.insert("switch", &switch);
    let folder = create_result_folder(&flags.out, &record.started, record.kind.name())?.canonicalize()?;
    record.save(&folder)?;
    let template = format!("{{spinner}} {{elapsed}} of at most {minutes}m · {{prefix}} · {{wide_msg}}");
    let mut parts = SurveyRun {
        minutes,
        machine: &machine,
        folder: &folder,
        signals: &signals,
        bar: progress_line(true, None, &template),
        began,
        at: 0,
        until: began,
        commands: Vec::new(),
        runs: Vec::new(),
    };
    let hidden = &mut SweepProgress::new(false, 0);
    let ended = measure_rows(&mut record, &folder, &mut parts, hidden, &|_| None);
    parts.bar.disable_steady_tick();
    parts.bar.finish_and_clear();
    let is_complete = ended? == MeasureEnd::Complete;
    record.figures.insert("fitness", &fitness(&checks, &parts.runs, is_complete));
    finish(&record, &folder, flags.report)
}

/// Returns the record of a survey in which nothing is measured yet.
fn plan(minutes: u32, machine: &Machine, checks: &[MachineCheck]) -> Experiment {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    // A survey is made to be sent to others.
    let machine = Machine { hostname: String::new(), ..machine.clone() };
    let mut record = Experiment {
        seed: 0,
        state: ExperimentState::Interrupted,
        ..Experiment::new(Kind::Survey, env!("CARGO_PKG_VERSION"), &started, &machine)
    };
    record.figures.insert("minutes", &minutes);
    record.figures.insert("took_s", &0.0);
    record.figures.insert("checks", &checks);
    record.figures.insert("fitness", &Fitness::new(vec![INCOMPLETE.into()]));
    let settings: Vec<_> = SurveyPart::ALL.iter().map(|part| (part.setting(), 1)).collect();
    record.plan_rows_along(&[Axis::Part], &settings);
    record
}

/// Why a survey is not fit that was interrupted.
const INCOMPLETE: &str = "the survey is not complete";

impl RowMaker for SurveyRun<'_> {
    fn begin(&mut self, _record: &Experiment, at: usize, _width: usize) -> Result<()> {
        self.at = at;
        self.bar.set_prefix(SurveyPart::ALL[at].name());
        self.until = self.began + time_until_end(SurveyPart::ALL[at], self.minutes);
        Ok(())
    }

    /// Makes a part until its time is over, and records how it went.
    fn finish(&mut self, record: &mut Experiment) -> Result<Option<MadeRow>> {
        let (began, part) = (Instant::now(), SurveyPart::ALL[self.at]);
        let made = match part {
            SurveyPart::Cores => self.make_cores(),
            SurveyPart::Recovery => self.make_recovery(),
            SurveyPart::Containment => self.make_containment(),
            SurveyPart::Disturbance => self.make_disturbance(),
            SurveyPart::Journal => self.make_journal(),
            SurveyPart::Bill => self.make_bill(),
            SurveyPart::Queue => self.make_queue(),
        };
        let is_interrupted = signals::is_end_requested();
        let (further, mut shortfall) = match made {
            Ok(FoundPart { rows, figures, shortfall }) => {
                record.figures = std::mem::take(&mut record.figures).and(&figures);
                (rows, shortfall)
            }
            // The machine lacks something, which is an answer too. A disk that is full ends the
            // survey when it is saved.
            Err(error) => {
                let why = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
                (Vec::new(), Some(why))
            }
        };
        if is_interrupted {
            shortfall = Some("interrupted".into());
        }
        let (commands, took_s) = (std::mem::take(&mut self.commands), began.elapsed().as_secs_f64());
        record.figures.insert("took_s", &self.began.elapsed().as_secs_f64());
        let mut figures = Figures::from_record(&PartRecord { part, commands, took_s, shortfall });
        figures.remove(Axis::Part.name());
        Ok(Some(MadeRow { at: self.at, figures, is_interrupted, further, ..MadeRow::default() }))
    }

    fn resume_hint(&self, _kind: Kind, _folder: &Path) -> Option<String> {
        None
    }
}

/// Whether the latencies may be quoted: by the machine's checks and by every run whose latencies
/// are shown.
fn fitness(checks: &[MachineCheck], runs: &[(bool, Vec<String>)], is_complete: bool) -> Fitness {
    let mut reasons: Vec<String> = checks.iter().filter_map(MachineCheck::reason).collect();
    let all = runs.iter().map(|(is_fit, reasons)| (*is_fit, reasons.as_slice()));
    reasons.extend(Fitness::from_runs(all, runs.len()).reasons);
    if !is_complete {
        reasons.insert(0, INCOMPLETE.into());
    }
    Fitness::new(reasons)
}

fn finish(record: &Experiment, folder: &Path, length: ReportLength) -> Result<ExitCode> {
    record.save(folder)?;
    let survey = Survey::from_experiment(record).map_err(Error::msg)?;
    save_cards(&survey, folder)?;
    let answer = record.answer(folder)?;
    write_atomically(&folder.join("rows.csv"), &rows_csv(record)?)?;
    write_atomically(
        &folder.join(html::HTML_FILE),
        analysis::html::experiment_page(&answer.report).as_bytes(),
    )?;
    match length {
        ReportLength::Short => print(&answer, OutputForm::Report(length))?,
        ReportLength::Full => writeln!(stdout(), "{}", text_card(&survey))?,
    }
    print_folder(folder, OutputForm::Report(length))?;
    writeln!(stdout(), "For an issue: {}", issue_line(&survey))?;
    if survey.complete && !has_results(&survey) {
        let why = survey.parts.iter().find_map(|part| part.shortfall.clone());
        let why = why.unwrap_or_else(|| "there was no time for a run".into());
        print_warning(&format!("error: the survey measured nothing: {why}; give it more --minutes"));
        return Ok(ExitCode::FAILURE);
    }
    if survey.complete {
        return Ok(ExitCode::SUCCESS);
    }
    print_warning("interrupted: the survey is not complete; what was measured is saved");
    Ok(signals::exit_code())
}

/// Returns `true` if a part that makes runs has measured something.
fn has_results(survey: &Survey) -> bool {
    !survey.recovery.is_empty()
        || survey.containment.is_some()
        || survey.disturbance.is_some()
        || survey.journal.is_some()
        || survey.isolation_costs.is_some()
        || survey.queue.is_some()
}

/// Draws the card of each survey in a folder of surveys, and the index page. Returns how many
/// surveys there are.
fn draw_index(folder: &Path) -> Result<usize> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {} (--index)", folder.display()))?;
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    let is_survey = |path: &PathBuf| Experiment::is_in(path);
    folders.retain(is_survey);
    folders.sort();
    if folders.is_empty() {
        let why = format!("no folder in it has a {}; copy one there first", Experiment::FILE);
        return usage(format!("--index {}: {why}", folder.display()));
    }
    let mut surveys = Vec::new();
    for path in folders {
        let survey = Survey::read(&path)?;
        save_cards(&survey, &path)?;
        surveys.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), survey));
    }
    let index = survey_index(&surveys);
    write_atomically(&folder.join("README.md"), index.markdown.as_bytes())?;
    write_atomically(&folder.join("index.svg"), index.svg.as_bytes())?;
    Ok(surveys.len())
}

fn save_cards(survey: &Survey, folder: &Path) -> Result<()> {
    write_atomically(&folder.join("card.txt"), text_card(survey).as_bytes())?;
    Ok(write_atomically(&folder.join("card.svg"), svg_card(survey).as_bytes())?)
}

/// Returns the time from the beginning of a survey of `minutes` minutes to the end of a part. Time
/// that a part leaves is for the next ones.
fn time_until_end(part: SurveyPart, minutes: u32) -> Duration {
    let share = |part: &SurveyPart| match part {
        SurveyPart::Cores => 0.03,
        SurveyPart::Recovery => 0.10,
        SurveyPart::Containment => 0.20,
        SurveyPart::Disturbance => 0.08,
        SurveyPart::Journal => 0.10,
        SurveyPart::Bill => 0.27,
        SurveyPart::Queue => 0.22,
    };
    let share_until: f64 = SurveyPart::ALL[..=part as usize].iter().map(share).sum();
    Duration::from_secs(60 * u64::from(minutes)).mul_f64((1.0 - RESERVE) * share_until.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::experiment::Recovery;
    use planner::host::fake;

    #[test]
    fn survey_without_results_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = plan(1, &fake::plain(2).machine(), &[]);
        record.state = ExperimentState::Complete;
        let (part, shortfall) = (SurveyPart::Cores, Some("there was no time".into()));
        let cores = PartRecord { part, commands: vec![], took_s: 1.0, shortfall };
        record.rows[0].figures = Figures::from_record(&cores);
        assert_eq!(finish(&record, folder.path(), ReportLength::Short).unwrap(), ExitCode::FAILURE);
        let recovery = Recovery {
            role: "engine".into(),
            killed: 1,
            recovered: 1,
            sent: 2,
            returned: 2,
            recover_ns: vec![1_000],
            problem: String::new(),
        };
        let part = FoundPart::new(SurveyPart::Recovery, &[recovery], None);
        record.rows.extend(part.rows);
        assert_eq!(finish(&record, folder.path(), ReportLength::Short).unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn parts_end_in_order_within_the_limit() {
        let end_times: Vec<_> =
            SurveyPart::ALL.iter().map(|part| time_until_end(*part, 5).as_secs()).collect();
        assert!(end_times.is_sorted() && end_times[0] > 0);
        assert!((285..300).contains(&end_times[end_times.len() - 1]), "{end_times:?}");
    }
}
