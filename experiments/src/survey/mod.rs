//! `launcher survey`: measures every experiment in short, and draws one card.
//!
//! Each part is the command that a user would give, with a list of settings that fits into its
//! share of the time: nothing is measured in another way. A part ends with its share of the time
//! and keeps the repeats that are whole. One that cannot run is left out, with the reason.

mod cores;
mod parts;

use super::progress::progress_line;
use super::usage;
use ::record::screen::{complain, stdout};
use analysis::experiment::survey::{survey_index, svg_card, text_card};
use analysis::experiment::{Experiment, PartRecord, Survey, SurveyPart, rows_csv};
use anyhow::{Context, Result};
use catalog::RUNS;
use clap::Args;
use indicatif::ProgressBar;
use planner::host::Machine;
use planner::host::signals::{self, Signals};
use planner::result_folder::create_result_folder;
use record::document::{Document, write_atomically};
use record::fitness::Fitness;
use record::machine_check::MachineCheck;
use record::numbers::counted;
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
    /// Measure nothing: draw the cards of the surveys in FOLDER again, and its page
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["minutes", "quick", "out"])]
    index: Option<PathBuf>,
}

fn read_minutes(text: &str) -> Result<u32, String> {
    let minutes = text.parse::<u32>().ok().filter(|minutes| (1..=60).contains(minutes));
    minutes.ok_or_else(|| "expected a whole number of minutes from 1 to 60, for example 5".into())
}

/// What the parts of a survey share.
struct SurveyRun {
    survey: Survey,
    machine: Machine,
    folder: PathBuf,
    signals: Signals,
    bar: ProgressBar,
    /// When the current part ends.
    until: Instant,
    /// The commands of the current part.
    commands: Vec<String>,
    /// The fitness and the reasons of each run whose latencies are shown.
    runs: Vec<(bool, Vec<String>)>,
}

/// Runs the experiments of a survey on this machine, and draws its card. `check` makes the checks
/// of `launcher doctor`. A part that cannot run is not an error.
pub fn run(flags: &SurveyFlags, check: impl FnOnce() -> Vec<MachineCheck>) -> Result<ExitCode> {
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
    let survey = new_survey(minutes, &machine, check());
    let folder = create_result_folder(&flags.out, &survey.started, "survey")?.canonicalize()?;
    survey.save(&folder)?;
    let template = format!("{{spinner}} {{elapsed}} of at most {minutes}m · {{prefix}} · {{wide_msg}}");
    let bar = progress_line(true, None, &template);
    let (until, commands, runs) = (began, Vec::new(), Vec::new());
    let mut run = SurveyRun { survey, machine, folder, signals, bar, until, commands, runs };
    for part in SurveyPart::ALL {
        if signals::is_end_requested() {
            break;
        }
        run.bar.set_prefix(part.name());
        run.until = began + time_until_end(*part, minutes);
        run.make(*part);
        run.survey.took_s = began.elapsed().as_secs_f64();
        run.survey.save(&run.folder)?;
    }
    run.survey.complete = !signals::is_end_requested();
    run.survey.fitness = run.fitness();
    run.bar.disable_steady_tick();
    run.bar.finish_and_clear();
    finish(&run.survey, &run.folder)
}

