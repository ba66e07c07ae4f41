//! Prints and saves the report of an experiment.

use super::measure::MeasureEnd;
use ::record::screen::print_warning;
use analysis::experiment::{Answer, Experiment, ExperimentRuns, RunEntry, rows_csv};
use anyhow::Result;
use planner::command_line::{report_unfired, worse};
use planner::config::{Common, ReportLength};
use record::document::write_atomically;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use verdict::html;

/// Saves the answer of an experiment in its folder: `rows.csv`, tables, and the HTML page.
pub fn save(answer: &Answer, experiment: &Experiment, folder: &Path) -> Result<()> {
    write_atomically(&folder.join("rows.csv"), &rows_csv(experiment)?)?;
    answer.report.save(folder)?;
    Ok(write_atomically(
        &folder.join(html::HTML_FILE),
        analysis::html::experiment_page(&answer.report).as_bytes(),
    )?)
}

/// The form in which the answer of an experiment is printed: JSON or a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// JSON for programs.
    Json,
    /// A report for people, of this length.
    Report(ReportLength),
}

impl OutputForm {
    /// Returns the form JSON if `json` is set, else a report of the given length.
    pub const fn new(json: bool, length: ReportLength) -> Self {
        if json { Self::Json } else { Self::Report(length) }
    }

    /// Returns the output form that the flags of an experiment's command request.
    pub const fn from_flags(common: &Common) -> Self {
        Self::new(common.json, common.report)
    }
}

/// Prints the answer of an experiment in the given form.
pub fn print(answer: &Answer, form: OutputForm) -> Result<()> {
    let mut out = ::record::screen::stdout();
    let text = match form {
        OutputForm::Json => return Ok(out.write_all(&answer.json)?),
        OutputForm::Report(ReportLength::Short) => answer.report.first_screen(out.has_colors()),
        OutputForm::Report(ReportLength::Full) => answer.report.terminal(out.has_colors()),
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Saves an experiment's answer, and prints it with the experiment's folder; if the report is
/// short, also prints the commands that show more.
pub fn save_and_print(
    answer: &Answer,
    experiment: &Experiment,
    folder: &Path,
    form: OutputForm,
) -> Result<()> {
    save(answer, experiment, folder)?;
    print(answer, form)?;
    print_folder(folder, form)
}

/// Prints the folder of an experiment, unless the output is JSON, and with a short report also the
/// commands that show more.
pub fn print_folder(folder: &Path, form: OutputForm) -> Result<()> {
    let (folder, program) = (folder.display(), ::record::screen::program());
    let mut out = ::record::screen::stdout();
    if form != OutputForm::Json {
        writeln!(out, "Saved in {folder}")?;
    }
    if form == OutputForm::Report(ReportLength::Short) {
        writeln!(out, "next: {program} open {folder}\nfull: {program} report {folder}")?;
    }
    Ok(())
}

/// Saves and prints the answer of an experiment that made runs, and reports failed runs and faults
/// that did not occur. Returns its exit code.
pub fn publish(
    record: &Experiment,
    folder: &Path,
    shown: &Answer,
    common: &Common,
    ended: MeasureEnd,
) -> Result<ExitCode> {
    save_and_print(shown, record, folder, OutputForm::from_flags(common))?;
    let runs = ExperimentRuns::new(record);
    let (kind, program) = (record.kind, ::record::screen::program());
    let (made, planned) = (record.made().count(), record.rows.len());
    let resume = format!("{program} resume {} finishes the {kind}", folder.display());
    let failed = runs.runs().filter(|run| !run.outline.is_usable() && !record.kind.entry().keeps_failures);
    let failures = failed.map(|run| {
        let why = run.outline.reasons.first().map_or("no reason given", String::as_str);
        format!("{}: {why}", run.folder)
    });
    let interrupted = format!("{made} of {planned} runs of the {kind} are made; {resume}");
    let code = exit_code(ended, &interrupted, &failures.collect::<Vec<_>>(), made);
    let unfired = |run: &RunEntry| {
        let message = |why: &String| format!("{}: {why}", run.folder);
        run.outline.unfired_faults.iter().map(message).collect::<Vec<_>>()
    };
    let unfired: Vec<String> = runs.runs().flat_map(unfired).collect();
    Ok(worse(code, report_unfired(&unfired, common.allow_unfired)))
}

/// Returns an experiment's exit code: 128 plus the signal's number if it was interrupted, 1 if a
/// run failed, otherwise 0. Prints a warning unless the code is 0. `made` is the number of runs
/// made.
pub fn exit_code(ended: MeasureEnd, interrupted: &str, failures: &[String], made: usize) -> ExitCode {
    match (ended, failures) {
        (MeasureEnd::Interrupted, _) => {
            print_warning(&format!("interrupted: {interrupted}"));
            planner::host::signals::exit_code()
        }
        (MeasureEnd::Complete | MeasureEnd::GivenUp, [first, ..]) => {
            print_warning(&format!("error: {} of {made} runs failed, the first: {first}", failures.len()));
            ExitCode::FAILURE
        }
        (MeasureEnd::Complete | MeasureEnd::GivenUp, []) => ExitCode::SUCCESS,
    }
}
