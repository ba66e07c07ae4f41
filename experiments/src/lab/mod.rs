//! `launcher lab`: measures each queue with each way of waiting.
//!
//! A cell is a technique, an isolation level, a number of ends, their speeds and a way of waiting.
//! Each run of it starts its own processes over its own memory, pushes the same number of events,
//! and is checked: each event comes once, whole, and in the order of its producer.

mod cell_run;
mod flags;
mod maker;
mod measure;

pub use flags::LabFlags;

use super::measure::{MeasureEnd, measure_rows, missing_rows};
use super::progress::SweepProgress;
use super::publish::{OutputForm, exit_code, save_and_print};
use crate::benchmark;
use ::record::document::Document;
use ::record::screen::program;
use analysis::experiment::{Experiment, Lab, LabPlan};
use anyhow::{Context, Error, Result, bail};
use indicatif::HumanDuration;
use maker::{LabRuns, cell_of, groups};
use planner::host::signals::Signals;
use planner::result_folder::create_result_folder;
use record::numbers::counted;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Runs `launcher lab`: measures each queue with each way of waiting, saves, prints and draws.
/// `unfit` returns why the machine is unfit for latency figures just now.
pub fn run(flags: &LabFlags, unfit: impl FnOnce() -> Vec<String>) -> Result<ExitCode> {
    let resumed_folder = flags.resume.as_deref().map(catalog::folder_of).transpose()?;
    let mut record = match &resumed_folder {
        Some(folder) => resumed(flags, folder)?,
        None => flags.plan(planner::host::machine())?,
    };
    let mut plan = LabPlan::from_experiment(&record).map_err(Error::msg)?;
    // A lab that goes on keeps what was found when it began.
    for reason in unfit() {
        if !plan.unfit.contains(&reason) {
            plan.unfit.push(reason);
        }
    }
    record.figures.insert("unfit", &plan.unfit);
    let lab = Lab::from_experiment(&record).map_err(Error::msg)?;
    benchmark::check_isolation(lab.cells.iter().map(|cell| cell.isolation), plan.weaker_sandbox)?;
    let folder = match (resumed_folder, flags.out.as_deref()) {
        (Some(folder), _) => folder,
        (None, out) => {
            create_result_folder(out.unwrap_or(Path::new("runs")), &record.started, "lab")?.canonicalize()?
        }
    };
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    record.set_launcher();
    record.save(&folder)?;
    let (missing, (done, all)) = (missing_rows(&record), lab.progress());
    announce(&record, &plan, missing, flags.json)?;
    benchmark::warn_unfit(&plan.unfit);
    if plan.sleep.is_none() {
        plan.sleep = measure::sample_sleep();
        plan.sleep.iter().for_each(|sleep| record.figures.insert("sleep", sleep));
    }
    let mut bar = SweepProgress::new(!flags.json && done < all, all);
    let mut maker = LabRuns::new(plan, &folder, &signals);
    let ended = measure_rows(&mut record, &folder, &mut maker, &mut bar, &|_| None);
    bar.clear();
    finish(&record, &folder, OutputForm::new(flags.json, flags.report), ended?)
}

/// Reads the lab in a folder to resume it, with its original settings.
fn resumed(flags: &LabFlags, folder: &Path) -> Result<Experiment> {
    let LabFlags { ref resume, json, report, .. } = *flags;
    let others = LabFlags { resume: resume.clone(), json, report, ..LabFlags::default() };
    if *flags != others {
        bail!(planner::config::UsageError(
            "--resume goes on with what the lab began with: no other flag but --json and --report".into()
        ));
    }
    let lab = |record: &Experiment| Lab::from_experiment(record).map(|_| record.clone());
    let record = Experiment::read_as(folder, lab)?;
    let plan = LabPlan::from_experiment(&record).map_err(Error::msg)?;
    flags::parse_slow(&plan.slow).with_context(|| format!("{}: damaged", folder.display()))?;
    Ok(record)
}

/// What is to come, on stderr: how many runs, about how long.
fn announce(record: &Experiment, plan: &LabPlan, missing: Vec<usize>, quiet: bool) -> Result<()> {
    if !quiet && (!missing.is_empty() || std::io::stderr().is_terminal()) {
        let slow = flags::parse_slow(&plan.slow)?;
        let runs = counted(missing.len() as u64, "run");
        let events = missing.iter().map(|at| Ok(plan.events_of(&cell_of(record, *at)?)));
        let events = events.collect::<Result<BTreeSet<u64>>>()?.into_iter();
        let events = events.map(|events| counted(events, "event")).collect::<Vec<_>>();
        let events = if events.is_empty() { String::new() } else { format!(" of {}", events.join(" or ")) };
        let beside = match groups(record, plan, missing.clone()).first() {
            Some((width, rows)) if *width > 1 => format!(", {} of them {width} side by side", rows.len()),
            _ => String::new(),
        };
        let time = Duration::from_nanos(measure::estimate_all(record, plan, slow, missing)?);
        // Measure even if the line cannot be printed.
        let _ = writeln!(
            std::io::stderr(),
            "{}, {runs}{events} to be made{beside}: about {}",
            counted(record.settings().len() as u64, "cell"),
            HumanDuration(time),
        );
    }
    Ok(())
}

fn finish(record: &Experiment, folder: &Path, form: OutputForm, ended: MeasureEnd) -> Result<ExitCode> {
    save_and_print(&record.answer(folder)?, record, folder, form)?;
    let interrupted = format!("{} resume {} goes on", program(), folder.display());
    let lab = Lab::from_experiment(record).map_err(Error::msg)?;
    let runs = lab.cells.iter().flat_map(|cell| cell.made.iter().map(move |run| (cell, run)));
    let failures = runs.filter_map(|(cell, run)| {
        let why = run.problems.first()?;
        Some(format!("{} run {}: {why}", cell.name(), run.number))
    });
    Ok(exit_code(ended, &interrupted, &failures.collect::<Vec<_>>(), lab.progress().1))
}
