//! Planned sweeps, with parts measured on several hosts: `--plan`, `--run` and `--join`.
//!
//! ```text
//! --plan ─▶ experiment.json ─▶ --run K ─▶ making/… ──rename──▶ runs/K ─▶ --join
//!       └▶ a command for each turn            only one is there     its rows, tables, page ◀┘
//! ```
//!
//! FOLDER is on a file system that all hosts share. Nothing else is between them: who makes which
//! run, and that a host makes one at a time, is up to a scheduler or to the user.
//! A run is in `runs` as a whole or not at all.

use super::{SweepFlags, first_given_flag};
use crate::caller;
use crate::launch::with_maker;
use crate::measure::{MeasureEnd, RunMaker, discard_logs, settings_of};
use crate::publish::publish;
use crate::record;
use crate::{ExperimentFlags, usage};
use ::record::document::Document;
use ::record::numbers::counted;
use ::record::run::RunOutcome;
use ::record::screen::{self, print_warning};
use analysis::experiment::{Experiment, ExperimentState, Figures, Row, turn_of_rows};
use analysis::stats::placement::hosts;
use analysis::stats::{MachineKey, RunOutline};
use anyhow::{Context, Result, bail};
use clap::Args;
use planner::config::{CONFIG_FILE, Common, Settings};
use planner::host::signals::Interrupted;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::SystemTime;
use verdict::summary::Summary;

/// The folder of runs in the making, in one of its own for each: `HOST-PID-NANOS`.
const IN_PROGRESS: &str = "making";
/// The folder of finished runs, by their numbers.
const RUNS: &str = "runs";

/// The flags of a sweep that several hosts share: `--plan`, `--run` and `--join`.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlannedFlags {
    /// The folder of a planned sweep
    #[arg(value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
    /// Write the sweep into FOLDER as a list of runs, and print a command for each turn
    #[arg(long, requires = "folder", conflicts_with_all = ["resume", "find_max_rate", "run", "join"], help_heading = "Cluster")]
    plan: bool,
    /// Make run K of FOLDER; or K-L, turn:T, all
    #[arg(long, value_name = "K", requires = "folder", conflicts_with_all = ["resume", "find_max_rate", "join"], help_heading = "Cluster")]
    run: Option<RunSelection>,
    /// Gather the runs of FOLDER and report
    #[arg(long, requires = "folder", conflicts_with_all = ["resume", "find_max_rate"], help_heading = "Cluster")]
    join: bool,
}

/// Runs of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunSelection {
    /// The runs from one number to another, both included.
    Runs(u32, u32),
    Turn(u32),
    All,
}

impl FromStr for RunSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let number = |text: &str| text.parse::<u32>().ok().filter(|_| is_number(text));
        let read = match (text.strip_prefix("turn:"), text.split_once('-')) {
            _ if text == "all" => Some(Self::All),
            (Some(turn), _) => number(turn).map(Self::Turn),
            (_, Some((first, last))) => {
                number(first).zip(number(last)).map(|(first, last)| Self::Runs(first, last))
            }
            _ => number(text).map(|only| Self::Runs(only, only)),
        };
        read.filter(|chosen| !matches!(chosen, Self::Runs(first, last) if first > last))
            .ok_or_else(|| format!("{text:?}: give a run's number, K-L, turn:T or all"))
    }
}

/// Plans a sweep for several hosts, makes runs of it, or joins its results.
pub(super) fn planned(flags: &SweepFlags, folder: &Path) -> Result<ExitCode> {
    if !flags.planned.plan
        && let Some(flag) = first_given_flag(flags)
    {
        let why = "the plan says what is measured; it is given with --plan";
        return usage(format!("--{flag} with a planned sweep: {why}"));
    }
    match (flags.planned.plan, flags.planned.run, flags.planned.join) {
        (true, ..) => plan(flags, folder),
        (_, Some(chosen), _) => {
            let planned = PlannedSweep::read(folder)?;
            with_maker(&planned.sweep, |make| planned.make(chosen, make))
        }
        (_, _, true) => PlannedSweep::read(folder)?.join(&flags.common),
        _ => usage(format!("{}: say what to do with it: --plan, --run K or --join", folder.display())),
    }
}

