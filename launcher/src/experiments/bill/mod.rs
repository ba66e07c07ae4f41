//! `launcher bill`: measures the cost of each isolation level, by technique.
//!
//! A row for each level and technique: what the engine adds to an order, the difference to the
//! reference row with its interval, and what else it costs. What a level contains when a strategy
//! goes wrong is added once it is measured (`contains` of a row).

mod rows;

use super::dry_run::dry_run;
use super::flags::SweptSettings;
use super::forecast::too_few_repeats;
use super::measure::MeasureEnd;
use super::points::lay_out;
use super::presets::SweepPreset;
use super::publish::{PublishableReport, publish};
use super::record::{self, new_record};
use super::{Experiment, measure_experiment, report_of, usage};
use crate::config::Common;
use crate::host::Machine;
use analysis::document::Document;
use analysis::experiment::{Bill, Containments, SweepRecord, bill, sweep};
use analysis::stats::{ComparisonLine, MIN_PAIRS};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
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
    let containments = flags.contain.as_deref().map(Containments::read).transpose()?;
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
            let record = record::read(folder)?;
            let shown = report(&record, containments.as_ref())?;
            return publish(&record, folder, &shown, &flags.common, MeasureEnd::Complete);
        }
        None => flags.begin()?,
    };
    let ended = measure_experiment(&mut record, &folder, flags.common.json)?;
    record.save(&folder)?;
    let shown = match ended {
        MeasureEnd::Complete => report(&record, containments.as_ref())?,
        MeasureEnd::Interrupted => report_of(&record, &folder, ended)?,
    };
    publish(&record, &folder, &shown, &flags.common, ended)
}

impl Experiment for BillFlags {
    fn plan(&self, machine: Machine) -> Result<SweepRecord> {
        let mut asked = self.swept.request(None, self.common.config.as_ref())?;
        let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
        if preset.is_some_and(|preset| preset != SweepPreset::Bill) {
            return usage("--preset with bill: a bill has one preset, its own; leave it out");
        }
        asked.check_axes(rows::is_bill_axis)?;
        asked.preset = Some(SweepPreset::Bill.name().to_owned());
        SweepPreset::Bill.fill_request(&mut asked);
        let mut record = new_record("bill", &asked, 5, machine, &self.common);
        record.keep_logs = self.keep_logs;
        lay_out(&mut record, &asked)?;
        Ok(record)
    }
}

/// The comparisons at the median of `rt_venue`, by which lost pairs are counted: of each row with
/// its reference, and with threads.
pub(super) fn headlines(record: &SweepRecord) -> Result<Vec<ComparisonLine>> {
    let lines = rows::rows(record)?.into_iter().flat_map(|row| {
        let against = row.differences.into_iter().next();
        against.into_iter().chain(row.adds.into_iter().next().map(|cost| cost.line))
    });
    Ok(lines.collect())
}

pub(super) fn report(record: &SweepRecord, containments: Option<&Containments>) -> Result<PublishableReport> {
    let mut bill = Bill {
        rows: rows::rows(record)?,
        conditions: sweep::condition_line(record),
        notes: sweep::notes(record),
    };
    if let Some(containments) = containments {
        for row in &mut bill.rows {
            row.contains = containments.summary_for(row.isolation, row.technique);
        }
        bill.notes.extend(containments.cost.map(|cost| cost.note()));
    }
    if record.repeats < MIN_PAIRS as u32 {
        bill.notes.push(too_few_repeats(record));
    }
    let method = bill.rows.iter().flat_map(|row| &row.differences).find_map(|line| line.difference);
    bill.notes.extend(method.map(|found| format!("95 % intervals: {}", found.method.describe())));
    PublishableReport::new(bill::report(record, &bill), &bill)
}
