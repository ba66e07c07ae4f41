//! `launcher sweep`: measures combinations of settings, or resumes an experiment.

mod planned;
#[cfg(test)]
mod tests;

use super::dry_run::dry_run;
use super::flags::{SweepRequest, SweptSettings};
use super::points::{check, lay_out};
use super::presets::SweepPreset;
use super::record::{create, new_record, resume};
use super::{ExperimentFlags, measure_and_publish, usage};
use analysis::experiment::{Axis, Experiment, Kind, SearchLimits};
use analysis::stats::Percentile;
use anyhow::Result;
use catalog::folder_of;
use clap::Args;
use planned::{PlannedFlags, planned};
use planner::Input;
use planner::config::{Arrivals, Common, Settings};
use planner::host::Machine;
use record::units::{Count, Nanos};
use std::path::PathBuf;
use std::process::ExitCode;

/// The command-line flags of `launcher sweep`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SweepFlags {
    #[command(flatten)]
    planned: PlannedFlags,
    #[command(flatten)]
    pub(super) swept: SweptSettings,
    /// Orders a second: one or more; sets --orders
    #[arg(long, value_name = "LIST", help_heading = "Load")]
    pub(super) rate: Option<String>,
    #[command(flatten)]
    pub(super) common: Common,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    keep_logs: bool,
    /// Go on with a sweep that was interrupted
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    resume: Option<PathBuf>,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, conflicts_with = "resume", help_heading = "Run")]
    dry_run: bool,
    /// Find the highest rate that keeps the bound, by bisection; --repeats runs of a rate decide
    /// [default: 3]
    #[arg(long, requires = "bound", conflicts_with = "resume", help_heading = "Highest rate")]
    find_max_rate: bool,
    /// The bound on rt_venue from due, p99.9, e.g. 100us
    #[arg(
        long,
        value_name = "DUR",
        group = "bound",
        requires = "find_max_rate",
        help_heading = "Highest rate"
    )]
    p999: Option<Nanos>,
    /// The bound on its p99 instead
    #[arg(
        long,
        value_name = "DUR",
        group = "bound",
        requires = "find_max_rate",
        help_heading = "Highest rate"
    )]
    p99: Option<Nanos>,
    /// Most rates tried for each technique
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=64),
          help_heading = "Highest rate")]
    steps: u32,
}

/// Runs `launcher sweep`: measures combinations of settings, continues an interrupted sweep, or
/// plans, measures or gathers the parts of a sweep on several hosts.
pub fn run(flags: &SweepFlags) -> Result<ExitCode> {
    if let Some(folder) = &flags.planned.folder {
        return planned(flags, folder);
    }
    let machine = planner::host::machine();
    let (record, folder) = match &flags.resume {
        Some(folder) => {
            if let Some(flag) = first_given_flag(flags) {
                let why = "a sweep goes on with the settings that it began with";
                return usage(format!("--{flag} with --resume: {why}; leave --{flag} out"));
            }
            let folder = folder_of(folder)?;
            (resume(&folder, &machine)?, folder)
        }
        None => {
            let record = flags.plan(machine)?;
            if flags.dry_run {
                return dry_run(&record);
            }
            create(record, flags.out()?)?
        }
    };
    measure_and_publish(record, &folder, &flags.common)
}

impl ExperimentFlags for SweepFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let mut asked = self.swept.request(self.rate.as_deref(), self.common.config.as_ref())?;
        let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
        preset.into_iter().for_each(|preset| preset.fill_request(&mut asked));
        let first_per_s = if self.find_max_rate { take_start_rate(&mut asked)? } else { None };
        let (kind, repeats) = if self.find_max_rate { (Kind::MaxRate, 3) } else { (Kind::Sweep, 5) };
        let mut record = new_record(kind, &asked, repeats, machine, &self.common);
        record.keep_logs = self.keep_logs;
        lay_out(&mut record, &asked)?;
        let first = Settings::from_texts(&record.settings_of(&record.rows[0]))?;
        record.notes.extend(preset.and_then(|preset| preset.load_note(&first)));
        let bound = self.p999.map(|bound| (Percentile::P999, bound));
        let bound = bound.or(self.p99.map(|bound| (Percentile::P99, bound)));
        if let Some(bound) = bound.filter(|_| self.find_max_rate) {
            let mut limits = new_search(bound, self.steps, first_per_s, &first, &record)?;
            let texts = asked.base.texts().into_iter();
            limits.max_open = texts.filter(|(key, _)| *key == "max_open").map(|(_, text)| text).next();
            record.figures.insert(SearchLimits::NAME, &limits);
            // A row is a rate that was tried; the first of each setting is open.
            record.rows.retain(|row| row.repeat == 0);
        } else if record.axes.is_empty() {
            let flags = Axis::swept().map(|axis| format!("--{axis}")).collect::<Vec<_>>().join(", ");
            return usage(format!(
                "nothing to sweep over: give a list to one of {flags}, or a --preset.\nFor one setting use launcher run --repeats"
            ));
        }
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.swept.request(self.rate.as_deref(), self.common.config.as_ref())?.base.out)
    }
}

/// The rate that a search begins with: its only value, if one was given.
fn take_start_rate(asked: &mut SweepRequest) -> Result<Option<f64>> {
    let Some(at) = asked.axes.iter().position(|values| values[0].axis == Axis::Rate) else { return Ok(None) };
    match &asked.axes.remove(at)[..] {
        [only] => Ok(only.text.parse::<Count>().ok().map(|rate| rate.0 as f64)),
        _ => usage("--find-max-rate begins at one --rate and finds the others itself"),
    }
}

fn new_search(
    (percentile, bound): (Percentile, Nanos),
    most_steps: u32,
    first_per_s: Option<f64>,
    first: &Settings,
    record: &Experiment,
) -> Result<SearchLimits> {
    let planned = match check(first, &record.machine, true)?.input {
        Input::Drawn { orders, window_ns, arrivals } if arrivals != Arrivals::Stress => {
            orders as f64 / (window_ns as f64 / 1e9)
        }
        _ => {
            return usage("--find-max-rate needs drawn arrivals with a rate: no --schedule, no stress");
        }
    };
    if bound.0 == 0 {
        let flag = percentile.name().replace('.', "");
        return usage(format!("--{flag} 0ns: nothing is as fast as that; give a bound, for example 100us"));
    }
    Ok(SearchLimits {
        bound_ns: bound.0,
        percentile,
        max_steps: most_steps,
        first_per_s: first_per_s.unwrap_or(planned),
        max_open: None,
    })
}

/// The first given flag of those that select what is measured.
fn first_given_flag(flags: &SweepFlags) -> Option<String> {
    let others = [
        ("rate", flags.rate.is_some()),
        ("keep-logs", flags.keep_logs),
        ("config", flags.common.config.is_some()),
    ];
    let first = flags.swept.0.first().map(|(key, _)| key.replace('_', "-"));
    first.or_else(|| others.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| (*flag).to_owned()))
}
