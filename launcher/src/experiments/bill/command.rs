//! `launcher bill`: measures the bill, or makes it from what was measured.

use super::rows::{BILL_SCHEMA, Bill, rows};
use super::table;
use crate::config::UsageError;
use crate::experiments::contain::Containments;
use crate::experiments::sweep::{self, Axis, Ended, SweepPreset, SweepRecord, Swept};
use analysis::html;
use analysis::report::grid::wrapped;
use analysis::stats::FEWEST_PAIRS;
use analysis::units::Nanos;
use anyhow::{Context, Result};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The flags of `bill`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct BillFlags {
    /// A sweep that was measured before; without it one is measured
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// The settings of `run`; technique and isolation may be lists.
    #[command(flatten)]
    pub swept: Swept,
    /// YAML file of settings, `key: value`
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub config: Option<PathBuf>,
    /// What each level contains, measured before by launcher contain
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    pub contain: Option<PathBuf>,
    /// Print the bill as JSON on stdout
    #[arg(long, help_heading = "Run")]
    pub json: bool,
    /// Go on with a kernel that lacks a piece of the sandbox
    #[arg(long, help_heading = "Run")]
    pub allow_weaker_sandbox: bool,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    pub keep_logs: bool,
    /// How long the processes may take to get ready
    #[arg(long, value_name = "DUR", default_value = "30s", hide = true)]
    pub start_timeout: Nanos,
}

/// Does what `launcher bill` says.
///
/// # Errors
/// [`UsageError`] for what cannot be had; a folder without a sweep or of another version; a run that could not be made.
pub fn command(flags: &BillFlags) -> Result<ExitCode> {
    // Read first: a folder that is none is found out before anything is measured.
    let containments = flags.contain.as_deref().map(html::containments).transpose()?;
    if let Some(folder) = &flags.folder {
        if let Some((key, _)) = flags.swept.0.first() {
            return Err(UsageError(format!(
                "--{} with a folder: what was measured is not measured again; leave one of them out",
                key.replace('_', "-")
            ))
            .into());
        }
        return finish(&sweep::read(folder)?, folder, containments.as_ref(), flags.json);
    }
    let machine = crate::host::machine();
    let mut asked = flags.swept.asked(None, flags.config.as_ref())?;
    if asked.preset.is_some_and(|preset| preset != SweepPreset::Bill) {
        return Err(
            UsageError("--preset with bill: a bill has one preset, its own; leave it out".into()).into()
        );
    }
    let other = asked.axes.iter().map(|values| values[0].axis);
    if let Some(axis) = other.into_iter().find(|axis| !matches!(axis, Axis::Technique | Axis::Isolation)) {
        return Err(UsageError(format!(
            "--{axis} takes one value here: launcher sweep --{axis} A,B varies it"
        ))
        .into());
    }
    asked.preset = Some(SweepPreset::Bill);
    asked.weaker_sandbox = flags.allow_weaker_sandbox;
    let mut notes = SweepPreset::Bill.fill(&mut asked);
    let layout = sweep::lay_out(&asked, &machine)?;
    notes.extend(layout.notes.clone());
    let mut record = sweep::new_record("bill", &asked, layout, 5, machine)?;
    record.preset = asked.preset.map(|preset| preset.name().to_owned());
    record.notes = notes;
    record.keep_logs = flags.keep_logs;
    record.start_timeout_ns = flags.start_timeout.0;
    let folder = sweep::create(&mut record)?;
    match sweep::measured(&mut record, &folder, flags.json)? {
        Ended::Complete => finish(&record, &folder, containments.as_ref(), flags.json),
        ended => sweep::finish(&record, &folder, flags.json, ended),
    }
}

/// Makes the bill of a sweep, prints it, and writes `bill.json`, `bill.csv` and `bill.md` beside `sweep.json`.
///
/// # Errors
/// A sweep over something else than technique and isolation; a folder that cannot be written.
pub fn finish(
    record: &SweepRecord,
    folder: &Path,
    containments: Option<&Containments>,
    json: bool,
) -> Result<ExitCode> {
    let mut bill = Bill { schema: BILL_SCHEMA.into(), rows: rows(record)?, notes: sweep::notes(record) };
    if let Some(containments) = containments {
        for row in &mut bill.rows {
            row.contains = containments.of(row.isolation, row.technique);
        }
        bill.notes.extend(containments.cost.map(|cost| cost.words()));
    }
    if record.repeats < FEWEST_PAIRS as u32 {
        bill.notes.push(format!("no verdicts: {} repeats, {FEWEST_PAIRS} are needed", record.repeats));
    }
    let first = bill.rows.iter().find_map(|row| row.differences.iter().find(|line| !line.why.is_empty()));
    let why = first.map(|line| format!("not comparable, e.g.: {}", line.why.join("; ")));
    bill.notes.extend(why.filter(|_| record.repeats >= FEWEST_PAIRS as u32));
    let method = bill.rows.iter().flat_map(|row| &row.differences).find_map(|line| line.difference);
    bill.notes.extend(method.map(|found| format!("95 % intervals: {}", found.method.words())));
    let path = folder.join("bill.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&bill)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    sweep::save_runs(record, folder)?;
    sweep::save_grids(folder, "bill", &sweep::heading(record), &bill.notes, &[table::wide(&bill)])?;
    html::write(folder, &folder.join(html::HTML_FILE))?;
    let mut out = crate::output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, &bill)?;
        writeln!(out)?;
    } else {
        let colour = out.is_coloured();
        for grid in table::narrow(&bill) {
            writeln!(out, "{}", grid.terminal(colour))?;
        }
        for note in &bill.notes {
            writeln!(out, "{}", wrapped(note))?;
        }
        writeln!(out, "\nSaved in {}", folder.display())?;
    }
    drop(out);
    Ok(sweep::code(record, folder, Ended::Complete))
}
