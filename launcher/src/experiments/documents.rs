//! What an experiment shows in the end: tables, notes and JSON, printed and saved in one way.

use super::export::{save_grids, save_runs};
use super::measure::Ended;
use crate::output::complain;
use analysis::document::write_whole;
use analysis::experiment::{SweepRecord, conditions};
use analysis::html;
use analysis::report::grid::{Grid, wrapped};
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Everything that there is to show.
pub struct Documents {
    /// The name of the Markdown file, without its ending.
    pub name: &'static str,
    /// Its heading.
    pub heading: String,
    /// What to know. One line each.
    pub notes: Vec<String>,
    /// The tables for the terminal.
    pub narrow: Vec<Grid>,
    /// The tables for the files.
    pub wide: Vec<Grid>,
    /// What `--json` prints.
    pub json: Vec<u8>,
    /// The file that it is saved as too; `None`: it is the record itself.
    pub file: Option<&'static str>,
}

impl Documents {
    /// Writes them into a folder.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        if let Some(name) = self.file {
            write_whole(&folder.join(name), &self.json)?;
        }
        save_grids(folder, self.name, &self.heading, &self.notes, &self.wide)
    }

    /// Prints them.
    ///
    /// # Errors
    /// What stdout answers.
    pub fn print(&self, json: bool) -> Result<()> {
        let mut out = crate::output::stdout();
        if json {
            out.write_all(&self.json)?;
            return Ok(());
        }
        let colour = out.is_coloured();
        for grid in &self.narrow {
            writeln!(out, "{}", grid.terminal(colour))?;
        }
        for note in &self.notes {
            writeln!(out, "{}", wrapped(note))?;
        }
        Ok(())
    }
}

/// Saves and prints what an experiment shows, with `runs.csv` and `report.html`; says what to do where it is not complete.
///
/// # Errors
/// A folder that cannot be written.
pub fn publish(
    record: &SweepRecord,
    folder: &Path,
    documents: &Documents,
    json: bool,
    ended: Ended,
) -> Result<ExitCode> {
    save_runs(record, folder)?;
    documents.save(folder)?;
    html::write(folder, &folder.join(html::HTML_FILE))?;
    documents.print(json)?;
    if !json {
        writeln!(crate::output::stdout(), "\nSaved in {}", folder.display())?;
    }
    Ok(code(record, folder, ended))
}

/// The exit code of an experiment: interrupted, a run failed, or all is well.
fn code(record: &SweepRecord, folder: &Path, ended: Ended) -> ExitCode {
    if ended == Ended::Interrupted {
        complain(&format!("interrupted: launcher sweep --resume {} goes on", folder.display()));
        return crate::runtime::signals::exit_code();
    }
    if record.keeps_failures {
        return ExitCode::SUCCESS;
    }
    let bad: Vec<_> = record.runs().filter(|run| !run.outline.is_sound()).collect();
    if let Some(first) = bad.first() {
        let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
        complain(&format!(
            "error: {} of {} runs failed, the first: {}: {why}",
            bad.len(),
            record.runs().count(),
            first.folder
        ));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What to know about an experiment as a whole.
pub fn notes(record: &SweepRecord) -> Vec<String> {
    let mut notes: Vec<String> = measured(record).into_iter().chain(record.notes.iter().cloned()).collect();
    let (all, wanted) = (record.runs().count(), record.points.len() * record.repeats as usize);
    if record.search.is_none() && all < wanted {
        notes.push(format!("{all} of {wanted} runs are done"));
    }
    if record.keeps_failures {
        return notes;
    }
    let unfit: Vec<_> = record.runs().filter(|run| !run.outline.fit_for_latency).collect();
    if let Some(first) = unfit.first() {
        let why = first.outline.reasons.first().map_or("no reason given", String::as_str);
        notes.push(format!("{} of {all} runs are not fit for latency claims, e.g. {why}", unfit.len()));
    }
    notes
}

/// The heading of an experiment's document.
pub fn heading(record: &SweepRecord) -> String {
    let preset = record.preset.as_ref().filter(|preset| **preset != record.kind);
    let what = preset.map_or_else(String::new, |preset| format!(" {preset}"));
    format!("{}{what}, {} on {}", record.kind, record.started, record.machine.cpu_model)
}

/// What was measured, in one line.
fn measured(record: &SweepRecord) -> Option<String> {
    let said = conditions(record);
    let words: Vec<String> = said.iter().map(|(name, text)| format!("{name} {text}")).collect();
    (!words.is_empty()).then(|| format!("measured {}: {}", record.started, words.join(", ")))
}
