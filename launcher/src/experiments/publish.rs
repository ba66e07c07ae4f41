//! Prints and saves the report of an experiment.

use super::measure::MeasureEnd;
use crate::config::Common;
use crate::output::complain;
use analysis::document::{Document, write_atomically};
use analysis::experiment::{ExperimentReport, RunEntry, SweepRecord, sweep::runs_csv};
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
    pub fn new<D: Document>(report: ExperimentReport, document: &D) -> Result<Self> {
        Ok(Self { report, file: D::FILE, json: document.json()? })
    }

    pub fn save(&self, folder: &Path) -> Result<()> {
        write_atomically(&folder.join(self.file), &self.json)?;
        self.report.save(folder)
    }

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

/// Publishes the report of an experiment that made runs, with `runs.csv`. Returns its exit code.
pub fn publish(
    record: &SweepRecord,
    folder: &Path,
    shown: &PublishableReport,
    common: &Common,
    ended: MeasureEnd,
) -> Result<ExitCode> {
    write_atomically(&folder.join("runs.csv"), &runs_csv(record)?)?;
    shown.publish(folder, common.json)?;
    let (kind, program) = (&record.kind, crate::output::program());
    let (made, planned) = (record.runs().count(), record.planned_runs());
    let resume = format!("{program} sweep --resume {} finishes the {kind}", folder.display());
    let failed = record.runs().filter(|run| !run.outline.is_sound() && !record.keeps_failures);
    let failures = failed.map(|run| {
        let why = run.outline.reasons.first().map_or("no reason given", String::as_str);
        format!("{}: {why}", run.folder)
    });
    let interrupted = format!("{made} of {planned} runs of the {kind} are made; {resume}");
    let code = exit_code(ended, &interrupted, &failures.collect::<Vec<_>>(), made);
    let unfired = |run: &RunEntry| {
        let said = |why: &String| format!("{}: {why}", run.folder);
        run.outline.unfired_faults.iter().map(said).collect::<Vec<_>>()
    };
    let unfired: Vec<String> = record.runs().flat_map(unfired).collect();
    Ok(worse(code, report_unfired(&unfired, common.allow_unfired)))
}

/// Complains about the faults that were asked for and never fired. Returns the exit code that they
/// cause: failure, unless they are `allowed`.
pub fn report_unfired(unfired: &[String], allowed: bool) -> ExitCode {
    let [first, others @ ..] = unfired else { return ExitCode::SUCCESS };
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    if allowed {
        complain(&format!("note: {first}{more}"));
        return ExitCode::SUCCESS;
    }
    complain(&format!("error: {first}{more}; --allow-unfired accepts it"));
    ExitCode::FAILURE
}

/// Returns the first of two exit codes, unless it is that of success.
pub fn worse(first: ExitCode, second: ExitCode) -> ExitCode {
    if first == ExitCode::SUCCESS { second } else { first }
}

/// Returns the exit code of an experiment with `made` runs: interrupted, a run failed, or all is
/// well. Complains unless all is well.
pub fn exit_code(ended: MeasureEnd, interrupted: &str, failures: &[String], made: usize) -> ExitCode {
    match (ended, failures) {
        (MeasureEnd::Interrupted, _) => {
            complain(&format!("interrupted: {interrupted}"));
            crate::runtime::signals::exit_code()
        }
        (MeasureEnd::Complete, [first, ..]) => {
            complain(&format!("error: {} of {made} runs failed, the first: {first}", failures.len()));
            ExitCode::FAILURE
        }
        (MeasureEnd::Complete, []) => ExitCode::SUCCESS,
    }
}