/// Lays a sweep out, writes its plan, and prints the command of each turn.
fn plan(flags: &SweepFlags, folder: &Path) -> Result<ExitCode> {
    if flags.swept.0.iter().any(|(key, _)| *key == "out") {
        return usage("--out with --plan: everything goes into the plan's folder");
    }
    let name = folder.display();
    if Experiment::is_in(folder) {
        return usage(format!("{name}: holds a plan: choose another folder"));
    }
    let plan = Experiment {
        is_shared: true,
        state: ExperimentState::Interrupted,
        ..flags.plan(planner::host::machine())?
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {name}"))?;
    plan.save(folder)?;
    let turns = turn_of_rows(&plan.rows).last().map_or(0, |turn| turn + 1);
    let file = folder.join(Experiment::FILE);
    print_warning(&format!("{} runs in {turns} turns are planned in {}", plan.rows.len(), file.display()));
    plan.notes.iter().for_each(|note| print_warning(note));
    print_warning(&format!(
        "A command for each turn follows; then launcher sweep --join {name} gathers them"
    ));
    let launcher = caller::executable().context("cannot tell where the launcher is")?;
    let (launcher, folder) = (shell_quoted(&launcher), shell_quoted(&folder.canonicalize()?));
    let mut out = screen::stdout();
    for turn in 0..turns {
        writeln!(out, "{launcher} sweep --run turn:{turn} {folder}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A path as a word of a shell's command line.
fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=,:@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A run that was made by whichever launcher.
#[derive(Debug)]
struct GatheredRun {
    folder: String,
    outline: RunOutline,
}

struct PlannedSweep {
    /// The plan: each row is a run, by its number.
    sweep: Experiment,
    /// The turn of each run.
    turns: Vec<u32>,
    folder: PathBuf,
    /// Reads the figures in a run's folder; tests have made-up ones.
    outline: fn(&Path) -> Result<RunOutline>,
}

impl PlannedSweep {
    /// The plan in a folder, whose settings can all be had by this build.
    fn read(folder: &Path) -> Result<Self> {
        let (mut sweep, name) = (record::read(folder)?, folder.display());
        if !sweep.is_shared {
            let why = "not the folder of a planned sweep (launcher sweep --plan FOLDER makes one)";
            return usage(format!("{name}: {why}"));
        }
        let here = env!("CARGO_PKG_VERSION");
        if sweep.version != here {
            let planner = &sweep.version;
            let why = "runs of two versions are not comparable";
            return usage(format!("{name}: planned by bulkhead {planner}, this is {here}: {why}"));
        }
        // Those that were gathered before are gathered again.
        sweep.rows.iter_mut().for_each(|row| (row.folder, row.figures) = Default::default());
        Ok(Self {
            turns: turn_of_rows(&sweep.rows),
            sweep,
            folder: folder.to_owned(),
            outline: |place| Ok(RunOutline::from_summary(&Summary::read(place)?)),
        })
    }

    fn name(&self, number: usize) -> String {
        let Row { setting, repeat, .. } = &self.sweep.rows[number];
        format!("run {number} ({}, repeat {repeat})", setting.name)
    }

    fn chosen(&self, chosen: RunSelection) -> Result<Vec<usize>> {
        let (count, turns) = (self.turns.len(), self.turns.last().map_or(0, |turn| turn + 1));
        let is_chosen = |number: &usize| match chosen {
            RunSelection::Runs(first, last) => (first as usize..=last as usize).contains(number),
            RunSelection::Turn(turn) => self.turns[*number] == turn,
            RunSelection::All => true,
        };
        let found: Vec<_> = (0..count).filter(is_chosen).collect();
        let is_beyond = matches!(chosen, RunSelection::Runs(_, last) if last as usize >= count);
        if found.is_empty() || is_beyond {
            return usage(format!("--run: the plan has {count} runs in {turns} turns, both from 0"));
        }
        Ok(found)
    }

    fn settings(&self, number: usize) -> Result<Settings> {
        settings_of(&self.sweep, &self.sweep.rows[number])
    }

    /// A run that was made; `None`: it was not.
    fn entry(&self, number: usize) -> Result<Option<GatheredRun>> {
        let folder = format!("{RUNS}/{number:04}");
        let place = self.folder.join(&folder);
        if !place.exists() {
            return Ok(None);
        }
        let outline = (self.outline)(&place)?;
        let made = Settings::read(&place.join(CONFIG_FILE))?;
        if (Settings { out: None, repeats: None, ..made }) != self.settings(number)? {
            let remedy = "take it away and make it again: launcher sweep --run";
            bail!("{}: is not what the plan says of run {number}; {remedy} {number}", place.display());
        }
        Ok(Some(GatheredRun { folder, outline }))
    }

    /// Makes the chosen runs, one after the other.
    fn make(&self, chosen: RunSelection, make: &mut RunMaker<'_>) -> Result<ExitCode> {
        let mut code = ExitCode::SUCCESS;
        for number in self.chosen(chosen)? {
            let (entry, is_mine) = self.one(number, make)?;
            let (name, outline) = (self.name(number), &entry.outline);
            let was = if is_mine { "made" } else { "had been made" };
            writeln!(screen::stdout(), "{name}: {was} on {}", outline.machine.hostname)?;
            if !outline.is_usable() {
                let why = outline.reasons.first().map_or("no reason given", String::as_str);
                print_warning(&format!("error: {name} failed: {why}"));
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }

    /// Makes one run, unless it is made: in a folder of its own, which is moved to its place as a
    /// whole. One that was made and failed is made again. Returns the run that is there, and
    /// whether this launcher made it: another one may have been faster.
    fn one(&self, number: usize, make: &mut RunMaker<'_>) -> Result<(GatheredRun, bool)> {
        if let Some(entry) = self.entry(number)?.filter(|entry| entry.outline.complete) {
            return Ok((entry, false));
        }
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let host = planner::host::machine().hostname;
        let host: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let draft = self.folder.join(IN_PROGRESS).join(format!("{host}-{}-{nanos}", std::process::id()));
        let is_mine = self.within(&draft, number, make);
        let _ = fs::remove_dir_all(&draft);
        let is_mine = is_mine?;
        Ok((self.entry(number)?.with_context(|| format!("run {number} has gone"))?, is_mine))
    }

    /// Makes a run in that folder, and moves it to its place. Returns `false` where another
    /// launcher was faster.
    fn within(&self, draft: &Path, number: usize, make: &mut RunMaker<'_>) -> Result<bool> {
        let made = make(&Settings { out: Some(draft.to_owned()), ..self.settings(number)? })?;
        if made.outcome == RunOutcome::Interrupted {
            return Err(Interrupted.into());
        }
        if !self.sweep.keep_logs {
            discard_logs(&made.folder);
        }
        let place = self.folder.join(RUNS).join(format!("{number:04}"));
        let cannot = || format!("cannot move a run to {}", place.display());
        if self.entry(number)?.is_some_and(|before| !before.outline.complete) {
            fs::rename(&place, draft.join("failed")).with_context(cannot)?;
        }
        fs::create_dir_all(self.folder.join(RUNS)).with_context(cannot)?;
        match fs::rename(&made.folder, &place) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) => {
                Ok(false)
            }
            Err(error) => Err(error).with_context(cannot),
        }
    }

    /// The sweep with every run that there is, as if one launcher had made them, and the names of
    /// those that are missing.
    fn gather(&self) -> Result<(Experiment, Vec<String>)> {
        let (mut record, mut missing) = (self.sweep.clone(), Vec::new());
        for entry in fs::read_dir(self.folder.join(RUNS)).into_iter().flatten().flatten() {
            let is_run = |name: &str| (0..self.turns.len()).any(|number| format!("{number:04}") == name);
            if !entry.file_name().to_str().is_some_and(is_run) {
                bail!("{}: is no run of this plan: take it away", entry.path().display());
            }
        }
        let mut outlines = Vec::new();
        for (number, row) in record.rows.iter_mut().enumerate() {
            match self.entry(number)? {
                Some(GatheredRun { folder, outline }) => {
                    (row.folder, row.figures) = (folder, Figures::from_outline(&outline));
                    outlines.push(outline);
                }
                None => missing.push(self.name(number)),
            }
        }
        let is_complete = missing.is_empty();
        record.state = if is_complete { ExperimentState::Complete } else { ExperimentState::Interrupted };
        let all: Vec<&RunOutline> = outlines.iter().collect();
        let hosts = hosts(&all);
        if hosts.len() > 1 {
            let of = |host: &&MachineKey| {
                let runs = all.iter().filter(|run| run.machine == **host).count();
                format!("{} ({}, {})", host.hostname, counted(runs as u64, "run"), host.cpu_model)
            };
            let names = hosts.iter().map(of).collect::<Vec<_>>().join(", ");
            record.notes.push(format!("measured on {} hosts: {names}", hosts.len()));
        }
        Ok((record, missing))
    }

    fn join(&self, common: &Common) -> Result<ExitCode> {
        let (mut record, missing) = self.gather()?;
        let first = record.made().next().map(|row| self.folder.join(&row.folder));
        if let Some(place) = first {
            record.machine = Summary::read(&place)?.machine;
        }
        record.save(&self.folder)?;
        let code =
            publish(&record, &self.folder, &record.answer(&self.folder)?, common, MeasureEnd::Complete)?;
        if missing.is_empty() {
            // Remains of killed launchers. A run that is still in progress is discarded.
            let _ = fs::remove_dir_all(self.folder.join(IN_PROGRESS));
            return Ok(code);
        }
        print_warning(&format!("error: {} missing:", counted(missing.len() as u64, "run")));
        missing.iter().for_each(|missing| print_warning(&format!("  {missing}")));
        print_warning(&format!("launcher sweep --run all {} makes them", self.folder.display()));
        Ok(ExitCode::FAILURE)
    }
}

#[cfg(test)]
mod tests;
