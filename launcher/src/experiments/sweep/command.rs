//! `launcher sweep`: measures a sweep, or goes on with any experiment that was stopped.

use super::planned::PlannedFlags;
use super::{knee, tables};
use crate::config::{Arrivals, Common, Settings, UsageError};
use crate::experiments::axes::Axis;
use crate::experiments::documents::{self, Documents};
use crate::experiments::flags::{Asked, Swept};
use crate::experiments::points::{Layout, check, lay_out};
use crate::experiments::presets::SweepPreset;
use crate::experiments::record::{self, create, new_record};
use crate::host::Machine;
use crate::planner::Input;
use analysis::document::Document;
use analysis::experiment::{Search, SearchRecord, SweepRecord};
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::{duration, duration_or_dash, plain};
use analysis::units::Nanos;
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags of `sweep`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SweepFlags {
    /// Planned in one place, made in many.
    #[command(flatten)]
    pub planned: PlannedFlags,
    /// The settings of `run`; eight of them may be lists.
    #[command(flatten)]
    pub swept: Swept,
    /// Orders a second: one or more; sets --orders
    #[arg(long, value_name = "LIST", help_heading = "Load")]
    pub rate: Option<String>,
    /// What every command has.
    #[command(flatten)]
    pub common: Common,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    pub keep_logs: bool,
    /// Go on with a sweep that was interrupted
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    pub resume: Option<PathBuf>,
    /// Find the highest rate that keeps the bound, by bisection; --repeats runs of a rate decide [default: 3]
    #[arg(long, requires = "p999", conflicts_with = "resume", help_heading = "Highest rate")]
    pub find_max_rate: bool,
    /// The bound on rt_venue from due, p99.9, e.g. 100us
    #[arg(long, value_name = "DUR", requires = "find_max_rate", help_heading = "Highest rate")]
    pub p999: Option<Nanos>,
    /// Most rates tried for each technique
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=64),
          help_heading = "Highest rate")]
    pub steps: u32,
}

/// The record to measure and its folder: a new one, or one that was stopped, whatever experiment it is.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a folder of another version.
pub fn begin(flags: &SweepFlags) -> Result<(SweepRecord, PathBuf)> {
    let machine = crate::host::machine();
    match &flags.resume {
        Some(folder) => Ok((resumed(flags, folder, &machine)?, folder.clone())),
        None => {
            let mut record = new_sweep(flags, machine)?;
            let folder = create(&mut record)?;
            Ok((record, folder))
        }
    }
}

/// The record of a sweep as the flags ask for it, with nothing measured and nothing saved.
///
/// # Errors
/// [`UsageError`] for what cannot be had.
pub fn new_sweep(flags: &SweepFlags, machine: Machine) -> Result<SweepRecord> {
    let mut asked = flags.swept.asked(flags.rate.as_deref(), flags.common.config.as_ref())?;
    let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
    let mut notes = preset.map(|preset| preset.fill(&mut asked)).unwrap_or_default();
    asked.weaker_sandbox = flags.common.allow_weaker_sandbox;
    let first_per_s = if flags.find_max_rate { take_rate(&mut asked)? } else { None };
    let layout = lay_out(&asked, &machine)?;
    if layout.axes.is_empty() && !flags.find_max_rate {
        return Err(UsageError(
            "nothing to sweep over: give a list to one of --technique, --isolation, --idle, --capacity, --work, \
             --strategies, --venues, --rate, or a --preset.\nFor one setting use launcher run --repeats"
                .into(),
        )
        .into());
    }
    notes.extend(layout.notes.clone());
    let first = Settings::from_texts(&layout.points[0].settings)?;
    notes.extend(preset.and_then(|preset| preset.load_note(&first)));
    let search = match flags.p999.filter(|_| flags.find_max_rate) {
        Some(bound) => Some(new_search(bound, flags.steps, first_per_s, &layout, &machine)?),
        None => None,
    };
    let kind = if search.is_some() { "max-rate" } else { "sweep" };
    let repeats = if search.is_some() { 3 } else { 5 };
    let mut record = new_record(kind, &asked, layout, repeats, machine, &flags.common)?;
    record.preset = preset.map(|preset| preset.name().to_owned());
    record.notes = notes;
    record.search = search;
    record.keep_logs = flags.keep_logs;
    Ok(record)
}