/// Creates the record of a survey in which nothing is measured yet.
fn new_survey(minutes: u32, machine: &Machine, checks: Vec<MachineCheck>) -> Survey {
    Survey {
        version: env!("CARGO_PKG_VERSION").into(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        minutes,
        took_s: 0.0,
        complete: false,
        // A survey is made to be sent to others.
        machine: Machine { hostname: String::new(), ..machine.clone() },
        fitness: Fitness::new(vec!["the survey is not complete".into()]),
        checks,
        parts: Vec::new(),
        cores: None,
        recovery: Vec::new(),
        containment: None,
        disturbance: None,
        journal: None,
        isolation_costs: None,
        queue: None,
    }
}

impl SurveyRun {
    /// Makes a part until its time is over, and records how it went.
    fn make(&mut self, part: SurveyPart) {
        let began = Instant::now();
        let made = match part {
            SurveyPart::Cores => self.make_cores(),
            SurveyPart::Recovery => self.make_recovery(),
            SurveyPart::Containment => self.make_containment(),
            SurveyPart::Disturbance => self.make_disturbance(),
            SurveyPart::Journal => self.make_journal(),
            SurveyPart::Bill => self.make_bill(),
            SurveyPart::Queue => self.make_queue(),
        };
        let shortfall = match made {
            _ if signals::is_end_requested() => Some("interrupted".into()),
            Ok(shortfall) => shortfall,
            // The machine lacks something, which is an answer too. A disk that is full ends the
            // survey when it is saved.
            Err(error) => Some(format!("{error:#}").lines().next().unwrap_or_default().to_owned()),
        };
        let (commands, took_s) = (std::mem::take(&mut self.commands), began.elapsed().as_secs_f64());
        self.survey.parts.push(PartRecord { part, commands, took_s, shortfall });
    }

    /// Whether the latencies may be quoted: by the machine's checks and by every run whose
    /// latencies are shown.
    fn fitness(&self) -> Fitness {
        let mut reasons: Vec<String> = self.survey.checks.iter().filter_map(MachineCheck::reason).collect();
        let runs = self.runs.iter().map(|(is_fit, reasons)| (*is_fit, reasons.as_slice()));
        reasons.extend(Fitness::from_runs(runs, self.runs.len()).reasons);
        if !self.survey.complete {
            reasons.insert(0, "the survey is not complete".into());
        }
        Fitness::new(reasons)
    }
}

fn finish(survey: &Survey, folder: &Path) -> Result<ExitCode> {
    survey.save(folder)?;
    save_cards(survey, folder)?;
    let experiment = survey.experiment();
    let answer = experiment.answer(folder)?;
    write_atomically(&folder.join("rows.csv"), &rows_csv(&experiment)?)?;
    write_atomically(
        &folder.join(html::HTML_FILE),
        analysis::html::experiment_page(&answer.report).as_bytes(),
    )?;
    writeln!(stdout(), "{}\nSaved in {}", text_card(survey), folder.display())?;
    if survey.complete && !has_results(survey) {
        let why = survey.parts.iter().find_map(|part| part.shortfall.clone());
        let why = why.unwrap_or_else(|| "there was no time for a run".into());
        complain(&format!("error: the survey measured nothing: {why}; give it more --minutes"));
        return Ok(ExitCode::FAILURE);
    }
    if survey.complete {
        return Ok(ExitCode::SUCCESS);
    }
    complain("interrupted: the survey is not complete; what was measured is saved");
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
        let mut survey = new_survey(1, &fake::plain(2).machine(), Vec::new());
        survey.complete = true;
        let shortfall = Some("there was no time".into());
        survey.parts = vec![PartRecord { part: SurveyPart::Bill, commands: vec![], took_s: 1.0, shortfall }];
        assert_eq!(finish(&survey, folder.path()).unwrap(), ExitCode::FAILURE);
        survey.recovery.push(Recovery {
            role: "engine".into(),
            killed: 1,
            recovered: 1,
            sent: 2,
            returned: 2,
            recover_ns: vec![1_000],
            problem: String::new(),
        });
        assert_eq!(finish(&survey, folder.path()).unwrap(), ExitCode::SUCCESS);
    }

    #[test]
    fn parts_end_in_order_within_the_limit() {
        let end_times: Vec<_> =
            SurveyPart::ALL.iter().map(|part| time_until_end(*part, 5).as_secs()).collect();
        assert!(end_times.is_sorted() && end_times[0] > 0);
        assert!((285..300).contains(&end_times[end_times.len() - 1]), "{end_times:?}");
    }
}
