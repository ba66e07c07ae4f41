//! Experiments: series of runs that are compared with each other. All follow one scheme.
//!
//! ```text
//! flags ─▶ settings ─▶ rows in their order ─▶ run, figures, save ─▶ answer of the kind
//!                              ▲                   │                       ▼
//!                              └─ --resume ─ experiment.json     report: tables, page
//! ```
//!
//! A command is a folder: its flags, which are `ExperimentFlags`, and its `run`. What its rows
//! show is the answer of its kind, in `analysis::experiment`, which `--resume` and the page use.
//! Axes, the order of the runs, the record and its file, resuming, printing and saving are the same
//! for all. Every repeat has a schedule seed of its own that all points share.
#![forbid(unsafe_code)]

mod asked;
mod benchmark;
mod bill;
mod board;
mod busy;
mod caller;
mod capacity;
mod cli;
mod compare;
mod contain;
mod doctor;
mod dry_run;
mod flags;
mod forecast;
mod lab;
mod ladder;
mod launch;
mod launcher;
mod measure;
mod nested;
mod pairs;
mod points;
mod predict;
mod presets;
mod progress;
mod publish;
mod record;
mod search;
mod survey;
mod sweep;

use ::record::document::Document;
use ::record::screen::{self, print_warning};
use analysis::experiment::{Experiment, Figures, Kind, RowKind};
use anyhow::{Context, Result, anyhow};
use busy::Load;
use caller::Caller;
use clap::Args;
use cli::{Cli, Command};
use flags::ResumeFlags;
use lab::LabFlags;
use launch::measure_missing;
use launcher::LaunchedRun;
use measure::MeasureEnd;
use planner::command_line;
use planner::config::{Common, Settings, UsageError};
use planner::host::Machine;
use planner::host::signals::{self, Signals};
use progress::Pace;
use publish::publish;
use shm::memory::sigbus;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the program of the experiments with its command line. Returns the exit code.
pub fn main() -> ExitCode {
    screen::measure();
    // Without it a file-size limit ends this process in the middle of a write, without mentioning
    // limits.
    if let Err(error) = signals::survive_file_limit() {
        print_warning(&format!("error: cannot handle SIGXFSZ: {error}"));
        return ExitCode::FAILURE;
    }
    // Without it a truncated segment kills this process.
    let _ = sigbus::install_handler();
    let (caller, arguments) = Caller::take(std::env::args_os());
    // First: the launcher's own strategies, techniques and venues are values of flags.
    let result = caller::remember(&caller).map_err(anyhow::Error::from).and_then(|()| {
        let Cli { command } = Cli::read_from(arguments).unwrap_or_else(|error| error.exit());
        run(&command)
    });
    command_line::exit_code(result, catalog::is_result)
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Sweep(flags) => sweep::run(flags),
        Command::Resume(flags) => resume(flags, doctor::unfit_here),
        Command::Compare(flags) => compare::run(flags),
        Command::Bill(flags) => bill::run(flags),
        Command::Contain(flags) => contain::run(flags),
        Command::Disturb(flags) => contain::disturb::run(flags),
        Command::Lab(flags) => lab::run(flags, doctor::unfit_here),
        Command::Survey(flags) => survey::run(flags, doctor::findings_here),
        Command::Ladder(flags) => ladder::run(flags, doctor::findings_here),
        Command::Predict(flags) => predict::run(flags),
        Command::Board(flags) => board::run(flags, doctor::unfit_here),
        Command::Against(flags) => asked::against(flags),
        Command::Report(flags) => asked::report(flags),
        Command::Page(flags) => asked::page(flags),
        Command::Picture(flags) => asked::picture(flags),
        Command::Lines(flags) => asked::lines(flags),
        Command::Definitions => asked::definitions(),
    }
}

