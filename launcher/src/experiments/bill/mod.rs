//! `launcher bill`: the headline table. What does every isolation level cost, with every technique?
//!
//! A row for each level and technique: what the engine adds to an order, the difference to the
//! reference row with its interval, and what else it costs: CPU, start-up, memory, page faults,
//! context switches. What a level contains when a strategy goes wrong stands beside it once it is
//! measured (`contains` of a row).

mod rows;

use super::flags::Swept;
use super::launch::launch;
use super::measure::Ended;
use super::points::lay_out;
use super::presets::SweepPreset;
use super::publish::{Shown, publish};
use super::record::{self, create, new_record};
use crate::config::{Common, UsageError};
use crate::output::complain;
use analysis::document::Document;
use analysis::experiment::{Bill, Containments, SweepRecord, bill, sweep};
use analysis::stats::MIN_PAIRS;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// The flags of `bill`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct BillFlags {
    /// A sweep that was measured before; without it one is measured
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    swept: Swept,
    #[command(flatten)]
    common: Common,
    /// What each level contains, measured before by launcher contain
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    contain: Option<PathBuf>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    keep_logs: bool,
}

/// Measures a bill, or makes it of what was measured before.
pub fn run(flags: &BillFlags) -> Result<ExitCode> {
    // Read first: a folder that is none is found out before anything is measured.
    let containments = flags.contain.as_deref().map(Containments::read).transpose()?;
    let json = flags.common.json;
    let (mut record, folder) = match &flags.folder {
        Some(folder) => {
            if let Some((key, _)) = flags.swept.0.first() {
                let key = key.replace('_', "-");
                let why = "what was measured is not measured again; leave one of them out";
                return Err(UsageError(format!("--{key} with a folder: {why}")).into());
            }
            let record = record::read(folder)?;
            let shown = shown(&record, containments.as_ref())?;
            return publish(&record, folder, &shown, json, Ended::Complete);
        }
        None => begin(flags)?,
    };
    match launch(&mut record, &folder, json)? {
        Ended::Complete => {
            publish(&record, &folder, &shown(&record, containments.as_ref())?, json, Ended::Complete)
        }
        Ended::Interrupted => {
            let shown = Shown::new(sweep::report(&record), &record)?;
            publish(&record, &folder, &shown, json, Ended::Interrupted)
        }
    }
}

/// The record of a bill to measure and its folder.
fn begin(flags: &BillFlags) -> Result<(SweepRecord, PathBuf)> {
    let machine = crate::host::machine();
    let mut asked = flags.swept.asked(None, flags.common.config.as_ref())?;
    let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
    if preset.is_some_and(|preset| preset != SweepPreset::Bill) {
        return Err(
            UsageError("--preset with bill: a bill has one preset, its own; leave it out".into()).into()
        );
    }
    if let Some(axis) = asked.axes.iter().map(|values| values[0].axis).find(|axis| !rows::is_of_a_bill(*axis))
    {
        let why = format!("launcher sweep --{axis} A,B varies it");
        return Err(UsageError(format!("--{axis} takes one value here: {why}")).into());
    }
    asked.weaker_sandbox = flags.common.allow_weaker_sandbox;
    asked.preset = Some(SweepPreset::Bill.name().to_owned());
    let mut notes = SweepPreset::Bill.fill(&mut asked);
    let layout = lay_out(&asked, &machine)?;
    notes.extend(layout.notes.clone());
    let mut record = new_record("bill", &asked, layout, 5, machine, &flags.common)?;
    if record.repeats < MIN_PAIRS as u32 {
        complain(&format!("note: {}: too few runs to compare; showing raw figures", no_verdicts(&record)));
    }
    (record.preset, record.notes, record.keep_logs) = (asked.preset, notes, flags.keep_logs);
    let folder = create(&mut record)?;
    Ok((record, folder))
}

fn no_verdicts(record: &SweepRecord) -> String {
    let repeats = if record.repeats == 1 { "1 repeat".into() } else { format!("{} repeats", record.repeats) };
    format!("no verdicts: {repeats}, {MIN_PAIRS} are needed (--repeats {MIN_PAIRS})")
}

/// What a bill shows.
pub(super) fn shown(record: &SweepRecord, containments: Option<&Containments>) -> Result<Shown> {
    let mut bill = Bill { rows: rows::rows(record)?, notes: sweep::notes(record) };
    if let Some(containments) = containments {
        for row in &mut bill.rows {
            row.contains = containments.of(row.isolation, row.technique);
        }
        bill.notes.extend(containments.cost.map(|cost| cost.words()));
    }
    if record.repeats < MIN_PAIRS as u32 {
        bill.notes.push(no_verdicts(record));
    } else {
        let why = bill.rows.iter().flat_map(|row| &row.differences).find(|line| !line.why.is_empty());
        bill.notes.extend(why.map(|line| format!("not comparable, e.g.: {}", line.why.join("; "))));
    }
    let method = bill.rows.iter().flat_map(|row| &row.differences).find_map(|line| line.difference);
    bill.notes.extend(method.map(|found| format!("95 % intervals: {}", found.method.describe())));
    Shown::new(bill::report(record, &bill), &bill)
}
