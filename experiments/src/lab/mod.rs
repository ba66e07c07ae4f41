//! `launcher lab`: measures each queue with each way of waiting.
//!
//! A cell is a technique, an isolation level, a number of ends, their speeds and a way of waiting.
//! Each run of it starts its own processes over its own memory, pushes the same number of events,
//! and is checked: each event comes once, whole, and in the order of its producer.

mod cell_run;
mod flags;
mod measure;
mod side_by_side;

pub use flags::LabFlags;

use super::measure::MeasureEnd;
use super::progress::SweepProgress;
use super::publish::{exit_code, save_and_print};
use crate::benchmark;
use ::record::screen::program;
use analysis::experiment::Lab;
use anyhow::{Context, Error, Result, bail};
use indicatif::HumanDuration;
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
    let machine = planner::host::machine();
    let resumed_folder = flags.resume.as_deref().map(catalog::folder_of).transpose()?;
    let mut lab = match &resumed_folder {
        Some(folder) => resumed(flags, folder)?,
        None => flags.lab(machine)?,
    };
    // A lab that goes on keeps what was found when it began.
    for reason in unfit() {
        if !lab.unfit.contains(&reason) {
            lab.unfit.push(reason);
        }
    }
    benchmark::check_isolation(lab.cells.iter().map(|cell| cell.isolation), lab.weaker_sandbox)?;
    let folder = match (resumed_folder, flags.out.as_deref()) {
        (Some(folder), _) => folder,
        (None, out) => {
            create_result_folder(out.unwrap_or(Path::new("runs")), &lab.started, "lab")?.canonicalize()?
        }
    };
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    lab.save(&folder)?;
    announce(&lab, flags.json)?;
    benchmark::warn_unfit(&lab.unfit);
    let (done, all) = lab.progress();
    let mut bar = SweepProgress::new(!flags.json && done < all, all);
    let ended = measure::measure(&mut lab, &folder, &signals, &mut bar);
    bar.clear();
    finish(&lab, &folder, flags.json, ended?)
}

/// Reads the lab in a folder to resume it, with its original settings.
fn resumed(flags: &LabFlags, folder: &Path) -> Result<Lab> {
    let others = LabFlags { resume: flags.resume.clone(), json: flags.json, ..LabFlags::default() };
    if *flags != others {
        bail!(planner::config::UsageError(
            "--resume goes on with what the lab began with: no other flag but --json".into()
        ));
    }
    let lab = Lab::read(folder)?;
    flags::parse_slow(&lab.slow).with_context(|| format!("{}: damaged", folder.display()))?;
    Ok(lab)
}

/// What is to come, on stderr: how many runs, about how long.
fn announce(lab: &Lab, quiet: bool) -> Result<()> {
    let slow = flags::parse_slow(&lab.slow)?;
    let missing = measure::order(lab);
    if !quiet && (!missing.is_empty() || std::io::stderr().is_terminal()) {
        let time = HumanDuration(Duration::from_nanos(measure::estimate_all(lab, slow)));
        let runs = counted(missing.len() as u64, "run");
        let events =
            missing.iter().map(|(_, cell)| lab.events_of(&lab.cells[*cell])).collect::<BTreeSet<u64>>();
        let events = events.into_iter().map(|events| counted(events, "event")).collect::<Vec<_>>();
        let events = if events.is_empty() { String::new() } else { format!(" of {}", events.join(" or ")) };
        let (together, _) = side_by_side::split(lab, missing);
        let width = side_by_side::width(lab, together.len());
        let beside = match together.len() {
            0 => String::new(),
            runs => format!(", {runs} of them {width} side by side"),
        };
        // Measure even if the line cannot be printed.
        let _ = writeln!(
            std::io::stderr(),
            "{}, {runs}{events} to be made{beside}: about {time}",
            counted(lab.cells.len() as u64, "cell"),
        );
    }
    Ok(())
}

fn finish(lab: &Lab, folder: &Path, json: bool, ended: MeasureEnd) -> Result<ExitCode> {
    save_and_print(&lab.answer().map_err(Error::msg)?, &lab.experiment(), folder, json)?;
    let interrupted = format!("{} resume {} goes on", program(), folder.display());
    let runs = lab.cells.iter().flat_map(|cell| cell.made.iter().map(move |run| (cell, run)));
    let failures = runs.filter_map(|(cell, run)| {
        let why = run.problems.first()?;
        Some(format!("{} run {}: {why}", cell.name(), run.number))
    });
    Ok(exit_code(ended, &interrupted, &failures.collect::<Vec<_>>(), lab.progress().1))
}