/// Goes on with the experiment of a folder, with the settings that it began with. `unfit` returns
/// why the machine is unfit for latency figures just now.
fn resume(flags: &ResumeFlags, unfit: impl FnOnce() -> Vec<String>) -> Result<ExitCode> {
    let folder = catalog::folder_of(&flags.folder)?;
    record::check_is_experiment(&folder)?;
    if Experiment::read(&folder)?.kind.entry().rows == RowKind::QueueRun {
        let ResumeFlags { json, report, .. } = *flags;
        let flags = LabFlags { resume: Some(folder), json, report, ..LabFlags::default() };
        return lab::run(&flags, unfit);
    }
    let record = record::resume(&folder, &planner::host::machine())?;
    let ResumeFlags { json, report, allow_unfired, .. } = *flags;
    let common = Common { json, report, allow_unfired, ..Common::default() };
    measure_and_publish(record, &folder, &common)
}

fn measure_and_publish(mut record: Experiment, folder: &Path, common: &Common) -> Result<ExitCode> {
    let ended = measure_experiment(&mut record, folder, common.json)?;
    record.save(folder)?;
    publish(&record, folder, &record.answer(folder)?, common, ended)
}

/// Makes the missing runs of an experiment, and those that replace lost pairs. Warns first of what
/// its plan shows already.
fn measure_experiment(record: &mut Experiment, folder: &Path, json: bool) -> Result<MeasureEnd> {
    // A signal before the first run ends an experiment as one during a run does.
    let _signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let load = Load::sample(record.machine.cores_online);
    let warnings = forecast::warnings(record).into_iter().chain(load.and_then(|load| load.warning(record)));
    warnings.for_each(|warning| print_warning(&format!("warning: {warning}")));
    let say = |line: &str| {
        // Measure even if the line cannot be printed.
        let _ = if json { Ok(()) } else { writeln!(::record::screen::stdout(), "{line}") };
    };
    if let Some(message) = capacity::announcement(record) {
        say(&message);
    }
    let mut pace = Pace::default();
    let slowdown = load.map_or(1.0, Load::slowdown);
    let mut measure = |record: &mut Experiment| measure_missing(record, folder, json, &mut pace, slowdown);
    let mut ended = pairs::measure_pairs(record, &mut measure, say)?;
    while ended == MeasureEnd::Complete && plan_next(record, json)? {
        ended = measure(record)?;
    }
    if let Some(why) = record.notes.last().filter(|_| ended == MeasureEnd::GivenUp) {
        print_warning(&format!("{}: {why}", record.kind));
    }
    contain::add_cost(record);
    match ended {
        MeasureEnd::Complete => capacity::measure(record, folder, json),
        _ => Ok(ended),
    }
}

/// Adds the runs that follow from those that were made. Returns `true` if there are any.
fn plan_next(record: &mut Experiment, json: bool) -> Result<bool> {
    Ok(contain::plan_next_storms(record)? || predict::plan_next(record, json)?)
}

/// Returns what the kind of an experiment asks of a run with these settings beyond its outline.
///
/// # Errors
/// A run without a summary, unless its fault is what the experiment asks about.
fn extra_figures(kind: Kind, settings: &Settings, run: &LaunchedRun) -> Result<Figures> {
    if let Some(preset) = contain::FaultPreset::of_kind(kind) {
        return Ok((preset.figures)(settings, run));
    }
    let summary = run.summary.as_ref().map_err(|why| anyhow!(why.error.clone()))?;
    Ok(if kind == Kind::Predict { predict::figures(summary) } else { Figures::default() })
}

/// The flags of a command that makes runs.
trait ExperimentFlags: Args {
    /// Returns the record of the requested experiment, with nothing measured and nothing saved.
    fn plan(&self, machine: Machine) -> Result<Experiment>;

    /// Returns the folder in which the experiment's own is created, if one was given.
    fn out(&self) -> Result<Option<PathBuf>>;

    /// Creates the record and the folder of the experiment.
    fn begin(&self) -> Result<(Experiment, PathBuf)> {
        record::create(self.plan(planner::host::machine())?, self.out()?)
    }
}

fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(UsageError(message.into()).into())
}