/// The rate that a search begins with: its only value, if one was given.
fn take_rate(asked: &mut Asked) -> Result<Option<f64>> {
    let Some(at) = asked.axes.iter().position(|values| values[0].axis == Axis::Rate) else { return Ok(None) };
    match &asked.axes.remove(at)[..] {
        [only] => Ok(only.text.parse::<analysis::units::Count>().ok().map(|rate| rate.0 as f64)),
        _ => {
            Err(UsageError("--find-max-rate begins at one --rate and finds the others itself".into()).into())
        }
    }
}

fn new_search(
    bound: Nanos,
    most_steps: u32,
    first_per_s: Option<f64>,
    layout: &Layout,
    machine: &Machine,
) -> Result<SearchRecord> {
    let first = Settings::from_texts(&layout.points[0].settings)?;
    let planned = match check(&first, machine, true)?.input {
        Input::Drawn { orders, window_ns, arrivals } if arrivals != Arrivals::Stress => {
            orders as f64 / (window_ns as f64 / 1e9)
        }
        _ => {
            return Err(UsageError(
                "--find-max-rate needs drawn arrivals with a rate: no --schedule, no stress".into(),
            )
            .into());
        }
    };
    if bound.0 == 0 {
        return Err(UsageError(
            "--p999 0ns: nothing is as fast as that; give a bound, for example 100us".into(),
        )
        .into());
    }
    Ok(SearchRecord {
        bound_ns: bound.0,
        most_steps,
        first_per_s: first_per_s.unwrap_or(planned),
        points: vec![Search::default(); layout.points.len()],
    })
}

fn resumed(flags: &SweepFlags, folder: &Path, machine: &Machine) -> Result<SweepRecord> {
    if let Some(flag) = given(flags) {
        return Err(UsageError(format!(
            "--{flag} with --resume: a sweep goes on with the settings that it began with; leave --{flag} out"
        ))
        .into());
    }
    record::resume(folder, machine)
}

/// The first flag that is given of those that say what is measured.
pub fn given(flags: &SweepFlags) -> Option<String> {
    let given = flags.swept.0.first().map(|(key, _)| key.replace('_', "-"));
    let given = given.or_else(|| flags.rate.as_ref().map(|_| "rate".into()));
    let given = given.or_else(|| flags.keep_logs.then(|| "keep-logs".into()));
    given.or_else(|| flags.common.config.as_ref().map(|_| "config".into()))
}

/// What a sweep shows; also of an experiment that is not complete.
///
/// # Errors
/// None that a record has.
pub fn documents(record: &SweepRecord) -> Result<Documents> {
    let grids: Vec<Grid> = match &record.search {
        Some(search) => vec![highest_rates(record, search)],
        None => tables::rt_venue(record)
            .into_iter()
            .chain(tables::by_floor(record))
            .chain(tables::by_host(record))
            .chain(knee::knee(record))
            .collect(),
    };
    Ok(Documents {
        name: "sweep",
        heading: documents::heading(record),
        notes: documents::notes(record),
        narrow: grids.clone(),
        wide: grids,
        json: record.json()?,
        file: None,
    })
}

fn highest_rates(record: &SweepRecord, search: &SearchRecord) -> Grid {
    let row = |(point, search): (&analysis::experiment::SweepPoint, &Search)| {
        let best = search.steps.iter().find(|step| Some(step.rate_per_s) == search.highest_per_s);
        GridRow::plain(vec![
            point.name.clone(),
            search.highest_per_s.map_or_else(|| "none".into(), plain),
            duration_or_dash(best.and_then(|step| step.p999_ns)),
            best.map_or_else(|| "–".into(), |step| format!("{} of {}", step.runs_held, step.folders.len())),
            search.steps.len().to_string(),
        ])
    };
    let points = || record.points.iter().zip(&search.points);
    Grid {
        name: "max_rate".into(),
        title: format!(
            "highest orders/s: rt_venue from due p99.9 ≤ {}, ≥ 99% sent, in most runs",
            duration(search.bound_ns)
        ),
        head: ["setting", "highest", "p99.9", "runs", "steps"].map(str::to_owned).to_vec(),
        keys: 1,
        rows: points().map(row).collect(),
        notes: points()
            .filter(|(_, search)| !search.ended.is_empty())
            .map(|(point, search)| format!("{}: {}", point.name, search.ended))
            .collect(),
    }
}
