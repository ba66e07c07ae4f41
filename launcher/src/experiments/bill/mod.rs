//! `launcher bill`: measures the cost of each isolation level, by technique.
//!
//! A row for each level and technique: what the engine adds to an order, the difference to the
//! reference row with its interval, and what else it costs. What a level contains when a strategy
//! goes wrong is added once it is measured (`contains` of a row).

use super::dry_run::dry_run;
use super::flags::SweptSettings;
use super::measure::MeasureEnd;
use super::points::lay_out;
use super::presets::SweepPreset;
use super::publish::publish;
use super::record::{self, new_record};
use super::{ExperimentFlags, measure_experiment, usage};
use crate::config::{Common, UsageError};
use crate::host::Machine;
use analysis::document::Document;
use analysis::experiment::bill::answer_so_far;
use analysis::experiment::{Answer, Axis, Containments, Experiment, Kind};
use anyhow::{Error, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The command-line flags of `launcher bill`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct BillFlags {
    /// A sweep that was measured before; without it one is measured
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// What each level contains, measured before by launcher contain
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    contain: Option<PathBuf>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    keep_logs: bool,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, conflicts_with = "folder", help_heading = "Run")]
    dry_run: bool,
}

/// Measures the cost of each isolation level, or computes it from an earlier measurement.
pub fn run(flags: &BillFlags) -> Result<ExitCode> {
    // Read first: a folder that is none is found out before anything is measured.
    let contained = flags.contain.as_deref().map(contained).transpose()?;
    if flags.dry_run {
        return dry_run(&flags.plan(crate::host::machine())?);
    }
    let (mut record, folder) = match &flags.folder {
        Some(folder) => {
            if let Some((key, _)) = flags.swept.0.first() {
                let key = key.replace('_', "-");
                let why = "what was measured is not measured again; leave one of them out";
                return usage(format!("--{key} with a folder: {why}"));
            }
            let mut record = record::read(folder)?;
            let shown = bill_of(&mut record, contained.as_ref())?;
            record.save(folder)?;
            return publish(&record, folder, &shown, &flags.common, MeasureEnd::Complete);
        }
        None => flags.begin()?,
    };
    let ended = measure_experiment(&mut record, &folder, flags.common.json)?;
    let shown = match ended {
        MeasureEnd::Complete => bill_of(&mut record, contained.as_ref())?,
        MeasureEnd::Interrupted => record.answer(&folder)?,
    };
    record.save(&folder)?;
    publish(&record, &folder, &shown, &flags.common, ended)
}

impl ExperimentFlags for BillFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let mut asked = self.swept.request(None, self.common.config.as_ref())?;
        let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
        if preset.is_some_and(|preset| preset != SweepPreset::Bill) {
            return usage("--preset with bill: a bill has one preset, its own; leave it out");
        }
        asked.check_axes(Axis::is_of_bill)?;
        asked.preset = Some(SweepPreset::Bill.name().to_owned());
        SweepPreset::Bill.fill_request(&mut asked);
        let mut record = new_record(Kind::Bill, &asked, 5, machine, &self.common);
        record.keep_logs = self.keep_logs;
        lay_out(&mut record, &asked)?;
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.swept.request(None, self.common.config.as_ref())?.base.out)
    }
}

/// Reads the table of `launcher contain` in a folder.
fn contained(folder: &Path) -> Result<Containments> {
    let measured = record::read(folder)?;
    if measured.kind != Kind::Contain {
        return usage(format!("--contain {}: the folder of a {}", folder.display(), measured.kind));
    }
    Containments::from_experiment(&measured).map_err(Error::msg)
}

/// Makes a bill of an experiment's runs, with what each level contains.
fn bill_of(record: &mut Experiment, contained: Option<&Containments>) -> Result<Answer> {
    if let Some(contained) = contained {
        record.set_contains(&contained.summaries(), contained.cost);
    }
    let answer = answer_so_far(record).map_err(UsageError)?;
    record.kind = Kind::Bill;
    Ok(answer)
}
