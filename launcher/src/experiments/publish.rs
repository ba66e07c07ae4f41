//! Prints and saves the report of an experiment.

use super::measure::MeasureEnd;
use crate::output::complain;
use analysis::document::{Document, write_atomically};
use analysis::experiment::{ExperimentReport, SweepRecord, sweep::runs_csv};
use analysis::html;
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The report of an experiment and its document, ready to be printed and saved.
pub struct PublishableReport {
    report: ExperimentReport,
    file: &'static str,
    json: Vec<u8>,
}

impl PublishableReport {
    /// Joins an experiment's tables and its saved document, to print and write both.
    pub fn new<D: Document>(report: ExperimentReport, document: &D) -> Result<Self> {
        Ok(Self { report, file: D::FILE, json: document.json()? })
    }

    /// Writes the experiment's document and tables into a folder.
    pub fn save(&self, folder: &Path) -> Result<()> {
        write_atomically(&folder.join(self.file), &self.json)?;
        self.report.save(folder)
    }

    /// Prints the experiment's document, or its tables, notes, answer and verdict.
    pub fn print(&self, json: bool) -> Result<()> {
        let mut out = crate::output::stdout();
        let text = if json { Vec::new() } else { self.report.terminal(out.is_coloured()).into_bytes() };
        Ok(out.write_all(if json { &self.json } else { &text })?)
    }

    /// Saves an experiment's report with its HTML page, prints it, and prints the folder.
    pub fn publish(&self, folder: &Path, json: bool) -> Result<()> {
        self.save(folder)?;
        html::write(folder, &folder.join(html::HTML_FILE))?;
        self.print(json)?;
        if !json {
            writeln!(crate::output::stdout(), "Saved in {}", folder.display())?;
        }
        Ok(())
    }
}

/// Publishes the report of an experiment that made runs, with `runs.csv`. Returns the exit code:
/// interrupted, a run failed, or all is well.
pub fn publish(
    record: &SweepRecord,
    folder: &Path,
    shown: &PublishableReport,
    json: bool,
    ended: MeasureEnd,
) -> Result<ExitCode> {
    write_atomically(&folder.join("runs.csv"), &runs_csv(record)?)?;
    shown.publish(folder, json)?;
    if ended == MeasureEnd::Interrupted {
        let (kind, folder, program) = (&record.kind, folder.display(), crate::output::program());
        let (made, planned) = (record.runs().count(), record.planned_runs());
        complain(&format!(
            "interrupted: {made} of {planned} runs of the {kind} are made; {program} sweep --resume {folder} finishes the {kind}"
        ));
        return Ok(crate::runtime::signals::exit_code());
    }
    let bad: Vec<_> = record.runs().filter(|run| !run.outline.is_sound()).collect();
    let Some(first) = bad.first().filter(|_| !record.keeps_failures) else { return Ok(ExitCode::SUCCESS) };
    let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
    let (failed, all) = (bad.len(), record.runs().count());
    complain(&format!("error: {failed} of {all} runs failed, the first: {}: {why}", first.folder));
    Ok(ExitCode::FAILURE)
}
