//! `--run K`: makes runs of a plan. A run that two launchers make at the same time counts once.

use super::places;
use crate::config::{Settings, UsageError};
use crate::experiments::measure::{Made, Maker, discard_logs};
use crate::experiments::sweep::Chosen;
use crate::planner;
use crate::runtime::clean::{self, CleanScope};
use crate::runtime::progress::complain;
use crate::runtime::run::{self, Interrupted, Presentation};
use crate::runtime::signals::Signals;
use analysis::document::Document;
use analysis::experiment::{PlannedRun, RunEntry, RunResult, SweepPlan};
use analysis::record::Outcome;
use anyhow::{Context, Result};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Done {
    /// It was made now.
    Made(Box<RunResult>),
    /// It had been made.
    Already(Box<RunResult>),
}

impl Done {
    /// What there is of it now.
    pub(super) fn result(&self) -> &RunResult {
        let (Self::Made(result) | Self::Already(result)) = self;
        result
    }
}

/// Makes the chosen runs with the real launcher, one after the other.
///
/// # Errors
/// [`UsageError`]: the plan has no such run. A run that could not be made or saved.
pub(super) fn make(plan: &SweepPlan, folder: &Path, chosen: Chosen) -> Result<ExitCode> {
    let runs = runs(plan, chosen)?;
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let machine = crate::host::machine();
    let how = Presentation {
        quiet: true,
        weaker_sandbox: plan.sweep.weaker_sandbox,
        start_timeout: Duration::from_nanos(plan.sweep.start_timeout_ns),
        signals: &signals,
    };
    let mut code = ExitCode::SUCCESS;
    for planned in runs {
        let name = format!(
            "run {} of {} ({}, repeat {})",
            planned.index,
            plan.runs.len(),
            planned.point,
            planned.repeat
        );
        let host = &machine.hostname;
        clean::clean(CleanScope::KeepLogs).context("cannot look into /dev/shm")?;
        let mut maker = |settings: &Settings| -> Result<Made> {
            Ok(run::run(&planner::resolve(settings, &machine)?, &machine, &how)?.into())
        };
        let mut said = |text: &str| complain(&format!("{name}: {text}"));
        let done = one(plan, folder, planned, host, &mut maker, &mut said)?;
        let result = done.result();
        let was = if matches!(done, Done::Made(_)) { "made" } else { "had been made" };
        writeln!(crate::output::stdout(), "{name}: {was} on {}", result.host)?;
        let outline = &result.run.outline;
        if !outline.is_sound() {
            let why = outline.reasons.first().map_or("no reason given", String::as_str);
            complain(&format!("error: {name} failed: {why}"));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// The chosen runs of a plan.
pub(super) fn runs(plan: &SweepPlan, chosen: Chosen) -> Result<Vec<&PlannedRun>, UsageError> {
    let last = match chosen {
        Chosen::Runs(_, last) => last,
        _ => 0,
    };
    let is_chosen = |run: &&PlannedRun| match chosen {
        Chosen::Runs(first, last) => (first..=last).contains(&run.index),
        Chosen::Turn(turn) => run.turn == turn,
        Chosen::All => true,
    };
    let found: Vec<&PlannedRun> = plan.runs.iter().filter(is_chosen).collect();
    if found.is_empty() || last as usize >= plan.runs.len() {
        let (runs, turns) = (plan.runs.len(), plan.turns());
        return Err(UsageError(format!(
            "--run {chosen}: the plan has {runs} runs in {turns} turns, both from 0"
        )));
    }
    Ok(found)
}

/// Makes one run, unless it is made: in a folder of its own, which is moved to its place as a whole. A run that was made and failed is
/// made again. `said` hears that another launcher was faster.
///
/// # Errors
/// [`Interrupted`]; a run that could not be made or saved. Nothing is left of it then.
pub(super) fn one(
    plan: &SweepPlan,
    folder: &Path,
    planned: &PlannedRun,
    host: &str,
    make: &mut Maker<'_>,
    said: &mut dyn FnMut(&str),
) -> Result<Done> {
    if let Some(done) = finished(plan, folder, planned.index)? {
        return Ok(done);
    }
    let draft = places::draft(folder, host);
    let made = within(&draft, plan, folder, planned, make);
    let _ = fs::remove_dir_all(&draft);
    if let Some(done) = made? {
        return Ok(done);
    }
    said("was made by another launcher at the same time: this one counts for nothing");
    let name = places::run(folder, planned.index);
    finished(plan, folder, planned.index)?
        .with_context(|| format!("{}: another launcher's run failed; make it again", name.display()))
}

/// The result of a run that was made to its end.
fn finished(plan: &SweepPlan, folder: &Path, index: u32) -> Result<Option<Done>> {
    let place = places::run(folder, index);
    if !place.exists() {
        return Ok(None);
    }
    let result = RunResult::read(&place)?;
    super::join::belongs(plan, index, &result)
        .map_err(|why| UsageError(format!("{}: {why}", place.display())))?;
    Ok(result.run.outline.complete.then(|| Done::Already(Box::new(result))))
}

/// Makes a run in that folder, and moves it to its place. `None`: another launcher was faster.
fn within(
    draft: &Path,
    plan: &SweepPlan,
    folder: &Path,
    planned: &PlannedRun,
    make: &mut Maker<'_>,
) -> Result<Option<Done>> {
    let settings = Settings { out: Some(draft.to_owned()), ..Settings::from_texts(&planned.settings)? };
    let made = make(&settings)?;
    if made.outcome == Outcome::Interrupted {
        return Err(Interrupted.into());
    }
    if !plan.sweep.keep_logs {
        discard_logs(&made.folder);
    }
    let place = places::run(folder, planned.index);
    let entry = RunEntry {
        repeat: planned.repeat,
        seed: plan.sweep.seed_of(planned.repeat),
        folder: format!("{}/{}", places::RUNS, places::name(planned.index)),
        outline: made.outline,
    };
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let result = RunResult::new(plan, planned.index, now, entry);
    result.save(&made.folder)?;
    let cannot = || format!("cannot move a run to {}", place.display());
    if place.exists() && !RunResult::read(&place).is_ok_and(|before| before.run.outline.complete) {
        // One that failed before.
        fs::rename(&place, draft.join("failed")).with_context(cannot)?;
    }
    fs::create_dir_all(folder.join(places::RUNS)).with_context(cannot)?;
    match fs::rename(&made.folder, &place) {
        Ok(()) => Ok(Some(Done::Made(Box::new(result)))),
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(cannot),
    }
}
