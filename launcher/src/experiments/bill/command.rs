//! `launcher bill`: measures the bill, or makes it from what was measured.

use super::rows::{is_of_a_bill, rows};
use super::table;
use crate::config::{Common, UsageError};
use crate::experiments::documents::{self, Documents};
use crate::experiments::flags::Swept;
use crate::experiments::points::lay_out;
use crate::experiments::presets::SweepPreset;
use crate::experiments::record::{create, new_record};
use crate::runtime::progress::complain;
use analysis::document::Document;
use analysis::experiment::{Bill, Containments, SweepRecord};
use analysis::report::bill::headline;
use analysis::stats::FEWEST_PAIRS;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// The flags of `bill`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct BillFlags {
    /// A sweep that was measured before; without it one is measured
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// The settings of `run`; technique and isolation may be lists.
    #[command(flatten)]
    pub swept: Swept,
    /// What every command has.
    #[command(flatten)]
    pub common: Common,
    /// What each level contains, measured before by launcher contain
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    pub contain: Option<PathBuf>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    pub keep_logs: bool,
}

/// The record of a bill to measure and its folder.
///
/// # Errors
/// [`UsageError`] for what cannot be had.
pub fn begin(flags: &BillFlags) -> Result<(SweepRecord, PathBuf)> {
    let machine = crate::host::machine();
    let mut asked = flags.swept.asked(None, flags.common.config.as_ref())?;
    let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
    if preset.is_some_and(|preset| preset != SweepPreset::Bill) {
        return Err(
            UsageError("--preset with bill: a bill has one preset, its own; leave it out".into()).into()
        );
    }
    let other = asked.axes.iter().map(|values| values[0].axis);
    if let Some(axis) = other.into_iter().find(|axis| !is_of_a_bill(*axis)) {
        return Err(UsageError(format!(
            "--{axis} takes one value here: launcher sweep --{axis} A,B varies it"
        ))
        .into());
    }
    asked.weaker_sandbox = flags.common.allow_weaker_sandbox;
    asked.preset = Some(SweepPreset::Bill.name().to_owned());
    let mut notes = SweepPreset::Bill.fill(&mut asked);
    let layout = lay_out(&asked, &machine)?;
    notes.extend(layout.notes.clone());
    let mut record = new_record("bill", &asked, layout, 5, machine, &flags.common)?;
    if record.repeats < FEWEST_PAIRS as u32 {
        complain(&format!("note: {}: too few runs to compare; showing raw figures", no_verdicts(&record)));
    }
    record.preset = asked.preset;
    record.notes = notes;
    record.keep_logs = flags.keep_logs;
    let folder = create(&mut record)?;
    Ok((record, folder))
}

fn no_verdicts(record: &SweepRecord) -> String {
    let repeats = record.repeats;
    let repeats = if repeats == 1 { "1 repeat".into() } else { format!("{repeats} repeats") };
    format!("no verdicts: {repeats}, {FEWEST_PAIRS} are needed (--repeats {FEWEST_PAIRS})")
}

/// What was measured before needs no settings.
///
/// # Errors
/// There are some.
pub fn check_folder(flags: &BillFlags) -> Result<(), UsageError> {
    match flags.swept.0.first() {
        Some((key, _)) => Err(UsageError(format!(
            "--{} with a folder: what was measured is not measured again; leave one of them out",
            key.replace('_', "-")
        ))),
        None => Ok(()),
    }
}

/// What a bill shows.
///
/// # Errors
/// A sweep over something else than what a bill is of.
pub fn documents(record: &SweepRecord, containments: Option<&Containments>) -> Result<Documents> {
    let mut bill = Bill { rows: rows(record)?, notes: documents::notes(record) };
    if let Some(containments) = containments {
        for row in &mut bill.rows {
            row.contains = containments.of(row.isolation, row.technique);
        }
        bill.notes.extend(containments.cost.map(|cost| cost.words()));
    }
    if record.repeats < FEWEST_PAIRS as u32 {
        bill.notes.push(no_verdicts(record));
    }
    let first = bill.rows.iter().find_map(|row| row.differences.iter().find(|line| !line.why.is_empty()));
    let why = first.map(|line| format!("not comparable, e.g.: {}", line.why.join("; ")));
    bill.notes.extend(why.filter(|_| record.repeats >= FEWEST_PAIRS as u32));
    let method = bill.rows.iter().flat_map(|row| &row.differences).find_map(|line| line.difference);
    bill.notes.extend(method.map(|found| format!("95 % intervals: {}", found.method.words())));
    Ok(Documents {
        name: "bill",
        heading: documents::heading(record),
        notes: bill.notes.clone(),
        narrow: table::narrow(&bill),
        wide: headline(&bill).into_iter().chain([table::wide(&bill)]).collect(),
        json: bill.json()?,
        file: Some(Bill::FILE),
    })
}
