//! Sweeps on a cluster: a sweep as a list of independent runs, made by whoever has a host free.
//!
//! ```text
//! --plan ─▶ FOLDER/plan.json ─▶ --run K ─▶ FOLDER/making/… ──rename──▶ FOLDER/runs/K ─▶ --join ─▶ sweep.json, tables, page
//!       └▶ a command for each turn                                     only one is there
//! ```
//!
//! FOLDER is on a file system that all hosts share. Nothing else is between them: who makes which run, and that a host makes one at a time,
//! is for a scheduler, or for whoever types the commands. A plan, its runs and what is gathered of them are made by the code that makes a
//! sweep on one machine.

mod join;
mod make;
mod places;
#[cfg(test)]
mod tests;

use super::documents::{Documents, publish};
use super::measure::Ended;
use super::order::{order, turns};
use super::sweep::{SweepFlags, documents, given, new_sweep};
use crate::config::{Settings, UsageError};
use crate::runtime::progress::complain;
use analysis::document::Document;
use analysis::experiment::{SweepPlan, SweepRecord};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Does what `launcher sweep` says of a planned sweep.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a folder that is none of a plan, results that do not belong to it.
pub(super) fn sweep(flags: &SweepFlags, folder: &Path) -> Result<ExitCode> {
    let planned = &flags.planned;
    if !planned.plan
        && let Some(flag) = given(flags)
    {
        let why = "the plan says what is measured; it is given with --plan";
        return Err(UsageError(format!("--{flag} with a planned sweep: {why}")).into());
    }
    match (planned.plan, planned.run, planned.join) {
        (true, ..) => plan(flags, folder),
        (_, Some(chosen), _) => make::make(&read(folder)?, folder, chosen),
        (_, _, true) => join(folder, flags.common.json),
        _ => {
            let name = folder.display();
            let what = "say what to do with it: --plan, --run K or --join";
            Err(UsageError(format!("{name}: {what}")).into())
        }
    }
}

/// Lays a sweep out, writes its plan, and prints the command of each turn.
fn plan(flags: &SweepFlags, folder: &Path) -> Result<ExitCode> {
    if flags.swept.0.iter().any(|(key, _)| *key == "out") {
        return Err(UsageError("--out with --plan: everything goes into the plan's folder".into()).into());
    }
    let name = folder.display();
    if folder.join(SweepPlan::FILE).exists() {
        return Err(UsageError(format!("{name}: holds a plan: choose another folder")).into());
    }
    let mut sweep = new_sweep(flags, crate::host::machine())?;
    sweep.take_over();
    let plan = of(sweep);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {name}"))?;
    plan.save(folder)?;
    let (runs, turns) = (plan.runs.len(), plan.turns());
    complain(&format!(
        "{runs} runs in {turns} turns are planned in {}",
        folder.join(SweepPlan::FILE).display()
    ));
    plan.sweep.notes.iter().for_each(|note| complain(note));
    complain(&format!("A command for each turn follows; then launcher sweep --join {name} gathers them"));
    let launcher = std::env::current_exe().context("cannot tell where this program is")?;
    let (launcher, folder) = (in_a_shell(&launcher), in_a_shell(&folder.canonicalize()?));
    let mut out = crate::output::stdout();
    for turn in 0..turns {
        writeln!(out, "{launcher} sweep --run turn:{turn} {folder}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A path as a word of a shell's command line.
fn in_a_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=,:@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The plan of a sweep that is laid out.
fn of(sweep: SweepRecord) -> SweepPlan {
    let order = order(&sweep.points, sweep.repeats);
    let turns = turns(&sweep.points, &order);
    SweepPlan::new(sweep, &order, &turns)
}

/// The plan in a folder, whose settings can all be had by this build.
fn read(folder: &Path) -> Result<SweepPlan> {
    let plan = SweepPlan::read(folder)?;
    let here = env!("CARGO_PKG_VERSION");
    if plan.version != here {
        let name = folder.display();
        let why = "runs of two versions are not comparable";
        return Err(UsageError(format!(
            "{name}: planned by bulkhead {}, this is {here}: {why}",
            plan.version
        ))
        .into());
    }
    for run in &plan.runs {
        Settings::from_texts(&run.settings).with_context(|| format!("{}: damaged", folder.display()))?;
    }
    Ok(plan)
}

/// Gathers what there is, and reports.
fn join(folder: &Path, json: bool) -> Result<ExitCode> {
    let joined = join::join(&read(folder)?, folder)?;
    let shown: Documents = documents(&joined.record)?;
    joined.record.save(folder)?;
    let code = publish(&joined.record, folder, &shown, json, Ended::Complete)?;
    if joined.missing.is_empty() {
        // What killed launchers left. Whoever still makes a run makes it for nobody.
        let _ = std::fs::remove_dir_all(folder.join(places::MAKING));
        return Ok(code);
    }
    complain(&format!("error: {} runs are missing:", joined.missing.len()));
    joined.missing.iter().for_each(|missing| complain(&format!("  {missing}")));
    complain(&format!("launcher sweep --run all {} makes them", folder.display()));
    Ok(ExitCode::FAILURE)
}
